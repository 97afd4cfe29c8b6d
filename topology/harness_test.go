package topology_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"millrace/config"
	"millrace/formats"
	"millrace/record"
	"millrace/store"
	"millrace/topology"
)

// stateStore lets a store of package store be an operator's.
type stateStore struct{ *store.Store }

func (s stateStore) Keys(segments ...int64) (topology.KeySet, error) {
	return s.Store.Keys(segments...)
}

// fataler is what *testing.T and *rapid.T have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

const jobHead = `version: 1
application_id: app
kafka: { bootstrap_servers: ["localhost:9092"] }
state: { dir: ./state }
`

// compile plans a job from the parts of a configuration that follow its head: errors: and topology:.
func compile(t fataler, dir, text string) *topology.Plan {
	t.Helper()
	file := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte(jobHead+text), 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	c, found := config.Load(config.LoadOptions{Files: []string{file}, Environ: func(string) (string, bool) { return "", false }})
	for _, f := range found {
		if f.Severity == topology.Error {
			t.Fatalf("%s: %s\n%s", f.Pos, f.Message, text)
		}
	}
	plan, found := topology.Compile(&c.Spec, topology.Options{Formats: formats.ByName{}})
	if plan == nil {
		t.Fatalf("%+v\n%s", found, text)
	}
	return plan
}

// world is a plan at work over topics in memory: tasks that read and write them, in whatever order a test likes.
type world struct {
	t          fataler
	plan       *topology.Plan
	partitions map[string]int32 // of topics that have more than one
	topics     map[record.TopicPartition][]record.Record
	tasks      []*worker
	tallies    map[string]int64 // committed
	spreads    map[record.Outcome]*record.Spread
	now        int64
}

// newWorld starts the plan's tasks. partitions may be nil: every topic has one.
func newWorld(t fataler, plan *topology.Plan, partitions map[string]int32) *world {
	t.Helper()
	w := &world{t: t, plan: plan, partitions: partitions, topics: map[record.TopicPartition][]record.Record{}, tallies: map[string]int64{},
		spreads: map[record.Outcome]*record.Spread{record.Lateness: {}, record.Latency: {}}}
	for _, sub := range plan.Subtopologies {
		for p := range w.width(sub) {
			k := &worker{w: w, id: record.TaskID{Subtopology: sub.Number, Partition: p}, sub: sub}
			for _, in := range sub.Inputs {
				k.inputs = append(k.inputs, record.TopicPartition{Topic: in.Topic, Partition: p})
			}
			k.committed.next = make([]record.Offset, len(k.inputs))
			k.start()
			w.tasks = append(w.tasks, k)
		}
	}
	return w
}

func (w *world) count(topic string) int32 {
	if n, ok := w.partitions[topic]; ok {
		return n
	}
	return 1
}

// width is the number of tasks of a subtopology.
func (w *world) width(sub *topology.Subtopology) int32 {
	n := int32(0)
	for _, in := range sub.Inputs {
		n = max(n, w.count(in.Topic))
	}
	return n
}

// writers is the number of tasks that write to a step's repartition topic.
func (w *world) writers(step string) int32 {
	for _, r := range w.plan.Repartitions() {
		if r.Step == step {
			return w.width(w.plan.Subtopologies[r.From])
		}
	}
	return 0
}

// write appends a record to a topic, as a producer of the outside does.
func (w *world) write(topic string, partition int32, r record.Record) {
	tp := record.TopicPartition{Topic: topic, Partition: partition}
	r.Offset = record.Offset(len(w.topics[tp]))
	w.topics[tp] = append(w.topics[tp], r)
}

// read returns a topic's records, partition after partition.
func (w *world) read(topic string) (all []record.Record) {
	for p := range w.count(topic) {
		all = append(all, w.topics[record.TopicPartition{Topic: topic, Partition: p}]...)
	}
	return all
}

// settle lets all tasks read all there is, committing at the end of each one's turn, until nobody has news.
func (w *world) settle() {
	for busy := true; busy; {
		busy = false
		for _, k := range w.tasks {
			if k.drain() {
				busy = true
			}
			k.commit()
		}
	}
}

func (w *world) tally(what record.Outcome, where, detail string) int64 {
	return w.tallies[fmt.Sprintf("%d %s %s", what, where, detail)]
}

// single starts a plan of one task.
func single(t *testing.T, text string) *world {
	t.Helper()
	return newWorld(t, compile(t, t.TempDir(), text), nil)
}
