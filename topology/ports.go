package topology

import "millrace/record"

// Store is one step's state in one task, as the operators use it. Rows are apart by segment: the end of their window or
// slice, 0 where there is none. Values that it returns are good until its next call.
type Store interface {
	Load(segment int64, key []byte) (value []byte, found bool, err error)
	// Save writes the row that the last Load asked for; emit marks it for Changed. Delete ends it.
	Save(segment int64, key, value []byte, emit bool)
	Delete(segment int64, key []byte)
	// Pending tells whether the row that the last Load asked for is marked and not yet visited by Changed.
	Pending() bool
	// DropSegment says that all rows of the segment have been deleted.
	DropSegment(segment int64)
	// Segments returns the segments that may hold rows, ascending.
	Segments() []int64
	// Keys returns, sorted, the keys that may have rows in any of the segments.
	Keys(segments ...int64) (KeySet, error)
	// Changed visits the marked rows once each, in the order of their first change.
	Changed(visit func(segment int64, key, value []byte) error) error
}

// KeySet is a sorted set of keys.
type KeySet interface {
	Len() int
	At(i int) []byte
}

// Decoder reads the wanted fields of a value; into[i] is the field of slot i and may alias src.
type Decoder interface {
	Decode(src []byte, into []record.Value) error
}

// Encoder writes a row's fields as a value.
type Encoder interface {
	Append(dst []byte, values []record.Value) []byte
}

// Formats makes the codecs that a plan names. A value of a task's instance is used by that task alone.
type Formats interface {
	Decoder(format string, paths []FieldPath) (Decoder, error)
	Encoder(format string, fields []record.Field) (Encoder, error)
}

// FieldPath is a field that a plan reads of a source's values.
type FieldPath struct {
	Segments []string
	Type     record.Type
}

// Outputs collects what one task writes in one epoch, by topic of the plan and partition.
type Outputs struct {
	topics [][]*record.Outbox
}

// Append adds a record.
func (o *Outputs) Append(to *topicUse, partition int32, r *record.Record) {
	for len(o.topics) <= to.number {
		o.topics = append(o.topics, nil)
	}
	for int32(len(o.topics[to.number])) <= partition {
		o.topics[to.number] = append(o.topics[to.number], nil)
	}
	box := o.topics[to.number][partition]
	if box == nil {
		box = &record.Outbox{To: record.TopicPartition{Topic: to.name, Partition: partition}}
		o.topics[to.number][partition] = box
	}
	box.Append(r.Key, r.Value, r.Headers, r.Timestamp)
}

// Boxes returns the outboxes that are not empty, in the order of the plan's topics and their partitions.
func (o *Outputs) Boxes() []*record.Outbox {
	var boxes []*record.Outbox
	for _, t := range o.topics {
		for _, b := range t {
			if b != nil && b.Count > 0 {
				boxes = append(boxes, b)
			}
		}
	}
	return boxes
}

// Bytes is the size of what waits.
func (o *Outputs) Bytes() int {
	n := 0
	for _, t := range o.topics {
		for _, b := range t {
			if b != nil {
				n += b.Bytes()
			}
		}
	}
	return n
}

// Reset empties all outboxes and keeps their memory.
func (o *Outputs) Reset() {
	for _, t := range o.topics {
		for _, b := range t {
			if b != nil {
				b.Reset()
			}
		}
	}
}

// topicUse is a topic that the plan writes to.
type topicUse struct {
	number int
	name   string
}
