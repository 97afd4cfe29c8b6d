package driver

import (
	"bytes"
	"slices"

	"millrace/record"
)

// partitionLog is one partition of a topic as a reader of committed records sees it. Markers, and records of aborted
// transactions, take offsets that hold nothing, as they do in Kafka.
type partitionLog struct {
	entries []entry
	end     record.Offset
}

// entry is a record with the place that it has among the records of all partitions, by which work that is done again
// takes them in the order in which it took them first.
type entry struct {
	record.Record
	sequence  int64
	watermark int64 // of the task that wrote it; record.NoTime for input
}

// from returns the entries at and behind an offset.
func (l *partitionLog) from(next record.Offset) []entry {
	i, _ := slices.BinarySearchFunc(l.entries, next, func(e entry, next record.Offset) int { return int(e.Offset - next) })
	return l.entries[i:]
}

// compact keeps the last record of each key, tombstones among them, as a broker may do at any time.
func (l *partitionLog) compact() {
	last := map[string]record.Offset{}
	for _, e := range l.entries {
		last[string(e.Key)] = e.Offset
	}
	l.entries = slices.DeleteFunc(l.entries, func(e entry) bool { return last[string(e.Key)] != e.Offset })
}

// clone copies a record out of an outbox, whose memory is used again.
func clone(r record.Record) record.Record {
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	headers := make([]record.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = record.Header{Key: bytes.Clone(h.Key), Value: bytes.Clone(h.Value)}
	}
	r.Headers = headers
	return r
}
