package driver

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"millrace/record"
)

// Output is a committed record of a topic that the job writes to.
type Output struct {
	record.Record
	Partition int32
	// Watermark is the event time of the task that wrote it, as of the commit; record.NoTime without any.
	Watermark int64
}

// Read returns what a sink's topic holds, by partition and offset.
func (d *Driver) Read(sink string) []Output { return d.read(d.outputs[sink]) }

// DeadLetters returns what the dead-letter topic holds.
func (d *Driver) DeadLetters() []Output { return d.read(d.deadLetter) }

func (d *Driver) read(topic string) []Output {
	var all []Output
	for p := range d.partitions {
		for _, e := range d.cluster.log(record.TopicPartition{Topic: topic, Partition: p}).entries {
			all = append(all, Output{Record: e.Record, Partition: p, Watermark: e.watermark})
		}
	}
	return all
}

type tallies map[record.Tally]record.Tally // by what, where and detail

func (t tallies) add(more []record.Tally) {
	for _, m := range more {
		if m.Spread != nil {
			continue // of times, which are no result
		}
		place := m
		place.N, place.Bytes = 0, 0
		sum := t[place]
		m.N += sum.N
		m.Bytes += sum.Bytes
		t[place] = m
	}
}

// Tallies returns the sums over all committed epochs, by place, outcome and detail.
func (d *Driver) Tallies() []record.Tally {
	var all []record.Tally
	for _, t := range d.tallies {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b record.Tally) int {
		return cmp.Or(cmp.Compare(a.Where, b.Where), cmp.Compare(a.What, b.What), cmp.Compare(a.Detail, b.Detail))
	})
	return all
}

// listener takes what tasks tell. A warning means that they found offsets and state apart, which nothing here may cause.
type listener struct{ driver *Driver }

func (listener) RestoreStarted(record.TaskID, string, int64, int64, bool)           {}
func (listener) RestoreGivenUp(record.TaskID, string)                               {}
func (listener) RestoreProgress(record.TaskID, string, int64, int64)                {}
func (listener) Restored(record.TaskID, string, bool, int64, time.Duration)         {}
func (listener) Flushed(task record.TaskID, rows int, bytes int64, _ time.Duration) {}

func (l listener) Warn(code, message string, fields ...any) {
	_ = l.driver.fail(fmt.Errorf("%s: %s %v", code, message, fields)) // every call of the driver returns it
}
