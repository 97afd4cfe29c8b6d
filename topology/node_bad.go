package topology

import (
	"errors"
	"strconv"

	"millrace/record"
)

// deadLetterNode writes records that could not be processed, with the headers that Kafka Streams gives them (KIP-1034), so
// that tools for those work here too.
type deadLetterNode struct {
	in         *Instance
	topic      *topicUse
	partitions int32
	headers    []record.Header
}

// bad applies a policy to an error of the present record. nil means that the record has been accounted for; otherwise
// the task stops.
func (in *Instance) bad(policy Policy, kind, where string, err error) error {
	if kind == "processing" {
		in.counter(record.ExpressionError, where, "").n++
	}
	switch {
	case policy == Skip:
		in.counter(record.Dropped, where, kind+"_error").n++
		return nil
	case policy == DeadLetter && in.deadLetter != nil:
		in.deadLetter.write(kind, where, err)
		in.counter(record.DeadLettered, where, kind).n++
		return nil
	}
	advice := "errors." + kind + " is fail: use skip or dead_letter to go on"
	if kind == "timestamp" {
		advice = "use invalid_timestamp: skip or dead_letter on the source to go on"
	}
	return fatal{&RecordError{Where: where, Origin: in.origin, Kind: kind, Err: err, advice: advice}}
}

const maxErrorText = 500

func (d *deadLetterNode) write(kind, where string, err error) {
	out := record.Record{Timestamp: d.in.origin.Timestamp}
	d.headers = d.headers[:0]
	if c := d.in.current; c != nil {
		out.Key, out.Value, out.Timestamp = c.Key, c.Value, c.Timestamp
		d.headers = append(d.headers, c.Headers...)
	} else if row := d.in.result; row != nil { // no single record is to blame: the group and its window must do
		out.Key, out.Timestamp = row.Key, max(row.Time, 0)
		d.headers = append(d.headers, row.Headers...)
	}
	text := err.Error()
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	add := func(name, value string) {
		d.headers = append(d.headers, record.Header{Key: []byte("__streams.errors." + name), Value: []byte(value)})
	}
	add("exception", kind)
	add("message", text)
	add("stacktrace", chain(err))
	if d.in.origin.Topic != "" {
		add("topic", d.in.origin.Topic)
		add("partition", strconv.Itoa(int(d.in.origin.Partition)))
		add("offset", strconv.FormatInt(d.in.origin.Offset, 10))
	}
	add("step", where)
	out.Headers = d.headers
	if size := len(out.Key) + len(out.Value); size > d.in.env.MaxRecordBytes {
		add("truncated", strconv.Itoa(len(out.Value)))
		out.Value = out.Value[:max(d.in.env.MaxRecordBytes-len(out.Key), 0)]
		out.Headers = d.headers
	}
	partition := d.in.env.Task.Partition % d.partitions
	if out.Key != nil {
		partition = record.PartitionOf(out.Key, d.partitions)
	}
	d.in.counter(record.Produced, "dead_letter", d.topic.name).n++
	d.in.out.Append(d.topic, partition, &out)
}

// chain lists the causes of an error, which is as much of a stack trace as errors have.
func chain(err error) string {
	var text []byte
	for ; err != nil; err = errors.Unwrap(err) {
		if len(text) > 0 {
			text = append(text, "\ncaused by: "...)
		}
		text = append(text, err.Error()...)
		if len(text) > 4*maxErrorText {
			return string(text[:4*maxErrorText])
		}
	}
	return string(text)
}
