package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// moveOffsets does what an operator does with kafka-consumer-groups.sh --reset-offsets: by so many records.
func (r *run) moveOffsets(by int64) {
	r.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(r.site.addr, ",")...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	offsets, err := admin.FetchOffsets(r.site.ctx, r.application)
	if err != nil {
		r.t.Fatal(err)
	}
	moved := kadm.Offsets{}
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == r.in {
			o.Offset.At += by
			moved.Add(o.Offset)
		}
	})
	poll(r.t, patience, "the group lets its offsets be moved", func() bool { // until its last member is seen to be gone
		return admin.CommitAllOffsets(r.site.ctx, r.application, moved) == nil
	})
}

// refused waits until the replica has said in its log why it does not work, and checks that it stays up, is alive and
// is not ready: whoever runs it sees that something is wrong, and restarting it in a loop would not help.
func (r *run) refused(c *replica, texts ...string) {
	r.t.Helper()
	poll(r.t, patience, fmt.Sprintf("the log says %q", texts), func() bool {
		for _, l := range c.log.lines("task failed") {
			said := true
			for _, text := range texts {
				said = said && strings.Contains(l.text("error"), text)
			}
			if said {
				return true
			}
		}
		return false
	})
	if !c.running() {
		r.t.Fatalf("replica %s has ended: %v", c.name, c.cmd.ProcessState)
	}
	if status, body := c.get("/readyz"); status != 503 {
		r.t.Errorf("/readyz is %d although nothing works: %s", status, body)
	}
	if status, body := c.get("/livez"); status != 200 {
		r.t.Errorf("/livez is %d, a restart would not help: %s", status, body)
	}
}

// stoppedRun is a run that has worked and was stopped.
func stoppedRun(t *testing.T) (*run, *replica) {
	t.Helper()
	replay(t)
	r := newRun(newSite(t), runOptions{job: changesJob, seed: seed(), partitions: 2, replicas: 1})
	c := r.replicas[0]
	c.start(fault{})
	r.fillChangelog()
	if code := c.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	return r, c
}

func TestMovedOffsetsAreRefused(t *testing.T) {
	t.Parallel()
	for _, by := range []int64{-5, 5} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			t.Parallel()
			r, c := stoppedRun(t)
			r.produce(r.input.take(20))
			r.moveOffsets(by)
			c.start(fault{})
			r.refused(c, "the group's offset is", "offsets were moved", "state.offsets_policy=progress", "new application_id")
			if code := c.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			c.extra = append(c.extra, "--set", "state.offsets_policy=progress")
			c.start(fault{})
			r.finish()
		})
	}
}

// Offsets that are set back to where they were are no reason to remember that they were away.
func TestOffsetsMovedBackAreAccepted(t *testing.T) {
	t.Parallel()
	r, c := stoppedRun(t)
	r.moveOffsets(-5)
	c.start(fault{})
	r.refused(c, "offsets were moved")
	if code := c.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	r.moveOffsets(5)
	c.start(fault{})
	r.feed(10)
	r.finish()
}

// Offsets expire when a job stands still for long. Its state knows them too.
func TestExpiredOffsetsAreTakenFromTheState(t *testing.T) {
	t.Parallel()
	r, c := stoppedRun(t)
	if err := r.site.client.DeleteGroup(r.site.ctx, r.application); err != nil {
		t.Fatal(err)
	}
	c.start(fault{})
	r.feed(10)
	if len(c.log.lines("the group has no offset where the state has one, probably expired; the state's is used")) == 0 {
		t.Error("nothing is said about the missing offsets")
	}
	r.finish()
}

func TestLostChangelogIsRefused(t *testing.T) {
	t.Parallel()
	for _, disk := range []string{"same", "lost"} {
		t.Run(disk+"-disk", func(t *testing.T) {
			t.Parallel()
			r, c := stoppedRun(t)
			if err := r.site.client.DeleteTopic(r.site.ctx, r.changelog()); err != nil {
				t.Fatal(err)
			}
			if disk == "lost" {
				c.loseDisk()
			}
			c.start(fault{})
			r.refused(c, "a changelog was lost", "new application_id")
			if code := c.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestChangedPlanIsRefused(t *testing.T) {
	t.Parallel()
	r, c := stoppedRun(t)
	good, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(good), "size: 1m", "size: 2m", 1)
	if err := os.WriteFile(r.file, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	r.produce(r.input.take(10))
	c.start(fault{})
	for _, text := range []string{"step user_minutes has changed", "new name"} {
		poll(t, patience, "it says: "+text, func() bool { return strings.Contains(c.log.String(), text) })
	}
	if status, _ := c.get("/readyz"); status == 200 {
		t.Error("it is ready on the state of another plan")
	}
	c.stop() // it may have ended by itself
	if err := os.WriteFile(r.file, good, 0o600); err != nil {
		t.Fatal(err)
	}
	c.start(fault{})
	r.finish()
}

func TestSecondProcessOnTheSameStateIsRefused(t *testing.T) {
	t.Parallel()
	replay(t)
	r := newRun(newSite(t), runOptions{job: finalJob, seed: seed(), partitions: 2, replicas: 2})
	first, second := r.replicas[0], r.replicas[1]
	first.start(fault{})
	r.feed(10)
	second.dir = first.dir
	second.start(fault{})
	if code := second.wait(patience); code == 0 || code == -1 {
		t.Errorf("exit code %d, want one that says no", code)
	}
	if text := second.log.String(); !strings.Contains(text, "another process works in") || !strings.Contains(text, "state.dir") {
		t.Errorf("it does not say why:\n%s", text)
	}
	r.feed(10)
	if !first.running() {
		t.Error("the first process has ended")
	}
	r.finish()
}
