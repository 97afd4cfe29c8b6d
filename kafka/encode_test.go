package kafka

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"pgregory.net/rapid"

	"millrace/record"
)

var allCodecs = []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP, sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD}

// anyPart is a key, a value or a part of a header.
func anyPart(t *rapid.T, label string) []byte {
	switch rapid.IntRange(0, 9).Draw(t, label+" kind") {
	case 0:
		return nil
	case 1:
		return []byte{}
	case 2:
		return bytes.Repeat([]byte("x"), rapid.SampledFrom([]int{63, 64, 8191, 8192, 70_000}).Draw(t, label+" size"))
	}
	return []byte(rapid.StringMatching(`[a-z]{1,12}`).Draw(t, label))
}

func anyHeaders(t *rapid.T) (headers []record.Header) {
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 3, 70}).Draw(t, "headers") {
		headers = append(headers, record.Header{Key: []byte("h"), Value: anyPart(t, "header")})
	}
	return headers
}

// plain is the batch as sarama encodes it record by record.
func plain(t fataler, b *batch) (records []*sarama.Record) {
	var into target
	if err := into.walk(headOf(*b), b.records, 0); err != nil {
		t.Fatalf("%v", err)
	}
	for _, in := range into.records {
		r := &sarama.Record{Key: in.Key, Value: in.Value, OffsetDelta: in.Offset, TimestampDelta: time.Duration(in.Timestamp-b.first) * time.Millisecond}
		for _, h := range in.Headers {
			r.Headers = append(r.Headers, &sarama.RecordHeader{Key: h.Key, Value: h.Value})
		}
		records = append(records, r)
	}
	return records
}

// Our encoding of a batch and sarama's are the same bytes on the wire, whatever is in it.
func TestEncodingAgreesWithSarama(t *testing.T) {
	w := newWire(t)
	broker, err := open(w.addr(), w.config(version))
	if err != nil {
		t.Fatal(err)
	}
	defer closeBroker(broker)
	send := func(b *sarama.RecordBatch) []byte {
		request := &sarama.ProduceRequest{Version: 7, RequiredAcks: sarama.WaitForAll, Timeout: 1000}
		request.AddBatch("t", 0, b)
		answered := make(chan error, 1)
		if err := broker.AsyncProduce(request, func(_ *sarama.ProduceResponse, err error) { answered <- err }); err != nil {
			t.Fatal(err)
		}
		sent := <-w.requests
		w.answers <- []byte{0, 0, 0, 0, 0, 0, 0, 0} // no topics, no throttling
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
		return sent[8:] // behind key, version and correlation id
	}
	rapid.Check(t, func(t *rapid.T) {
		o := &record.Outbox{To: record.TopicPartition{Topic: "t"}}
		for range rapid.IntRange(1, 40).Draw(t, "records") {
			o.Append(anyPart(t, "key"), anyPart(t, "value"), anyHeaders(t), rapid.OneOf(rapid.Int64Range(1e12, 1e12+100), rapid.Just(int64(-1)), rapid.Just(int64(math.MaxInt64))).Draw(t, "time"))
		}
		codec := rapid.SampledFrom(allCodecs).Draw(t, "codec")
		st := streams([]*record.Outbox{o}, bounds{1 << 20, 2e12})[0]
		p := &Producer{client: &Client{config: Config{ExactlyOnce: true}}, codec: codec, id: 7, epoch: 3, sequences: map[record.TopicPartition]int32{st.to: 11}}
		d := &delivery{producer: p}
		for i := range st.batches {
			b := &st.batches[i]
			ours, err := d.encode(st, b)
			if err != nil {
				t.Fatal(err)
			}
			theirs := *ours
			setRecords(&theirs, nil, plain(t, b))
			theirs.CompressionLevel = sarama.CompressionLevelDefault
			if got, want := send(ours), send(&theirs); !bytes.Equal(got, want) {
				t.Fatalf("codec %v, %d records: %d bytes, sarama writes %d", codec, b.count, len(got), len(want))
			}
		}
	})
}

func TestAnEncodingStaysWhileOthersAreMade(t *testing.T) {
	for _, codec := range allCodecs {
		var e encodings
		var all [][]byte
		for i := range 20 {
			o := &record.Outbox{}
			o.Append(nil, fmt.Append(nil, strings.Repeat("x", 1<<i)), nil, 0)
			st := streams([]*record.Outbox{o}, bounds{4 << 20, math.MaxInt64})[0]
			encoded, err := e.add(&st.batches[0], codec)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, encoded)
		}
		for i, encoded := range all {
			records, err := decompress(codec, encoded)
			if err != nil || len(records) < 1<<i || len(records) > 1<<i+20 {
				t.Errorf("codec %v, value of %d bytes: %d bytes, %v", codec, 1<<i, len(records), err)
			}
		}
	}
}

// What comes out of a batch is bounded, however small it is.
func TestDecompressionIsBounded(t *testing.T) {
	limit := sarama.MaxDecompressedBatchSize
	defer func() { sarama.MaxDecompressedBatchSize = limit }()
	for _, codec := range allCodecs[1:] {
		sarama.MaxDecompressedBatchSize = limit
		small, err := compress(nil, codec, make([]byte, 4<<20))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := decompress(codec, small); err != nil || len(out) != 4<<20 {
			t.Errorf("codec %v: %d bytes, %v", codec, len(out), err)
		}
		if codec == sarama.CompressionZSTD {
			continue // its decoder was made with the limit of the process
		}
		sarama.MaxDecompressedBatchSize = 1 << 20
		if out, err := decompress(codec, small); err == nil {
			t.Errorf("codec %v: %d bytes of at most 1 MiB", codec, len(out))
		}
		if _, err := decompress(codec, []byte("rubbish")); err == nil {
			t.Errorf("codec %v makes something of rubbish", codec)
		}
	}
	if _, err := compress(nil, 9, nil); err == nil {
		t.Error("an unknown codec compresses")
	}
	if _, err := decompress(7, nil); err == nil {
		t.Error("an unknown codec decompresses")
	}
}
