package kafka

import (
	"time"

	"millrace/record"
)

// A stream is what an epoch writes to one partition, as batches in order. Only the first unacknowledged batches may be in
// flight, and a batch is sent again with the sequence number that it had.
type stream struct {
	to       record.TopicPartition
	boxes    []*record.Outbox
	batches  []batch
	next     int   // first batch not sent
	acked    int   // first batch not acknowledged
	failed   error // why the rest must be sent again
	end      record.Offset
	inFlight int
}

// maySend tells whether the next batch may go. The first batch of a producer epoch goes alone: a broker that has not heard
// of the epoch yet may take any sequence number for the first, and then the second without it.
func (s *stream) maySend() bool {
	switch {
	case s.failed != nil, s.next == len(s.batches):
		return false
	case s.acked == 0 && s.inFlight > 0 && s.batches[0].sequence == 0:
		return false
	}
	return s.inFlight < maxInFlight
}

func (s *stream) fail(err error) {
	if s.failed == nil {
		s.failed = err // what follows is its echo
	}
}

// A batch is a run of a stream's records. It is encoded when it is sent, and again if it is sent again, so that only what
// is being sent needs the room.
type batch struct {
	box      int           // the outbox that it begins in
	start    record.Cursor // before its first record
	count    int
	bytes    int
	first    int64 // timestamp of the first record, ms
	newest   int64
	sequence int32
	numbered bool
}

// streams cuts the outboxes into batches. Boxes of the same partition follow each other in the order given.
func streams(boxes []*record.Outbox, batchBytes int, latest int64) []*stream {
	byPartition := map[record.TopicPartition]*stream{}
	var order []*stream
	for _, b := range boxes {
		if b.Count == 0 {
			continue // a stream without batches would never be acknowledged
		}
		st := byPartition[b.To]
		if st == nil {
			st = &stream{to: b.To}
			byPartition[b.To] = st
			order = append(order, st)
		}
		st.boxes = append(st.boxes, b)
	}
	for _, st := range order {
		for i := range st.boxes {
			st.cut(i, batchBytes, latest)
		}
	}
	return order
}

func (s *stream) cut(box, limit int, latest int64) {
	cursor := s.boxes[box].Walk()
	for {
		before := cursor
		in, ok := cursor.Next()
		if !ok {
			return
		}
		size := recordOverhead + len(in.Key) + len(in.Value)
		for _, h := range in.Headers {
			size += recordOverhead + len(h.Key) + len(h.Value)
		}
		at := written(in.Timestamp, latest)
		if len(s.batches) == 0 || s.batches[len(s.batches)-1].bytes+size > limit {
			s.batches = append(s.batches, batch{box: box, start: before, first: at, newest: at})
		}
		b := &s.batches[len(s.batches)-1]
		b.count++
		b.bytes += size
		b.newest = max(b.newest, at)
	}
}

// recordOverhead is an upper bound of a record's framing in a batch, without headers.
const recordOverhead = 24

// futureLimit is how far ahead of the wall clock a record's timestamp may be: brokers since 4.0 refuse more than an hour
// (KIP-937), and a refused batch would repeat for ever. Later times are written as this limit; the row has its own.
const futureLimit = 50 * time.Minute

// written is a record's timestamp as it goes to the broker, which takes none before 1970 and none far in the future.
func written(timestamp, latest int64) int64 { return max(0, min(timestamp, latest)) }
