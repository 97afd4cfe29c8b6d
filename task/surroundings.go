package task

import (
	"context"
	"time"

	"millrace/changelog"
	"millrace/record"
	"millrace/store"
	"millrace/topology"
)

// Cluster is what a task asks the brokers at its start.
type Cluster interface {
	// StableOffsets returns the group's offsets once no transaction is pending on them.
	StableOffsets(ctx context.Context, tps []record.TopicPartition) (map[record.TopicPartition]record.Committed, error)
	StartOffset(ctx context.Context, tp record.TopicPartition) (record.Offset, error)
	// EndOffset returns the high watermark, open transactions included.
	EndOffset(ctx context.Context, tp record.TopicPartition) (record.Offset, error)
	// Changelog opens a changelog partition for a restore; close gives its connection back.
	Changelog(tp record.TopicPartition) (r changelog.Reader, close func(), err error)
	// TopicID is the identity of a partition's topic, which one that is made anew under the old name does not have; empty if unknown.
	TopicID(ctx context.Context, tp record.TopicPartition) (string, error)
	// TombstoneRetention tells how long a changelog keeps tombstones; 0 if unknown.
	TombstoneRetention(ctx context.Context, topic string) time.Duration
}

// Listener hears what a task does that people or metrics care about.
type Listener interface {
	RestoreStarted(task record.TaskID, store string, from, to int64, reused bool)
	RestoreProgress(task record.TaskID, store string, position, end int64)
	// RestoreGivenUp ends a restore that Restored will not end: it failed, or the task went to another process.
	RestoreGivenUp(task record.TaskID, store string)
	Restored(task record.TaskID, store string, reused bool, replayed int64, took time.Duration)
	Flushed(task record.TaskID, rows int, bytes int64, took time.Duration)
	Warn(code, message string, fields ...any)
}

// Options are the same for all tasks of a process.
type Options struct {
	Plan    *topology.Plan
	Formats topology.Formats
	Cluster Cluster
	Listener
	// OpenEngine opens the directory of a task's rows.
	OpenEngine func(id record.TaskID, stores []string) (store.Engine, store.OpenResult, error)
	// Wipe empties it.
	Wipe func(id record.TaskID) error
	// Partitions of the topics that the job reads and writes.
	Partitions func(topic string) int32
	// Writers tells how many tasks write to a step's repartition topic.
	Writers func(step string) int32
	// Drained tells the fetcher that a partition has room again.
	Drained func()
	// Hurry asks for the epoch to end early: a task has reached its share of the epoch's memory.
	Hurry func()
	// Quiet tells that the task has done all that has arrived; nil if nobody wants to know.
	Quiet func()
	Clock func() time.Time

	TransactionalID string
	ExactlyOnce     bool
	TakeProgress    bool // offsets_policy: where group offsets and state disagree, the state is right
	FlushInterval   time.Duration
	FlushSlots      chan struct{} // holds a token for each flush that may run at the same time in this process
	CacheBytes      int           // of this task
	EpochBytes      int           // of this task: uncommitted rows and outputs
	MaxRecordBytes  int
}
