package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/record"
)

// run is one job at work: its topics, its input, its replicas.
type run struct {
	t    *testing.T
	site *site
	job  job

	application   string
	in, out, late string
	partitions    int32
	input         *generator
	file          string // the job's YAML
	replicas      []*replica
}

type runOptions struct {
	job        job
	seed       uint64
	partitions int32
	replicas   int
	static     bool     // group.instance.id
	settings   settings // application and brokers are filled in
}

func newRun(s *site, o runOptions) *run {
	s.t.Helper()
	r := &run{t: s.t, site: s, job: o.job, application: newApplication(), partitions: o.partitions, input: newGenerator(o.seed, o.partitions, 120)}
	r.in, r.out, r.late = r.application+".in", r.application+".out", r.application+".late"
	for _, topic := range []string{r.in, r.out, r.late} {
		s.topic(topic, o.partitions)
	}
	o.settings.application, o.settings.brokers = r.application, s.addr
	text := o.settings.yaml() + strings.NewReplacer("IN", r.in, "OUT", r.out, "LATE", r.late).Replace(o.job.topology)
	work := s.t.TempDir()
	r.file = filepath.Join(work, "job.yaml")
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	for i := range o.replicas {
		name := fmt.Sprintf("r%d", i)
		c := &replica{t: s.t, name: name, job: r.file, dir: filepath.Join(work, name)}
		if o.static {
			c.extra = []string{"--set", "kafka.group_instance_id=" + name}
		}
		r.replicas = append(r.replicas, c)
	}
	s.t.Cleanup(r.cleanUp)
	return r
}

func (r *run) cleanUp() {
	for _, c := range r.replicas {
		if c.cmd == nil {
			continue
		}
		if r.t.Failed() {
			c.report()
		}
		c.kill()
	}
	if realKafka() && r.job.stateful {
		r.site.remove(r.changelog())
		if r.job.name == shuffledJob.name {
			r.site.remove(r.application + "-" + r.job.step + "-repartition")
		}
	}
}

func (r *run) changelog() string { return r.application + "-" + r.job.step + "-changelog" }

// start starts all replicas without faults.
func (r *run) start() {
	r.t.Helper()
	for _, c := range r.replicas {
		c.start(fault{})
	}
}

// produce writes records to the partitions that they were made for, in their order.
func (r *run) produce(clicks []click) {
	r.t.Helper()
	for p := range r.partitions {
		batch := recordsOf(clicks, p)
		if len(batch) == 0 {
			continue
		}
		if err := r.site.client.ProduceTo(r.site.ctx, r.in, p, batch...); err != nil {
			r.t.Fatal(err)
		}
	}
}

// feed produces n more records a partition and waits until the group has committed them.
func (r *run) feed(n int) {
	r.t.Helper()
	r.produce(r.input.take(n))
	r.committed()
}

const patience = 45 * time.Second // for anything that should happen; a busy machine needs some

// committed waits until the group has committed all input.
func (r *run) committed() {
	r.t.Helper()
	if !polled(patience, r.allCommitted) {
		r.t.Fatalf("the group did not commit the input within %s: %s; %s", patience, r.lag(), r.group())
	}
}

func (r *run) allCommitted() bool { return r.lag() == "" }

// lag says what is not committed; empty when everything is.
func (r *run) lag() string {
	ends, err := r.site.client.EndOffsets(r.site.ctx, r.in)
	if err != nil {
		return err.Error()
	}
	offsets, err := r.site.client.CommittedOffsets(r.site.ctx, r.application)
	if err != nil {
		return err.Error()
	}
	for p, end := range ends {
		if at := offsets[record.TopicPartition{Topic: r.in, Partition: p}]; p < r.partitions && at < end { // what was added behind the job's back is not read
			return fmt.Sprintf("%s-%d is at %d of %d", r.in, p, at, end)
		}
	}
	return ""
}

// group describes the consumer group, as far as it can be looked into.
func (r *run) group() string {
	if r.site.broker == nil {
		return "the group is in a real Kafka"
	}
	state, members := r.site.broker.GroupState(r.application)
	return fmt.Sprintf("group %s with %d members %v", state, len(members), members)
}

// read reads what a read_committed reader sees. The late topic is read last: it may only be newer.
func (r *run) read() (o output, err error) {
	if o.out, err = r.site.client.ReadCommitted(r.site.ctx, r.out); err != nil {
		return o, err
	}
	o.late, err = r.site.client.ReadCommitted(r.site.ctx, r.late)
	return o, err
}

// finish ends the input, waits for the result, stops all replicas and then holds everything against the oracle.
func (r *run) finish() {
	r.t.Helper()
	r.produce(r.input.finish())
	r.await()
	r.stop()
	r.verify()
}

// await waits until the result is there, or time is up; verify judges.
func (r *run) await() {
	deadline := time.Now().Add(patience)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for time.Now().Before(deadline) {
		if o, err := r.read(); err == nil && r.job.verify(r.partitions, r.input.all, o).exact() && r.allCommitted() {
			return
		}
		<-ticker.C
	}
}

// stop ends every running replica in the orderly way, and each must say that all was well.
func (r *run) stop() {
	r.t.Helper()
	for _, c := range r.replicas {
		if !c.running() {
			continue
		}
		if code := c.stop(); code != 0 {
			r.t.Errorf("replica %s ended with exit code %d after SIGTERM, want 0", c.name, code)
		}
	}
}

// verify holds what is in Kafka against the oracle, when nobody writes any more.
func (r *run) verify() {
	r.t.Helper()
	o, err := r.read()
	if err != nil {
		r.t.Fatal(err)
	}
	if v := r.job.verify(r.partitions, r.input.all, o); !v.exact() {
		r.t.Errorf("the result of %d records is not exact: %s", len(r.input.all), v)
	}
	if lag := r.lag(); lag != "" {
		r.t.Errorf("after the end: %s", lag)
	}
	topics := []string{r.out, r.late}
	if r.job.stateful {
		topics = append(topics, r.changelog())
	}
	for _, topic := range topics {
		r.noOpenTransaction(topic)
	}
}

// noOpenTransaction checks that no reader of committed records is held up.
func (r *run) noOpenTransaction(topic string) {
	r.t.Helper()
	settled := polled(10*time.Second, func() bool {
		ends, err := r.site.client.EndOffsets(r.site.ctx, topic)
		if err != nil {
			return false
		}
		stable, err := r.site.client.StableOffsets(r.site.ctx, topic)
		if err != nil {
			return false
		}
		for p, end := range ends {
			if stable[p] != end {
				return false
			}
		}
		return true
	})
	if !settled {
		r.t.Errorf("%s still has an open transaction", topic)
	}
}

// alive fails the test when a replica has ended by itself.
func (r *run) alive() {
	r.t.Helper()
	for _, c := range r.replicas {
		if c.cmd != nil && !c.running() {
			r.t.Errorf("replica %s has ended by itself: %v", c.name, c.cmd.ProcessState)
		}
	}
}

// settled waits until every task has one replica, and every replica runs what it has.
func (r *run) settled() {
	r.t.Helper()
	want := int(r.partitions)
	if r.job.name == shuffledJob.name {
		want *= 2
	}
	poll(r.t, patience, "every task has one replica, and all replicas are ready in one generation", func() bool {
		owners, total := map[string]bool{}, 0
		generations := map[int64]bool{}
		for _, c := range r.replicas {
			if status, _ := c.get("/readyz"); status != 200 {
				return false
			}
			tasks, generation := c.assigned()
			for _, task := range tasks {
				owners[task] = true
			}
			total += len(tasks)
			generations[generation] = true
		}
		return len(owners) == want && total == want && len(generations) == 1
	})
}

// replay says how to run this test again.
func replay(t *testing.T) {
	t.Logf("again: MILLRACE_E2E_SEED=%d go test ./e2e -count=1 -run '^%s$'", seed(), strings.ReplaceAll(t.Name(), "/", "$/^"))
}
