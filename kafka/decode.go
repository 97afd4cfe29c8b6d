package kafka

import (
	"encoding/binary"
	"errors"
	"reflect"
	"slices"

	"millrace/record"

	"github.com/IBM/sarama"
)

var errOldFormat = errors.New("the log has records in a message format older than version 2 (Kafka 0.11): rewrite the topic with a newer producer")

// decode turns a fetched block into one batch of records: what lies before next, control records and records of aborted
// transactions are left out, but Next is behind them. Keys and values alias the response.
func decode(tp record.TopicPartition, next record.Offset, block *sarama.FetchResponseBlock) (record.Batch, error) {
	b := record.Batch{From: tp, Next: next, End: block.HighWaterMarkOffset}
	aborted := slices.Clone(block.AbortedTransactions)
	slices.SortFunc(aborted, func(a, b *sarama.AbortedTransaction) int { return int(a.FirstOffset - b.FirstOffset) })
	open := map[int64]bool{} // producers whose records are of an aborted transaction from here on
	n := 0
	for _, set := range block.RecordsSet {
		if set.RecordBatch != nil {
			n += len(set.RecordBatch.Records)
		}
	}
	b.Records = make([]record.Record, 0, n)
	for _, set := range block.RecordsSet {
		rb := set.RecordBatch
		if rb == nil {
			return b, errOldFormat
		}
		if rb.PartialTrailingRecord {
			break
		}
		for len(aborted) > 0 && aborted[0].FirstOffset <= rb.LastOffset() {
			open[aborted[0].ProducerID] = true
			aborted = aborted[1:]
		}
		if rb.Control {
			if isAbort(rb) {
				delete(open, rb.ProducerID)
			}
		} else if !rb.IsTransactional || !open[rb.ProducerID] {
			appendRecords(&b, rb, next)
		}
		b.Next = max(b.Next, rb.LastOffset()+1)
		b.AppendTime = rb.LogAppendTime
	}
	if hidden, ok := nextOffset(block); ok && len(block.RecordsSet) == 0 {
		b.Next = max(b.Next, hidden)
	}
	return b, nil
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

func appendRecords(b *record.Batch, rb *sarama.RecordBatch, next record.Offset) {
	first, newest := rb.FirstTimestamp.UnixMilli(), rb.MaxTimestamp.UnixMilli()
	for _, r := range rb.Records {
		offset := rb.FirstOffset + r.OffsetDelta
		if offset < next {
			continue
		}
		out := record.Record{Key: r.Key, Value: r.Value, Offset: offset, Timestamp: first + r.TimestampDelta.Milliseconds()}
		if rb.LogAppendTime {
			out.Timestamp = newest
		}
		for _, h := range r.Headers {
			out.Headers = append(out.Headers, record.Header{Key: h.Key, Value: h.Value})
		}
		b.Bytes += len(r.Key) + len(r.Value)
		b.Records = append(b.Records, out)
	}
}

// isAbort reads a control record: version and type, two bytes each; type 0 ends a transaction as aborted.
func isAbort(rb *sarama.RecordBatch) bool {
	if len(rb.Records) == 0 || len(rb.Records[0].Key) < 4 {
		return false
	}
	return binary.BigEndian.Uint16(rb.Records[0].Key[2:]) == 0
}
