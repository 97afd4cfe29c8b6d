// Package task is one partition of one subtopology at work: it takes fetched batches, walks them through the operators,
// and hands over what an epoch has done. A Task belongs to the goroutine of its Run; other goroutines reach it only
// through its inbox and its commands.
package task

import (
	"time"

	"millrace/changelog"
	"millrace/record"
	"millrace/store"
	"millrace/topology"
)

// Task is made by Start.
type Task struct {
	id       record.TaskID
	options  Options
	sub      *topology.Subtopology
	instance *topology.Instance
	state    *store.State // nil: the subtopology has no stores
	topicIDs []string     // identities of the changelogs, by store; empty where unknown
	storeID  string       // of the rows on disk; empty while a state kept from before is used
	inbox    *inbox
	inputs   []input
	commands chan command
	done     chan struct{}
	err      error // why Run ended; read after done

	batch     record.Batch // being processed
	input     int          // that it is of
	at        int          // next record in it
	dirty     bool         // something happened since the last epoch
	hurried   bool         // the epoch was asked to end early
	quiet     bool         // that all is done was told in this epoch
	flushing  bool         // holds one of the process's slots for flushes
	records   int64        // processed in this epoch
	epoch     int64        // number of the last epoch that this task was a part of
	meter     meter
	scratches []store.Scratch
	told      []byte // the clock as of the last epoch
	pending   *part  // handed over, not decided

	spare      *topology.Outputs // of the epoch before: while it is undecided the committer reads it
	changelogs []*record.Outbox  // likewise
	encoder    changelog.Encoder
}

// input is one partition that the task reads.
type input struct {
	tp       record.TopicPartition
	source   string
	present  bool
	latest   bool          // where to start without any offset
	position record.Offset // next to process
	idle     time.Duration // idle_timeout; 0: never
	heard    time.Time     // when the last record came
}

func newTask(id record.TaskID, o Options) *Task {
	t := &Task{id: id, options: o, sub: o.Plan.Subtopologies[id.Subtopology], commands: make(chan command), done: make(chan struct{})}
	for _, in := range t.sub.Inputs {
		i := input{tp: record.TopicPartition{Topic: in.Topic, Partition: id.Partition}, source: in.Source, heard: o.Clock()}
		i.present = id.Partition < o.Partitions(in.Topic)
		i.latest, i.idle = in.StartsLatest(), in.IdleTimeout()
		t.inputs = append(t.inputs, i)
	}
	t.inbox = newInbox(len(t.inputs), o.Drained)
	return t
}

// ID returns the task's id.
func (t *Task) ID() record.TaskID { return t.id }

// partitions returns the input partitions that exist.
func (t *Task) partitions() []record.TopicPartition {
	var tps []record.TopicPartition
	for _, in := range t.inputs {
		if in.present {
			tps = append(tps, in.tp)
		}
	}
	return tps
}

func (t *Task) changelog(i int) record.TopicPartition {
	return record.TopicPartition{Topic: t.options.Plan.ChangelogTopic(t.sub.Stores[i]), Partition: t.id.Partition}
}

// Reading is a partition that the task wants to be fed.
type Reading struct {
	From record.TopicPartition
	Next record.Offset
	Sink Sink
}

// Sink takes fetched batches; see kafka.Sink.
type Sink interface {
	Full() bool
	Offer(b record.Batch)
	Fail(err error)
}

// Readings returns what the task wants to be fed, from where on. It is called before Run.
func (t *Task) Readings() []Reading {
	var all []Reading
	for i, in := range t.inputs {
		if in.present {
			all = append(all, Reading{in.tp, in.position, port{t.inbox, i}})
		}
	}
	return all
}
