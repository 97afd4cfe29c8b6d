package kafka

import (
	"time"

	"millrace/record"

	"github.com/IBM/sarama"
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

type batch struct {
	from, to  int // records in the slab
	bytes     int
	first     int64 // timestamp of the first record, ms
	newest    int64
	sequence  int32
	numbered  bool
	addresses []*sarama.Record
}

// The slab holds the records of an epoch in the form that sarama encodes. Its memory is used again by the next epoch, so
// that a produced record costs no heap object. Blocks keep the records' addresses stable while it grows.
type slab struct {
	blocks    [][]sarama.Record
	addresses []*sarama.Record
	used      int
}

const slabBlock = 4096

func (s *slab) take() *sarama.Record {
	if s.used == len(s.blocks)*slabBlock {
		s.blocks = append(s.blocks, make([]sarama.Record, slabBlock))
	}
	r := &s.blocks[s.used/slabBlock][s.used%slabBlock]
	s.used++
	return r
}

// recordOverhead is an upper bound of a record's framing in a batch, without headers.
const recordOverhead = 24

// futureLimit is how far ahead of the wall clock a record's timestamp may be: brokers since 4.0 refuse more than an hour
// (KIP-937), and a refused batch would repeat for ever. Later times are written as this limit; the row has its own.
const futureLimit = 50 * time.Minute

// written is a record's timestamp as it goes to the broker, which takes none before 1970 and none far in the future.
func written(timestamp, latest int64) int64 { return max(0, min(timestamp, latest)) }

// streams lays the outboxes out as batches. Boxes of the same partition follow each other in the order given.
func (s *slab) streams(boxes []*record.Outbox, batchBytes int) []*stream {
	s.used = 0
	byPartition := map[record.TopicPartition]*stream{}
	var order []*stream
	grouped := map[*stream][]*record.Outbox{}
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
		grouped[st] = append(grouped[st], b)
	}
	latest := time.Now().Add(futureLimit).UnixMilli()
	for _, st := range order {
		for _, b := range grouped[st] {
			s.lay(st, b, batchBytes, latest)
		}
	}
	s.address(order)
	return order
}

func (s *slab) lay(st *stream, box *record.Outbox, limit int, latest int64) {
	for cursor := box.Walk(); ; {
		in, ok := cursor.Next()
		if !ok {
			return
		}
		at := written(in.Timestamp, latest)
		size := recordOverhead + len(in.Key) + len(in.Value)
		for _, h := range in.Headers {
			size += recordOverhead + len(h.Key) + len(h.Value)
		}
		if len(st.batches) == 0 || st.batches[len(st.batches)-1].bytes+size > limit {
			st.batches = append(st.batches, batch{from: s.used, first: at, newest: at})
		}
		b := &st.batches[len(st.batches)-1]
		r := s.take()
		r.Key, r.Value = in.Key, in.Value
		setHeaders(r, in.Headers)
		r.OffsetDelta = int64(s.used - 1 - b.from)
		r.TimestampDelta = time.Duration(at-b.first) * time.Millisecond
		b.to = s.used
		b.bytes += size
		b.newest = max(b.newest, at)
	}
}

// setHeaders uses the headers again that the slot had in an earlier epoch.
func setHeaders(r *sarama.Record, headers []record.Header) {
	used := r.Headers[:cap(r.Headers)]
	r.Headers = r.Headers[:0]
	for i, h := range headers {
		if i < len(used) && used[i] != nil {
			*used[i] = sarama.RecordHeader{Key: h.Key, Value: h.Value}
			r.Headers = r.Headers[:i+1]
			continue
		}
		r.Headers = append(r.Headers, &sarama.RecordHeader{Key: h.Key, Value: h.Value})
	}
}

// address fills the batches' pointers, which must wait until the slab has stopped growing.
func (s *slab) address(streams []*stream) {
	s.addresses = s.addresses[:0]
	for i := range s.used {
		s.addresses = append(s.addresses, &s.blocks[i/slabBlock][i%slabBlock])
	}
	for _, st := range streams {
		for i := range st.batches {
			b := &st.batches[i]
			b.addresses = s.addresses[b.from:b.to:b.to]
		}
	}
}

// encode returns the batch as sarama sends it, numbered on its first sending.
func (p *Producer) encode(to record.TopicPartition, b *batch) *sarama.RecordBatch {
	n := int32(b.to - b.from)
	if !b.numbered {
		b.sequence, b.numbered = p.sequences[to], true
		p.sequences[to] = int32((int64(b.sequence) + int64(n)) & 0x7fffffff) // wraps to 0 after the largest int32
	}
	return &sarama.RecordBatch{Version: 2, Codec: p.codec, CompressionLevel: sarama.CompressionLevelDefault, LastOffsetDelta: n - 1,
		FirstTimestamp: time.UnixMilli(b.first), MaxTimestamp: time.UnixMilli(b.newest), ProducerID: p.id, ProducerEpoch: p.epoch,
		FirstSequence: b.sequence, Records: b.addresses, IsTransactional: p.transactionalID() != nil, PartitionLeaderEpoch: -1}
}
