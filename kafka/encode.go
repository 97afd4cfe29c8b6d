package kafka

import (
	"encoding/binary"
	"reflect"
	"time"
	"unsafe"

	"millrace/record"

	"github.com/IBM/sarama"
)

// sarama encodes a batch record by record, each from a heap object of its own, which costs as much as all the rest of
// producing. But where a RecordBatch has its records as bytes already, sarama writes those, and asks Records for nothing
// but their number. The field is not exported; sarama's version is pinned, and a test compares what both ways write.
var encodedRecords = fieldOf(reflect.TypeFor[sarama.RecordBatch](), "compressedRecords")

func fieldOf(t reflect.Type, name string) uintptr {
	f, ok := t.FieldByName(name)
	if !ok || f.Type != reflect.TypeFor[[]byte]() {
		panic("sarama has changed RecordBatch." + name + ": kafka/encode.go must be adapted")
	}
	return f.Offset
}

func setRecords(b *sarama.RecordBatch, encoded []byte, placeholders []*sarama.Record) {
	*(*[]byte)(unsafe.Add(unsafe.Pointer(b), encodedRecords)) = encoded
	b.Records = placeholders
}

// encodings is the memory of the requests that are being made. sarama has copied it when AsyncProduce returns, so that
// the next ones use it again, and a produced record costs no heap object.
type encodings struct {
	records      []byte // of one batch, before compression
	out          []byte // of all batches
	placeholders []*sarama.Record
}

func (e *encodings) reset() { e.out = e.out[:0] }

// add encodes a batch's records. What it returned before stays as it is.
func (e *encodings) add(st *stream, b *batch, codec sarama.CompressionCodec, latest int64) ([]byte, error) {
	if codec == sarama.CompressionNone {
		from := len(e.out)
		e.out = st.encode(e.out, b, latest)
		return e.out[from:len(e.out):len(e.out)], nil
	}
	e.records = st.encode(e.records[:0], b, latest)
	from := len(e.out)
	out, err := compress(e.out, codec, e.records)
	if err != nil {
		return nil, err
	}
	e.out = out
	return out[from:len(out):len(out)], nil
}

// blanks returns n records of nothing.
func (e *encodings) blanks(n int) []*sarama.Record {
	for len(e.placeholders) < n {
		e.placeholders = append(e.placeholders, make([]*sarama.Record, n)...)
	}
	return e.placeholders[:n]
}

// encode appends the batch's records as the log has them.
func (s *stream) encode(out []byte, b *batch, latest int64) []byte {
	cursor := b.start
	for box, n := b.box, 0; n < b.count; {
		r, ok := cursor.Next()
		if !ok {
			box++
			cursor = s.boxes[box].Walk()
			continue
		}
		out = appendRecord(out, &r, written(r.Timestamp, latest)-b.first, int64(n))
		n++
	}
	return out
}

// appendRecord appends one record of a batch of version 2: its length, and then attributes, deltas, key, value, headers.
func appendRecord(b []byte, r *record.Record, timeDelta, offsetDelta int64) []byte {
	size := 1 + varintLen(timeDelta) + varintLen(offsetDelta) + sizedLen(r.Key) + sizedLen(r.Value) + varintLen(int64(len(r.Headers)))
	for i := range r.Headers {
		size += sizedLen(r.Headers[i].Key) + sizedLen(r.Headers[i].Value)
	}
	b = binary.AppendVarint(b, int64(size))
	b = append(b, 0)
	b = binary.AppendVarint(b, timeDelta)
	b = binary.AppendVarint(b, offsetDelta)
	b = appendSized(b, r.Key)
	b = appendSized(b, r.Value)
	b = binary.AppendVarint(b, int64(len(r.Headers)))
	for i := range r.Headers {
		b = appendSized(b, r.Headers[i].Key)
		b = appendSized(b, r.Headers[i].Value)
	}
	return b
}

// appendSized appends a length and as many bytes; -1 stands for nil.
func appendSized(b, part []byte) []byte {
	if part == nil {
		return append(b, 1)
	}
	return append(binary.AppendVarint(b, int64(len(part))), part...)
}

func sizedLen(part []byte) int { return varintLen(int64(len(part))) + len(part) } // nil's length is as short as 0's

func varintLen(v int64) int {
	n := 1
	for u := uint64(v<<1) ^ uint64(v>>63); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

// encode returns the batch as sarama sends it, numbered on its first sending.
func (d *delivery) encode(st *stream, b *batch) (*sarama.RecordBatch, error) {
	p := d.producer
	records, err := p.encodings.add(st, b, p.codec, d.latest)
	if err != nil {
		return nil, err
	}
	if !b.numbered {
		b.sequence, b.numbered = p.sequences[st.to], true
		p.sequences[st.to] = int32((int64(b.sequence) + int64(b.count)) & 0x7fffffff) // wraps to 0 after the largest int32
	}
	out := &sarama.RecordBatch{Version: 2, Codec: p.codec, LastOffsetDelta: int32(b.count - 1),
		FirstTimestamp: time.UnixMilli(b.first), MaxTimestamp: time.UnixMilli(b.newest), ProducerID: p.id, ProducerEpoch: p.epoch,
		FirstSequence: b.sequence, IsTransactional: p.transactionalID() != nil, PartitionLeaderEpoch: -1}
	setRecords(out, records, p.encodings.blanks(b.count))
	return out, nil
}
