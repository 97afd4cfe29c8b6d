package kafka

import (
	"reflect"
	"time"
	"unsafe"

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
	compressed   []byte // records of all batches
	placeholders []*sarama.Record
}

func (e *encodings) reset() { e.compressed = e.compressed[:0] }

// add returns the batch's records as they are sent. What it returned before stays as it is.
func (e *encodings) add(b *batch, codec sarama.CompressionCodec) ([]byte, error) {
	if codec == sarama.CompressionNone {
		return b.records, nil
	}
	from := len(e.compressed)
	out, err := compress(e.compressed, codec, b.records)
	if err != nil {
		return nil, err
	}
	e.compressed = out
	return out[from:len(out):len(out)], nil
}

// blanks returns n records of nothing.
func (e *encodings) blanks(n int) []*sarama.Record {
	for len(e.placeholders) < n {
		e.placeholders = append(e.placeholders, make([]*sarama.Record, n)...)
	}
	return e.placeholders[:n]
}

// encode returns the batch as sarama sends it, numbered on its first sending.
func (d *delivery) encode(st *stream, b *batch) (*sarama.RecordBatch, error) {
	p := d.producer
	records, err := p.encodings.add(b, p.codec)
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
