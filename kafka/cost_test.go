package kafka

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
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

// encodeAll cuts the boxes and makes every batch ready to be sent, as a delivery does.
func encodeAll(e *encodings, boxes []*record.Outbox, batchBytes int) {
	e.reset()
	for _, st := range streams(boxes, bounds{batchBytes, math.MaxInt64}) {
		for i := range st.batches {
			_, _ = e.add(&st.batches[i], sarama.CompressionNone) // fails where it compresses only
			e.blanks(st.batches[i].count)
		}
	}
}

func TestEncodingCostsNoHeapObjectARecord(t *testing.T) {
	var e encodings
	for _, limit := range []int{1 << 20, 64 << 10} { // as they are, and written anew
		boxes := boxesOf("t", 4, 5000)
		encodeAll(&e, boxes, limit) // the first epoch pays for the memory
		got := testing.AllocsPerRun(10, func() { encodeAll(&e, boxes, limit) })
		if perRecord := got / 20_000; perRecord > 0.02 {
			t.Errorf("%v heap objects for 20000 records in batches of at most %d bytes", got, limit)
		}
	}
}

// Runs of records are sent as they are; what many tasks write a little of to the same partition goes as one batch.
func TestBatchesAreTheRunsOfTheirBoxes(t *testing.T) {
	large, small := boxesOf("t", 1, 5000)[0], boxesOf("t", 1, 3)[0]
	shape := func(boxes ...*record.Outbox) (counts []int) {
		st := streams(boxes, bounds{1 << 20, math.MaxInt64})[0]
		for _, b := range st.batches {
			counts = append(counts, b.count)
		}
		return counts
	}
	runs := large.Runs()
	if len(runs) < 3 {
		t.Fatalf("%d runs", len(runs))
	}
	st := streams([]*record.Outbox{large}, bounds{1 << 20, math.MaxInt64})[0]
	for i, b := range st.batches[:len(runs)-1] {
		if &b.records[0] != &runs[i].Records[0] || b.count != runs[i].Count {
			t.Errorf("batch %d is not run %d", i, i)
		}
	}
	if got := shape(small, small, small); !slices.Equal(got, []int{9}) {
		t.Errorf("three small boxes become batches of %v records", got)
	}
	whole := shape(large)
	want := append(append([]int{6}, whole[:len(whole)-1]...), whole[len(whole)-1]+3)
	if got := shape(small, small, large, small); len(runs[len(runs)-1].Records) <= worthCopying && !slices.Equal(got, want) {
		t.Errorf("small, small, large, small become batches of %v records, want %v", got, want)
	}
	if got := shape(small); !slices.Equal(got, []int{3}) {
		t.Errorf("one small box becomes batches of %v records", got)
	}
}

// Times that brokers refuse are written as the nearest that they take, wherever they are in a run.
func TestTimesAreKeptWithinTheirBounds(t *testing.T) {
	o := &record.Outbox{}
	for _, at := range []int64{50, -7, math.MinInt64, 100, math.MaxInt64, 60} {
		o.Append(nil, []byte("v"), nil, at)
	}
	b := streams([]*record.Outbox{o}, bounds{1 << 20, 90})[0].batches[0]
	var into target
	if err := into.walk(headOf(b), b.records, 0); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, r := range into.records {
		got = append(got, r.Timestamp)
	}
	if !slices.Equal(got, []int64{50, 0, 0, 90, 90, 60}) || b.first != 50 || b.newest != 90 {
		t.Errorf("times %v, first %d, newest %d", got, b.first, b.newest)
	}
}

// headOf is as much of a batch's head as its records need.
func headOf(b batch) []byte {
	head := make([]byte, batchHead)
	binary.BigEndian.PutUint64(head[27:], uint64(b.first))
	binary.BigEndian.PutUint32(head[57:], uint32(b.count))
	return head
}

func TestBatchesKeepTheirLimitAndTheirFirstGoesAlone(t *testing.T) {
	st := streams(boxesOf("t", 1, 2000), bounds{10_000, math.MaxInt64})[0]
	if len(st.batches) < 20 {
		t.Fatalf("%d batches", len(st.batches))
	}
	records := 0
	for i := range st.batches {
		b := &st.batches[i]
		var into target
		if len(b.records) > 10_000 {
			t.Errorf("a batch has %d bytes", len(b.records))
		}
		if err := into.walk(headOf(*b), b.records, 0); err != nil || into.records[b.count-1].Offset != int64(b.count-1) {
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
