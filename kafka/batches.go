package kafka

import (
	"time"

	"millrace/record"
)

// A stream is what an epoch writes to one partition, as batches in order. Only the first unacknowledged batches may be in
// flight, and a batch is sent again with the sequence number that it had.
type stream struct {
	to       record.TopicPartition
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

// A batch is a run of a stream's records. Its bytes are the outbox's own where they can be, and live as long as that.
type batch struct {
	records  []byte
	count    int
	first    int64 // timestamp of the first record, ms
	newest   int64
	sequence int32
	numbered bool
}

// bounds are what a batch must keep to.
type bounds struct {
	bytes  int   // of its records, unless it is a single one
	latest int64 // timestamp; see futureLimit
}

// streams makes batches of the outboxes. Boxes of the same partition follow each other in the order given.
func streams(boxes []*record.Outbox, limits bounds) []*stream {
	byPartition := map[record.TopicPartition]*stream{}
	var order []*stream
	runs := map[*stream][]record.Run{}
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
		runs[st] = append(runs[st], b.Runs()...)
	}
	for _, st := range order {
		st.cut(runs[st], limits)
	}
	return order
}

// worthCopying is the size up to which a run is put into one batch with its neighbours: many tasks may write a little each
// to the same partition, and a request takes one batch of it.
const worthCopying = 32 << 10

// cut makes batches of runs: of each as it is, but for small ones and those that do not keep to the limits, whose records
// are written anew.
func (s *stream) cut(runs []record.Run, limits bounds) {
	for len(runs) > 0 {
		n := 0 // runs up to the next one that goes as it is
		for n < len(runs) && !(limits.keeps(runs[n]) && len(runs[n].Records) > worthCopying) {
			n++
		}
		switch {
		case n == 0, n == 1 && limits.keeps(runs[0]): // also a small one without a neighbour to be put together with
			n = 1
			s.add(runs[0])
		default:
			s.rewrite(runs[:n], limits)
		}
		runs = runs[n:]
	}
}

func (l bounds) keeps(r record.Run) bool {
	return r.Oldest >= 0 && r.Newest <= l.latest && (len(r.Records) <= l.bytes || r.Count == 1)
}

func (s *stream) add(r record.Run) {
	s.batches = append(s.batches, batch{records: r.Records, count: r.Count, first: r.First, newest: r.Newest})
}

// rewrite makes batches of records that cannot go as they are.
func (s *stream) rewrite(runs []record.Run, limits bounds) {
	left := 0
	for _, r := range runs {
		left += len(r.Records) + 2*record.MaxFraming // distances may become longer
	}
	var run record.Run
	cursor := record.WalkRuns(runs)
	for in, ok := cursor.Next(); ok; in, ok = cursor.Next() {
		size := record.MaxFraming + len(in.Key) + len(in.Value)
		for _, h := range in.Headers {
			size += record.MaxFraming + len(h.Key) + len(h.Value)
		}
		if run.Count > 0 && len(run.Records)+size > limits.bytes {
			s.add(run)
			left -= len(run.Records)
			run = record.Run{}
		}
		if run.Count == 0 {
			run.Records = make([]byte, 0, max(min(left, limits.bytes), size))
		}
		in.Timestamp = max(0, min(in.Timestamp, limits.latest)) // brokers take none before 1970
		run.Append(&in)
	}
	s.add(run)
}

// futureLimit is how far ahead of the wall clock a record's timestamp may be: brokers since 4.0 refuse more than an hour
// (KIP-937), and a refused batch would repeat for ever. Later times are written as this limit; the row has its own.
const futureLimit = 50 * time.Minute
