package driver

import (
	"context"
	"errors"
	"time"

	"millrace/changelog"
	"millrace/eos"
	"millrace/record"
)

// cluster is the logs and the group's offsets, as tasks and transactions want them of brokers.
type cluster struct {
	logs     map[record.TopicPartition]*partitionLog
	offsets  map[record.TopicPartition]record.Committed
	sequence int64
}

func newCluster() *cluster {
	return &cluster{logs: map[record.TopicPartition]*partitionLog{}, offsets: map[record.TopicPartition]record.Committed{}}
}

func (c *cluster) log(tp record.TopicPartition) *partitionLog {
	l := c.logs[tp]
	if l == nil {
		l = &partitionLog{}
		c.logs[tp] = l
	}
	return l
}

// append makes a record visible at the end of its log.
func (c *cluster) append(tp record.TopicPartition, r record.Record) {
	l := c.log(tp)
	r.Offset = l.end
	l.end++
	l.entries = append(l.entries, entry{Record: r, sequence: c.sequence, watermark: record.NoTime})
	c.sequence++
}

// StableOffsets returns the group's offsets; no transaction is ever pending between two calls of the driver.
func (c *cluster) StableOffsets(_ context.Context, tps []record.TopicPartition) (map[record.TopicPartition]record.Committed, error) {
	found := map[record.TopicPartition]record.Committed{}
	for _, tp := range tps {
		found[tp] = record.Committed{Next: -1}
		if o, ok := c.offsets[tp]; ok {
			found[tp] = o
		}
	}
	return found, nil
}

// StartOffset is 0: nothing is ever removed by age.
func (c *cluster) StartOffset(context.Context, record.TopicPartition) (record.Offset, error) {
	return 0, nil
}

// EndOffset is the high watermark.
func (c *cluster) EndOffset(_ context.Context, tp record.TopicPartition) (record.Offset, error) {
	return c.log(tp).end, nil
}

// Changelog reads a changelog's partition.
func (c *cluster) Changelog(tp record.TopicPartition) (changelog.Reader, func(), error) {
	return reader{tp, c.log(tp)}, func() {}, nil
}

// TopicID is unknown: nobody makes a topic anew here.
func (c *cluster) TopicID(context.Context, record.TopicPartition) (string, error) { return "", nil }

// TombstoneRetention is unknown: compact never removes tombstones.
func (c *cluster) TombstoneRetention(context.Context, string) time.Duration { return 0 }

type reader struct {
	tp  record.TopicPartition
	log *partitionLog
}

func (r reader) Read(_ context.Context, from record.Offset) (record.Batch, error) {
	b := record.Batch{From: r.tp, Next: r.log.end, End: r.log.end}
	for _, e := range r.log.from(from) {
		b.Records = append(b.Records, e.Record)
	}
	return lent(b), nil
}

var errAborted = errors.New("the transaction was aborted, as asked")

// transaction is one epoch on its way into the logs. Its records take their offsets when they are produced, and are
// seen when it commits.
type transaction struct {
	cluster    *cluster
	watermarks map[*record.Outbox]int64 // of the tasks that filled them
	abort      bool

	written map[record.TopicPartition][]entry
	offsets []eos.InputOffset
}

func (x *transaction) Begin(context.Context) error { return nil }

func (x *transaction) Produce(_ context.Context, boxes []*record.Outbox) (map[record.TopicPartition]record.Offset, error) {
	x.written = map[record.TopicPartition][]entry{}
	ends := map[record.TopicPartition]record.Offset{}
	for _, box := range boxes {
		l := x.cluster.log(box.To)
		for cursor := box.Walk(); ; {
			r, ok := cursor.Next()
			if !ok {
				break
			}
			r = clone(r)
			r.Offset = l.end
			l.end++
			x.written[box.To] = append(x.written[box.To], entry{Record: r, sequence: x.cluster.sequence, watermark: x.watermarks[box]})
			x.cluster.sequence++
		}
		ends[box.To] = l.end
	}
	return ends, nil
}

func (x *transaction) CommitOffsets(_ context.Context, offsets []eos.InputOffset, _ func() bool) error {
	x.offsets = offsets
	return nil
}

func (x *transaction) Commit(context.Context) error {
	for tp, entries := range x.written {
		l := x.cluster.log(tp)
		l.end++ // the marker
		if !x.abort {
			l.entries = append(l.entries, entries...)
		}
	}
	if x.abort {
		return errAborted
	}
	for _, o := range x.offsets {
		x.cluster.offsets[o.TopicPartition] = record.Committed{Next: o.Next, Metadata: o.Metadata}
	}
	return nil
}
