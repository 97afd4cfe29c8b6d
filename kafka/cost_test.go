package kafka

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"millrace/record"

	"github.com/IBM/sarama"
)

// boxesOf lays out an epoch of small records.
func boxesOf(topic string, partitions int32, each int) []*record.Outbox {
	var boxes []*record.Outbox
	headers := []record.Header{{Key: []byte("h"), Value: []byte("v")}}
	for p := range partitions {
		o := &record.Outbox{To: record.TopicPartition{Topic: topic, Partition: p}}
		for i := range each {
			o.Append(fmt.Appendf(nil, "key-%08d", i), make([]byte, 100), headers, time.Now().UnixMilli())
		}
		boxes = append(boxes, o)
	}
	return boxes
}

// encodeAll cuts the boxes and encodes every batch, as a delivery does.
func encodeAll(e *encodings, boxes []*record.Outbox, batchBytes int) {
	e.reset()
	for _, st := range streams(boxes, batchBytes, math.MaxInt64) {
		for i := range st.batches {
			_, _ = e.add(st, &st.batches[i], sarama.CompressionNone, math.MaxInt64) // fails where it compresses only
			e.blanks(st.batches[i].count)
		}
	}
}

func TestEncodingCostsNoHeapObjectARecord(t *testing.T) {
	var e encodings
	boxes := boxesOf("t", 4, 5000)
	encodeAll(&e, boxes, 64<<10) // the first epoch pays for the memory
	got := testing.AllocsPerRun(10, func() { encodeAll(&e, boxes, 64<<10) })
	if perRecord := got / 20_000; perRecord > 0.01 {
		t.Errorf("%v heap objects for 20000 records", got)
	}
}

func TestBatchesKeepTheirLimitAndTheirFirstGoesAlone(t *testing.T) {
	st := streams(boxesOf("t", 1, 2000), 10_000, math.MaxInt64)[0]
	if len(st.batches) < 20 {
		t.Fatalf("%d batches", len(st.batches))
	}
	records := 0
	for i := range st.batches {
		b := &st.batches[i]
		var into target
		encoded := st.encode(nil, b, math.MaxInt64)
		if len(encoded) > b.bytes || b.bytes > 10_000 {
			t.Errorf("a batch of %d bytes counts as %d", len(encoded), b.bytes)
		}
		head := make([]byte, batchHead)
		binary.BigEndian.PutUint32(head[57:], uint32(b.count))
		if err := into.walk(head, encoded, 0); err != nil || into.records[b.count-1].Offset != int64(b.count-1) {
			t.Errorf("a batch of %d records: %v", b.count, err)
		}
		records += len(into.records)
	}
	if records != 2000 {
		t.Errorf("%d records", records)
	}
	sendable := func() (n int) {
		for ; st.maySend(); n++ {
			st.next++
			st.inFlight++
		}
		return n
	}
	if n := sendable(); n != 1 {
		t.Errorf("%d batches go before the broker has heard of the producer epoch", n)
	}
	st.acked, st.inFlight = 1, 0
	if n := sendable(); n != maxInFlight {
		t.Errorf("%d batches go at a time, want %d", n, maxInFlight)
	}
}

func BenchmarkEncode(b *testing.B) {
	var e encodings
	boxes := boxesOf("t", 8, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		encodeAll(&e, boxes, 512<<10)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/80_000, "ns/record")
}
