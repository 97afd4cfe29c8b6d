package rebalance

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/config"
	"millrace/formats"
	"millrace/record"
	"millrace/store"
	"millrace/task"
	"millrace/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// countJob counts records by key.
const countJob = `version: 1
application_id: app
kafka: { bootstrap_servers: ["localhost:9092"] }
state: { dir: ./state }
topology:
  sources: { in: { topic: in, format: string, key: key } }
  steps:
    counts: { from: in, group_by: key, aggregate: { n: count() }, ttl: forever, to: out }
  sinks: { out: { topic: out } }
`

// planned is the compiled job; it is read-only, so that all tests share it.
var planned = sync.OnceValues(func() (*topology.Plan, error) {
	dir, err := os.MkdirTemp("", "rebalance")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte(countJob), 0o600); err != nil {
		return nil, err
	}
	c, _ := config.Load(config.LoadOptions{Files: []string{file}, Environ: func(string) (string, bool) { return "", false }})
	plan, _ := topology.Compile(&c.Spec, topology.Options{Formats: formats.ByName{}})
	if plan == nil {
		return nil, errors.New("the job cannot be compiled")
	}
	return plan, nil
})

// events is a Listener that remembers, and lets a test wait for what should happen.
type events struct {
	mu       sync.Mutex
	changed  *sync.Cond
	ready    int
	states   []string
	records  int64 // of committed epochs
	epochs   []record.CommitStats
	aborted  []string
	failed   map[record.TaskID]int
	failedAt map[record.TaskID][]time.Time
	revoked  []string
	warned   []string
	draining bool
	reused   map[record.TaskID]bool // of the last restore
	attempts int
}

func newEvents() *events {
	e := &events{failed: map[record.TaskID]int{}, failedAt: map[record.TaskID][]time.Time{}, reused: map[record.TaskID]bool{}}
	e.changed = sync.NewCond(&e.mu)
	return e
}

func (e *events) note(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	e.changed.Broadcast()
}

func (e *events) Assigned([]record.TaskID, int32, time.Duration) {}
func (e *events) Revoked(tasks []record.TaskID, lost bool) {
	e.note(func() {
		for _, id := range tasks {
			e.revoked = append(e.revoked, id.String())
		}
		if lost {
			e.revoked = append(e.revoked, "lost")
		}
	})
}
func (e *events) State(s string)           { e.note(func() { e.states = append(e.states, s) }) }
func (e *events) Ready(int, time.Duration) { e.note(func() { e.ready++ }) }
func (e *events) Aborted(result string, _ error) {
	e.note(func() { e.aborted = append(e.aborted, result) })
}
func (e *events) Recovering(_ error, attempt int) {
	e.note(func() { e.attempts = max(e.attempts, attempt) })
}
func (e *events) Committed(s record.CommitStats) {
	e.note(func() {
		e.records += s.Records
		e.epochs = append(e.epochs, s)
	})
}
func (e *events) TaskFailed(id record.TaskID, _ error) {
	e.note(func() {
		e.failed[id]++
		e.failedAt[id] = append(e.failedAt[id], time.Now())
	})
}
func (e *events) Watermarks([]record.WatermarkStatus) {}
func (e *events) StoreStats(record.StoreStats)        {}
func (e *events) TaskStats(record.TaskStats)          {}
func (e *events) DiskFree(int64)                      {}
func (e *events) Warn(code, _ string, _ ...any)       { e.note(func() { e.warned = append(e.warned, code) }) }
func (e *events) Draining()                           { e.note(func() { e.draining = true }) }

func (e *events) RestoreStarted(id record.TaskID, _ string, _, _ int64, reused bool) {
	e.note(func() { e.reused[id] = reused })
}
func (e *events) RestoreGivenUp(record.TaskID, string)                       {}
func (e *events) RestoreProgress(record.TaskID, string, int64, int64)        {}
func (e *events) Restored(record.TaskID, string, bool, int64, time.Duration) {}
func (e *events) Flushed(record.TaskID, int, int64, time.Duration)           {}

const patience = 20 * time.Second

// until waits for a condition on the events.
func (e *events) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() { e.note(func() { late = true }) })
	defer timer.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for !ok() {
		if late {
			t.Fatalf("not in time: %s; states %v, aborted %v, failed %v", what, e.states, e.aborted, e.failed)
		}
		e.changed.Wait()
	}
}

// bench is a manager at work over brokers in memory.
type bench struct {
	t *testing.T
	*brokers
	*events
	manager *Manager
	mem     *engines
	stop    func() error // drains, once
	written map[string]int
}

// engines are the tasks' directories: what is in them outlives a task.
type engines struct {
	mu    sync.Mutex
	held  map[record.TaskID]*store.Memory
	inUse map[record.TaskID]bool
	twice bool // one was opened while it was open
}

type opened struct {
	*store.Memory
	from *engines
	id   record.TaskID
}

func (o opened) Close() error {
	o.from.mu.Lock()
	defer o.from.mu.Unlock()
	o.from.inUse[o.id] = false
	return nil
}

func (e *engines) open(id record.TaskID, _ []string) (store.Engine, store.OpenResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.twice = e.twice || e.inUse[id]
	e.inUse[id] = true
	if e.held[id] == nil {
		e.held[id] = store.NewMemory()
	}
	return opened{e.held[id], e, id}, store.OpenResult{StoreID: id.String()}, nil
}

func (e *engines) wipe(id record.TaskID) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.held, id)
	return nil
}

const partitions = 4

// newBench makes a manager with the options as a test changes them; Run is begun.
func newBench(t *testing.T, change func(o *Options)) *bench {
	t.Helper()
	plan, err := planned()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, brokers: newBrokers(), events: newEvents(), mem: &engines{held: map[record.TaskID]*store.Memory{}, inUse: map[record.TaskID]bool{}}, written: map[string]int{}}
	layout := &Layout{Shape: "s"}
	for p := range int32(partitions) {
		layout.Tasks = append(layout.Tasks, TaskPartitions{record.TaskID{Partition: p}, []record.TopicPartition{tp("in", p)}})
	}
	o := Options{Layout: layout, Producer: b.brokers, Fetcher: b.brokers, Listener: b.events, CommitInterval: time.Hour, TransactionTimeout: time.Minute,
		ReleaseTimeout: patience, CacheBytes: 1 << 22, Clock: time.Now,
		Task: task.Options{Plan: plan, Formats: formats.ByName{}, Cluster: b.brokers, Listener: b.events, OpenEngine: b.mem.open, Wipe: b.mem.wipe,
			Partitions: func(string) int32 { return partitions }, Writers: func(string) int32 { return partitions }, Drained: func() {}, Clock: time.Now,
			TransactionalID: "app-1", ExactlyOnce: true, FlushInterval: time.Hour, EpochBytes: 1 << 20, MaxRecordBytes: 1 << 20}}
	if change != nil {
		change(&o)
	}
	b.manager = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.manager.Run(ctx, patience/2) }()
	b.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		b.set(nil)
		b.stop() // an error was the test's business
	})
	return b
}

// set changes what happens at the producer's steps.
func (b *bench) set(on func(ctx context.Context, step string) error) {
	b.brokers.mu.Lock()
	defer b.brokers.mu.Unlock()
	b.on = on
}

// assign gives the manager the tasks of these partitions, as the group does.
func (b *bench) assign(numbers ...int32) {
	var tps []record.TopicPartition
	for _, p := range numbers {
		tps = append(tps, tp("in", p))
	}
	b.manager.Assigned(tps, 1)
}

// put writes records to an input partition and remembers them.
func (b *bench) put(partition int32, keys ...string) {
	for _, k := range keys {
		b.written[k]++
	}
	b.write(tp("in", partition), keys...)
}

// committedUpTo waits until the group's offset of each partition is the end of its log, ending epochs meanwhile.
func (b *bench) committedUpTo(numbers ...int32) {
	b.t.Helper()
	for _, p := range numbers {
		b.patient("partition is committed", func() bool {
			b.manager.Hurry()
			return b.upToDate(tp("in", p))
		})
	}
	// No epoch is under way or asked for: what comes next stays uncommitted until it is asked for again.
	b.await("no epoch is left", func() bool { return len(b.manager.hurry) == 0 && b.manager.committing == nil })
}

func (b *bench) upToDate(p record.TopicPartition) bool {
	b.brokers.mu.Lock()
	defer b.brokers.mu.Unlock()
	return b.offsets[p].Next == record.Offset(len(b.logs[p]))
}

// exact compares the results with what was written: the last count of each key is the number of its records, and counts only
// go up. A record that is lost or counted twice shows.
func (b *bench) exact() {
	b.t.Helper()
	b.brokers.mu.Lock()
	defer b.brokers.mu.Unlock()
	last := map[string]int{}
	for p := range int32(partitions) {
		for _, e := range b.logs[tp("out", p)] {
			if e.state != committed {
				continue
			}
			var row struct{ N int }
			if err := json.Unmarshal(e.Value, &row); err != nil {
				b.t.Fatal(err)
			}
			if row.N <= last[string(e.Key)] {
				b.t.Errorf("%s went from %d to %d", e.Key, last[string(e.Key)], row.N)
			}
			last[string(e.Key)] = row.N
		}
	}
	for k, n := range b.written {
		if last[k] != n {
			b.t.Errorf("%s was counted to %d, %d were written", k, last[k], n)
		}
	}
	b.mem.mu.Lock()
	defer b.mem.mu.Unlock()
	if b.mem.twice {
		b.t.Error("a store was opened while it was open")
	}
}

// restored lists the restores that read anything, and forgets them.
func (b *bench) restored() []string {
	b.brokers.mu.Lock()
	defer b.brokers.mu.Unlock()
	all := b.lag
	b.lag = nil
	slices.Sort(all)
	return all
}
