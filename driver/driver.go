package driver

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"millrace/eos"
	"millrace/record"
	"millrace/store"
	"millrace/task"
	"millrace/topology"
)

// Start is the wall clock's time when a driver begins.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Options of a Driver.
type Options struct {
	Spec    *topology.Spec
	Formats topology.Formats
	// Partitions of every topic of the job; at least 1.
	Partitions int32
	// MaxRecordBytes is the largest result that counts as accepted.
	MaxRecordBytes int
	// Coming is what will be piped, in its order: sources that do not declare their key are looked at before the tasks
	// start, as in production. What a source never answers makes its step repartition.
	Coming []Arrival
}

// Arrival is a record with the source that it arrives at.
type Arrival struct {
	Source string
	Record record.Record
}

// Driver runs one job. After an error it is at an end: every further call returns the same error.
type Driver struct {
	plan       *topology.Plan
	formats    topology.Formats
	partitions int32
	maxRecord  int
	topics     map[string]string // of the sources, by name
	outputs    map[string]string // of the sinks, by name
	deadLetter string            // topic; empty: none

	now     time.Time
	cluster *cluster
	engines map[record.TaskID]*store.Memory
	workers []*worker
	tallies tallies
	epochs  int64
	err     error
}

// New compiles the job and starts its tasks.
func New(o Options) (*Driver, error) {
	if o.Partitions < 1 {
		return nil, fmt.Errorf("driver: %d partitions: at least 1 is needed", o.Partitions)
	}
	d := &Driver{formats: o.Formats, partitions: o.Partitions, maxRecord: o.MaxRecordBytes, topics: map[string]string{}, outputs: map[string]string{},
		deadLetter: o.Spec.Errors.DeadLetterTopic.Value, now: Start, cluster: newCluster(), engines: map[record.TaskID]*store.Memory{}, tallies: tallies{}}
	for _, s := range o.Spec.Sources {
		d.topics[s.Name.Value] = s.Topic.Value
	}
	for _, s := range o.Spec.Sinks {
		d.outputs[s.Name.Value] = s.Topic.Value
	}
	var err error
	if d.plan, err = learn(o); err != nil {
		return nil, err
	}
	return d, d.start(nil)
}

// Plan is the job's plan, with what was learnt about its keys.
func (d *Driver) Plan() *topology.Plan { return d.plan }

// Now is the wall clock.
func (d *Driver) Now() time.Time { return d.now }

// start makes a task of every partition of every subtopology; kept holds the states that stay in this process.
func (d *Driver) start(kept map[record.TaskID]*store.State) error {
	d.workers = nil
	for _, sub := range d.plan.Subtopologies {
		for p := range d.partitions {
			id := record.TaskID{Subtopology: sub.Number, Partition: p}
			t, err := task.Start(context.Background(), id, d.options(), kept[id])
			if err != nil {
				return d.fail(err)
			}
			d.workers = append(d.workers, newWorker(t, d.cluster))
		}
	}
	return d.err // of a warning
}

// options are the same for all tasks. What bounds memory in production never stands in the way here, and nothing is
// flushed beside the work: a flush has its own goroutine.
func (d *Driver) options() task.Options {
	return task.Options{Plan: d.plan, Formats: d.formats, Cluster: d.cluster, Listener: listener{d},
		OpenEngine: d.openEngine, Wipe: func(id record.TaskID) error { delete(d.engines, id); return nil },
		Partitions: func(string) int32 { return d.partitions }, Writers: func(string) int32 { return d.partitions },
		Drained: func() {}, Hurry: func() {}, Clock: d.Now, TransactionalID: d.plan.ApplicationID + "-test", ExactlyOnce: true,
		FlushInterval: math.MaxInt64, CacheBytes: math.MaxInt / 4, EpochBytes: math.MaxInt, MaxRecordBytes: d.maxRecord}
}

func (d *Driver) openEngine(id record.TaskID, _ []string) (store.Engine, store.OpenResult, error) {
	e := d.engines[id]
	if e == nil {
		e = store.NewMemory()
		d.engines[id] = e
	}
	return e, store.OpenResult{StoreID: id.String(), Clean: true}, nil
}

// fail keeps the first error.
func (d *Driver) fail(err error) error {
	if d.err == nil {
		d.err = err
	}
	return d.err
}

// Pipe appends a record to a source's topic and lets the tasks work on it. Without a partition (-1) it goes where its key
// hashes to, as Kafka's clients have it, and to partition 0 without a key.
func (d *Driver) Pipe(source string, partition int32, r record.Record) error {
	topic, ok := d.topics[source]
	if !ok {
		return d.fail(fmt.Errorf("driver: the job has no source %q", source))
	}
	if partition >= d.partitions {
		return d.fail(fmt.Errorf("driver: source %s has %d partitions, and partition %d was named", source, d.partitions, partition))
	}
	if partition < 0 {
		partition = 0
		if r.Key != nil {
			partition = record.PartitionOf(r.Key, d.partitions)
		}
	}
	d.cluster.append(record.TopicPartition{Topic: topic, Partition: partition}, r)
	return d.work()
}

// work lets the tasks run until nothing is left to do before the next commit.
func (d *Driver) work() error {
	for _, w := range d.workers {
		if d.err != nil {
			return d.err
		}
		if err := w.run(); err != nil {
			return d.fail(err)
		}
	}
	return d.err
}

// AdvanceWallClock moves the wall clock and lets the tasks look at it: inputs become idle by it. Silence counts from a
// task's start.
func (d *Driver) AdvanceWallClock(by time.Duration) error {
	d.now = d.now.Add(by)
	for _, w := range d.workers {
		if d.err != nil {
			return d.err
		}
		if err := w.Tick(); err != nil {
			return d.fail(err)
		}
	}
	return d.work()
}

// AdvanceWatermark moves the watermark of a source to a time, in all partitions, as records would that are just new enough
// and have no other effect. No log holds it: what is not committed is lost at a restart.
func (d *Driver) AdvanceWatermark(source string, to time.Time) error {
	if _, ok := d.topics[source]; !ok {
		return d.fail(fmt.Errorf("driver: the job has no source %q", source))
	}
	for _, w := range d.workers {
		w.AdvanceSource(source, to)
	}
	return d.work()
}

// Commit ends the epoch, and then those that follow from it: what is committed to a repartition topic is work for the
// tasks behind it.
func (d *Driver) Commit() error {
	for {
		parts, err := d.freeze()
		if err != nil || len(parts) == 0 {
			return err
		}
		result, err := eos.Commit(context.Background(), d.transaction(parts, false), d.epoch(parts))
		if err != nil {
			return d.fail(err)
		}
		for _, p := range parts {
			p.worker.Committed(result.ChangelogEnds(*p.Part))
			d.tallies.add(p.Tallies)
		}
		if err := d.work(); err != nil {
			return err
		}
	}
}

// part is what one task contributes to an epoch.
type part struct {
	*eos.Part
	worker *worker
}

func (d *Driver) freeze() ([]part, error) {
	var parts []part
	for _, w := range d.workers {
		if d.err != nil {
			return nil, d.err
		}
		p, err := w.Freeze()
		if err != nil {
			return nil, d.fail(err)
		}
		if p != nil {
			parts = append(parts, part{p, w})
		}
	}
	return parts, d.err
}

func (d *Driver) epoch(parts []part) eos.Epoch {
	d.epochs++
	e := eos.Epoch{Number: d.epochs, Owned: func() bool { return true }}
	for _, p := range parts {
		e.Parts = append(e.Parts, *p.Part)
	}
	return e
}

func (d *Driver) transaction(parts []part, abort bool) *transaction {
	x := &transaction{cluster: d.cluster, watermarks: map[*record.Outbox]int64{}, abort: abort}
	for _, p := range parts {
		for _, box := range slices.Concat(p.Outputs, p.Changelogs) {
			x.watermarks[box] = p.worker.Watermark()
		}
	}
	return x
}

// worker is a task with the logs that it reads.
type worker struct {
	task.Manual
	readings []*reading
}

type reading struct {
	task.Reading
	log  *partitionLog
	told record.Offset // the end of the log as the task knows it; -1: not yet
}

func newWorker(t *task.Task, c *cluster) *worker {
	w := &worker{Manual: task.Manual{Task: t}}
	for _, r := range t.Readings() {
		w.readings = append(w.readings, &reading{r, c.log(r.From), -1})
	}
	return w
}

// run works until the logs are read to their ends.
func (w *worker) run() error {
	for {
		for {
			worked, err := w.Step()
			if err != nil {
				return err
			}
			if !worked {
				break
			}
		}
		if !w.offer() {
			return nil
		}
	}
}

// offer gives the task its next record, or tells it where a log ends; false when it knows everything.
func (w *worker) offer() bool {
	var first *reading
	var next entry
	for _, r := range w.readings {
		if waiting := r.log.from(r.Next); len(waiting) > 0 && (first == nil || waiting[0].sequence < next.sequence) {
			first, next = r, waiting[0]
		}
	}
	if first != nil {
		first.give(record.Batch{Records: []record.Record{next.Record}, Next: next.Offset + 1})
		return true
	}
	for _, r := range w.readings {
		if r.told != r.log.end {
			r.give(record.Batch{Next: r.log.end})
			return true
		}
	}
	return false
}

func (r *reading) give(b record.Batch) {
	b.From, b.End = r.From, r.log.end
	r.Next = b.Next
	if b.Next == b.End {
		r.told = b.End
	}
	r.Sink.Offer(lent(b))
}
