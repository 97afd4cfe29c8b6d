package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"millrace/devbroker"
	"millrace/record"
)

// widen goes on with more partitions. The users of the new ones are new: in the old ones nothing changes.
func (g *generator) widen(partitions int32) {
	for p := g.partitions; p < partitions; p++ {
		var users []string
		for i := 0; len(users) < 12; i++ {
			if user := "more-" + strconv.Itoa(i); record.PartitionOf([]byte(user), partitions) == p {
				users = append(users, user)
			}
		}
		g.users = append(g.users, users)
		g.now = append(g.now, firstTime+int64(p)*1000)
		g.jumpAt = append(g.jumpAt, 60)
		g.made = append(g.made, 0)
	}
	g.partitions = partitions
}

// addPartitions does to a topic what an operator does with kafka-topics.sh --alter.
func (s *site) addPartitions(topic string, partitions int32) {
	s.t.Helper()
	if err := s.client.AddPartitions(s.ctx, topic, partitions); err != nil {
		s.t.Fatal(err)
	}
	poll(s.t, patience, "the new partitions are known", func() bool {
		ends, err := s.client.EndOffsets(s.ctx, topic)
		return err == nil && len(ends) == int(partitions)
	})
	client, err := devbroker.NewClient(s.addr, s.login...) // the old one writes to the partitions that it knows, for minutes
	if err != nil {
		s.t.Fatal(err)
	}
	s.client.Close()
	s.client = client
}

// internal lists the topics that the job has made.
func (r *run) internal() []string {
	if r.job.name == shuffledJob.name {
		return []string{r.changelog(), r.application + "-" + r.job.step + "-repartition"}
	}
	return []string{r.changelog()}
}

// footprint is everything that the job can write: the ends of its topics, and its offsets.
func (r *run) footprint() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	for _, topic := range append(r.internal(), r.out, r.late) {
		ends, err := r.site.client.EndOffsets(r.site.ctx, topic)
		if err != nil {
			r.t.Fatal(err)
		}
		all[topic] = fmt.Sprint(ends)
	}
	offsets, err := r.site.client.CommittedOffsets(r.site.ctx, r.application)
	if err != nil {
		r.t.Fatal(err)
	}
	all["offsets"] = fmt.Sprint(offsets)
	return all
}

// refusedCount starts a replica on an input that is wider than the job's state, and expects it to end with exit code 3,
// with a text that says what was found and what to do, and without having touched anything.
func (r *run) refusedCount(c *replica, before, now int32) {
	r.t.Helper()
	was := r.footprint()
	c.start(fault{})
	if code := c.wait(patience); code != 3 {
		r.t.Errorf("exit code %d, want 3", code)
	}
	text := c.log.String()
	for _, want := range []string{fmt.Sprintf("topic %s has %d partitions", r.in, now), fmt.Sprintf("was made with %d:", before), r.internal()[len(r.internal())-1],
		"give the job a new application_id", "stop all replicas", "the topics with the prefix " + r.application + "-", "the consumer group " + r.application, "the folder " + c.dir} {
		if !strings.Contains(text, want) {
			r.t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if is := r.footprint(); !reflect.DeepEqual(was, is) {
		r.t.Errorf("a refused start has left traces: before %v, now %v", was, is)
	}
}

// anew gives the run outputs that are empty, and the application a name; both may be the old one's.
func (r *run) anew(application string) {
	r.t.Helper()
	text, err := os.ReadFile(r.file)
	if err != nil {
		r.t.Fatal(err)
	}
	out, late := r.out+".anew", r.late+".anew"
	r.site.topic(out, r.partitions)
	r.site.topic(late, r.partitions)
	other := strings.NewReplacer("application_id: "+r.application, "application_id: "+application, "topic: "+r.out, "topic: "+out, "topic: "+r.late, "topic: "+late).Replace(string(text))
	if err := os.WriteFile(r.file, []byte(other), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.application, r.out, r.late = application, out, late
}

// deleteAll is the second half of the recipe in the error: what a person does who keeps the application_id.
func (r *run) deleteAll() {
	r.t.Helper()
	if err := r.site.client.DeleteGroup(r.site.ctx, r.application); err != nil {
		r.t.Fatal(err)
	}
	for _, topic := range r.internal() {
		if err := r.site.client.DeleteTopic(r.site.ctx, topic); err != nil {
			r.t.Fatal(err)
		}
		poll(r.t, patience, topic+" is gone", func() bool {
			_, err := r.site.client.EndOffsets(r.site.ctx, topic)
			return err != nil
		})
	}
	for _, c := range r.replicas {
		c.loseDisk()
	}
}

// TestMorePartitionsAreRefusedByState: an input got more partitions while the job was stopped. The start is refused, and
// both ways out that the error names lead to an exact result over all partitions.
func TestMorePartitionsAreRefusedByState(t *testing.T) {
	t.Parallel()
	for _, j := range []job{changesJob, shuffledJob} {
		for _, way := range []string{"new-application", "delete-all"} {
			t.Run(j.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				replay(t)
				r := newRun(newSite(t), runOptions{job: j, seed: seed(), partitions: 2, replicas: 1})
				c := r.replicas[0]
				c.start(fault{})
				r.feed(30)
				if code := c.stop(); code != 0 {
					t.Fatalf("exit code %d", code)
				}
				r.site.addPartitions(r.in, 4)
				r.input.widen(4)
				r.partitions = 4
				r.produce(r.input.take(20))
				r.refusedCount(c, 2, 4)
				if way == "delete-all" {
					r.deleteAll()
					r.anew(r.application)
				} else {
					for _, topic := range r.internal() {
						r.removeAtEnd(topic)
					}
					r.anew(r.application + "-wide")
				}
				c.start(fault{})
				r.feed(20)
				r.finish()
			})
		}
	}
}

// removeAtEnd leaves a shared cluster as it was found.
func (r *run) removeAtEnd(topic string) {
	if realKafka() {
		r.t.Cleanup(func() { r.site.remove(topic) })
	}
}

// produceBeside writes records that the run's oracle does not know to partitions that its job does not read.
func (r *run) produceBeside(partitions int32) {
	r.t.Helper()
	for p := r.partitions; p < partitions; p++ {
		c := click{N: 1_000_000 + int64(p), User: fmt.Sprintf("nobody-%d", p), Ad: "ad-0", Time: firstTime, Cents: 99_999, partition: p}
		if err := r.site.client.ProduceTo(r.site.ctx, r.in, p, c.record()); err != nil {
			r.t.Fatal(err)
		}
	}
}

// toldOfCount waits until the replica has said that the input has changed.
func (r *run) toldOfCount(c *replica, now int32) {
	r.t.Helper()
	poll(r.t, patience, "MR2011 is in the log", func() bool { return len(c.log.linesWith("code", "MR2011")) > 0 })
	l := c.log.linesWith("code", "MR2011")[0]
	if l.text("topic") != r.in || l.number("partitions") != int64(now) || l.number("known") != int64(r.partitions) || !strings.Contains(l.text("msg"), "new application_id") {
		r.t.Errorf("MR2011 says %v: want topic %s, %d partitions, %d known, and the way out", l, r.in, now, r.partitions)
	}
}

// TestMorePartitionsWhileStateIsAtWork: an input gets more partitions under a running job with state. It says so, goes on
// with those that it knows, reads no record of the others, and lets no further replica in.
func TestMorePartitionsWhileStateIsAtWork(t *testing.T) {
	t.Parallel()
	replay(t)
	r := newRun(newSite(t), runOptions{job: changesJob, seed: seed(), partitions: 2, replicas: 2})
	first, second := r.replicas[0], r.replicas[1]
	first.start(fault{})
	r.feed(20)
	r.site.addPartitions(r.in, 4)
	r.produceBeside(4)
	r.toldOfCount(first, 4)
	r.feed(20)
	r.refusedCount(second, 2, 4)
	r.feed(20)
	if !first.running() {
		t.Error("the replica that was at work has ended")
	}
	r.finish() // a record of a new partition would be in the result
	offsets, err := r.site.client.CommittedOffsets(r.site.ctx, r.application)
	if err != nil {
		t.Fatal(err)
	}
	for tp, at := range offsets {
		if tp.Topic == r.in && tp.Partition >= r.partitions && at > 0 {
			t.Errorf("%s is committed up to %d", tp, at)
		}
	}
}

// TestMorePartitionsAreTakenUpWithoutState: a job without state has nothing in the wrong place. Restarted one replica
// after the other, as MR2011 says, it reads the new partitions too, and no record is missing or there twice.
func TestMorePartitionsAreTakenUpWithoutState(t *testing.T) {
	t.Parallel()
	replay(t)
	j := statelessJob
	j.verify = verifyRows
	r := newRun(newSite(t), runOptions{job: j, seed: seed(), partitions: 2, replicas: 2})
	r.start()
	r.feed(30)
	r.site.addPartitions(r.in, 4)
	r.toldOfCount(r.replicas[0], 4)
	r.feed(10)
	r.input.widen(4)
	r.partitions = 4
	r.produce(r.input.take(30))
	for _, c := range r.replicas {
		if code := c.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		c.start(fault{})
	}
	r.feed(10)
	r.alive()
	r.finish()
}

// verifyRows is verifyStateless where the output is narrower than the input: the order within a partition of the output
// is then nobody's.
func verifyRows(_ int32, all []click, o output) (v verdict) {
	found := map[int64]int{}
	for _, r := range o.out {
		var row struct{ N int64 }
		if err := json.Unmarshal(r.Value, &row); err != nil {
			v.fault("%q: %v", r.Value, err)
		}
		found[row.N]++
	}
	for _, c := range all {
		n := found[c.N]
		delete(found, c.N)
		switch passes := c.Cents >= 50_000; {
		case passes && n == 0:
			v.miss("record %d of partition %d", c.N, c.partition)
		case passes && n > 1, !passes && n > 0:
			v.fault("record %d is there %d times", c.N, n)
		}
	}
	for n := range found {
		v.fault("record %d never came in", n)
	}
	return v
}
