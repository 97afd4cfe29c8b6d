package kafka

import (
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

// layOut cuts the boxes and lays every batch out, as a delivery does.
func layOut(s *slab, boxes []*record.Outbox, batchBytes int) []*sarama.Record {
	s.reset()
	for _, st := range streams(boxes, batchBytes, math.MaxInt64) {
		for i := range st.batches {
			s.lay(st, &st.batches[i], math.MaxInt64)
		}
	}
	return s.addresses
}

func TestLayingOutCostsNoHeapObjectARecord(t *testing.T) {
	var s slab
	boxes := boxesOf("t", 4, 5000)
	layOut(&s, boxes, 64<<10) // the first epoch pays for the memory
	got := testing.AllocsPerRun(10, func() { layOut(&s, boxes, 64<<10) })
	if perRecord := got / 20_000; perRecord > 0.01 {
		t.Errorf("%v heap objects for 20000 records", got)
	}
}

func TestLayingOutAgainLeavesNothingOfTheEpochBefore(t *testing.T) {
	var s slab
	header := func(k string) record.Header { return record.Header{Key: []byte(k), Value: []byte("v")} }
	headersOf := func(headers ...record.Header) []string {
		o := &record.Outbox{}
		o.Append(nil, nil, headers, 0)
		var keys []string
		for _, h := range layOut(&s, []*record.Outbox{o}, 1<<10)[0].Headers {
			keys = append(keys, string(h.Key))
		}
		return keys
	}
	for _, want := range [][]string{{"a", "b", "c"}, {"d"}, nil, {"e", "f"}, {"g", "h", "i", "j"}} {
		var in []record.Header
		for _, k := range want {
			in = append(in, header(k))
		}
		if got := headersOf(in...); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("headers %v, want %v", got, want)
		}
	}
}

func TestBatchesKeepTheirLimitAndTheirFirstGoesAlone(t *testing.T) {
	var s slab
	st := streams(boxesOf("t", 1, 2000), 10_000, math.MaxInt64)[0]
	if len(st.batches) < 20 {
		t.Fatalf("%d batches", len(st.batches))
	}
	records := 0
	for i := range st.batches {
		b := &st.batches[i]
		s.reset()
		laid := s.lay(st, b, math.MaxInt64)
		if b.bytes > 10_000 {
			t.Errorf("a batch has %d bytes", b.bytes)
		}
		if n := len(laid); n != b.count || laid[n-1].OffsetDelta != int64(n-1) {
			t.Errorf("a batch of %d records ends with offset %d", n, laid[n-1].OffsetDelta)
		}
		records += len(laid)
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

func BenchmarkLayOut(b *testing.B) {
	var s slab
	boxes := boxesOf("t", 8, 10_000)
	b.ReportAllocs()
	for b.Loop() {
		layOut(&s, boxes, 512<<10)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/80_000, "ns/record")
}
