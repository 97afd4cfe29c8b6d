package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"slices"

	"millrace/record"

	"github.com/IBM/sarama"
)

var (
	errOldFormat  = errors.New("the log has records in a message format older than version 2 (Kafka 0.11): rewrite the topic with a newer producer")
	errUnreadable = errors.New("the broker's answer cannot be read")
	errDamaged    = errors.New("a batch cannot be read: it is damaged, or larger than any answer may be; kafka-dump-log.sh on the broker tells which")
)

// noTimestamp is what Kafka stores when a producer gave a record no time.
const noTimestamp = -1

// gathering makes one batch of records of a partition's answer: what lies before next, control records and records of
// aborted transactions are left out, but the batch's Next is behind them.
type gathering struct {
	batch   record.Batch
	aborted []*sarama.AbortedTransaction // by first offset; those that have begun are gone
	open    map[int64]bool               // producers whose records are of an aborted transaction from here on
	into    target
}

// header is what gathering asks about a batch of the log.
type header struct {
	first, last            record.Offset
	producer               int64
	transactional, control bool
	abort                  bool // a control batch that ends a transaction as aborted
}

func gather(tp record.TopicPartition, next record.Offset, block *sarama.FetchResponseBlock) *gathering {
	g := &gathering{batch: record.Batch{From: tp, Next: next, End: block.HighWaterMarkOffset}, open: map[int64]bool{}}
	g.aborted = slices.Clone(block.AbortedTransactions)
	slices.SortFunc(g.aborted, func(a, b *sarama.AbortedTransaction) int { return int(a.FirstOffset - b.FirstOffset) })
	return g
}

// wants tells whether the records of the next batch of the log count.
func (g *gathering) wants(h header) bool {
	for len(g.aborted) > 0 && g.aborted[0].FirstOffset <= h.last {
		g.open[g.aborted[0].ProducerID] = true
		g.aborted = g.aborted[1:]
	}
	if h.abort {
		delete(g.open, h.producer)
	}
	return !h.control && !(h.transactional && g.open[h.producer])
}

func (g *gathering) passed(h header) { g.batch.Next = max(g.batch.Next, h.last+1) }

func (g *gathering) done() record.Batch {
	g.batch.Records, g.batch.Bytes = g.into.records, g.into.bytes
	return g.batch
}

// decode turns a block that sarama has read into one batch of records. Keys and values alias the response.
func decode(tp record.TopicPartition, next record.Offset, block *sarama.FetchResponseBlock) (record.Batch, error) {
	g := gather(tp, next, block)
	if block.Partial {
		return g.batch, errDamaged
	}
	g.into.size(block.RecordsSet)
	for _, set := range block.RecordsSet {
		rb := set.RecordBatch
		if rb == nil {
			return g.batch, errOldFormat
		}
		if rb.PartialTrailingRecord {
			// What lies before the cut batch is read, even if compaction has left nothing of it.
			if g.batch.Next = max(g.batch.Next, rb.FirstOffset); g.batch.Next == next {
				return g.batch, errDamaged
			}
			break
		}
		h := header{first: rb.FirstOffset, last: rb.LastOffset(), producer: rb.ProducerID, transactional: rb.IsTransactional, control: rb.Control}
		h.abort = rb.Control && len(rb.Records) > 0 && endsAsAborted(rb.Records[0].Key)
		if g.wants(h) {
			g.into.append(rb, next)
		}
		g.passed(h)
	}
	if hidden, ok := nextOffset(block); ok && len(block.RecordsSet) == 0 {
		g.batch.Next = max(g.batch.Next, hidden)
	}
	return g.done(), nil
}

// nextOffset tells how far the block reaches if it holds nothing but batches that compaction has emptied: sarama drops
// those and keeps the offset to itself. Without it a position could not pass them. A block that is empty because the
// response was full has no such offset. The field's name is pinned with sarama's version, and a test holds it.
func nextOffset(block *sarama.FetchResponseBlock) (record.Offset, bool) {
	f := reflect.ValueOf(block).Elem().FieldByName("recordsNextOffset")
	if !f.IsValid() || f.Kind() != reflect.Pointer || f.IsNil() {
		return 0, false
	}
	return f.Elem().Int(), true
}

// target collects the records of one block. It is sized before, so that neither a record nor its headers cost a heap
// object of their own.
type target struct {
	records []record.Record
	headers []record.Header
	bytes   int
}

func (t *target) size(sets []*sarama.Records) {
	records, headers := 0, 0
	for _, set := range sets {
		if set.RecordBatch == nil {
			continue
		}
		records += len(set.RecordBatch.Records)
		for _, r := range set.RecordBatch.Records {
			headers += len(r.Headers)
		}
	}
	t.records = make([]record.Record, 0, records)
	t.headers = make([]record.Header, 0, headers)
}

func (t *target) append(rb *sarama.RecordBatch, next record.Offset) {
	first := int64(noTimestamp)
	if !rb.FirstTimestamp.IsZero() {
		first = rb.FirstTimestamp.UnixMilli()
	}
	for _, r := range rb.Records {
		offset := rb.FirstOffset + r.OffsetDelta
		if offset < next {
			continue
		}
		out := record.Record{Key: r.Key, Value: r.Value, Offset: offset, Timestamp: first + r.TimestampDelta.Milliseconds()}
		if rb.LogAppendTime {
			out.Timestamp = rb.MaxTimestamp.UnixMilli()
		}
		if n := len(t.headers); len(r.Headers) > 0 {
			for _, h := range r.Headers {
				t.headers = append(t.headers, record.Header{Key: h.Key, Value: h.Value})
			}
			out.Headers = t.headers[n:len(t.headers):len(t.headers)]
		}
		t.bytes += len(r.Key) + len(r.Value)
		t.records = append(t.records, out)
	}
}

// endsAsAborted reads the key of a control record: version and type, two bytes each; type 0 ends a transaction as aborted.
func endsAsAborted(key []byte) bool { return len(key) >= 4 && binary.BigEndian.Uint16(key[2:]) == 0 }

// unreadable marks the error of a Fetch whose answer arrived and could not be decoded: a wrong checksum, a compression
// that does not open. One such batch spoils the whole answer.
func unreadable(err error) error {
	var (
		code    sarama.KError
		network net.Error
	)
	switch {
	case errors.As(err, &code), errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, sarama.ErrNotConnected):
		return err
	}
	return fmt.Errorf("%w: %w", errUnreadable, err)
}
