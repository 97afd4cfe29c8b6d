package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"millrace/record"
)

// rawBatch is a batch of a log before it is written, and what a reader must get of it.
type rawBatch struct {
	first        int64
	records      []record.Record // with their offsets and times
	codec        sarama.CompressionCodec
	producer     int64
	txn, control bool
	appended     bool
	spoil        func([]byte)
	lastDelta    int64
	firstTime    int64
}

func (r rawBatch) bytes(t fataler) []byte {
	plain := wireOf(r)
	b := make([]byte, batchHead)
	b, err := compress(b, r.codec, plain)
	if err != nil {
		t.Fatalf("%v", err)
	}
	attributes := int(r.codec)
	for bit, set := range map[int]bool{attrAppend: r.appended, attrTxn: r.txn, attrControl: r.control} {
		if set {
			attributes |= bit
		}
	}
	binary.BigEndian.PutUint64(b, uint64(r.first))
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-batchUnsized))
	b[batchVersion] = 2
	b[22] = byte(attributes)
	binary.BigEndian.PutUint32(b[23:], uint32(r.lastDelta))
	binary.BigEndian.PutUint64(b[27:], uint64(r.firstTime))
	binary.BigEndian.PutUint64(b[35:], 9_000_000)
	binary.BigEndian.PutUint64(b[43:], uint64(r.producer))
	binary.BigEndian.PutUint32(b[57:], uint32(len(r.records)))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[batchChecked:], castagnoli))
	if r.spoil != nil {
		r.spoil(b)
	}
	return b
}

// wireOf encodes the records one by one: an outbox knows neither holes nor times of batches.
func wireOf(r rawBatch) (b []byte) {
	for i := range r.records {
		in := &r.records[i]
		body := []byte{0}
		body = binary.AppendVarint(body, in.Timestamp-r.firstTime)
		body = binary.AppendVarint(body, in.Offset-r.first)
		part := func(p []byte) {
			if p == nil {
				body = binary.AppendVarint(body, -1)
				return
			}
			body = append(binary.AppendVarint(body, int64(len(p))), p...)
		}
		part(in.Key)
		part(in.Value)
		body = binary.AppendVarint(body, int64(len(in.Headers)))
		for _, h := range in.Headers {
			part(h.Key)
			part(h.Value)
		}
		b = append(binary.AppendVarint(b, int64(len(body))), body...)
	}
	return b
}

type fataler interface {
	Fatalf(format string, args ...any)
}

func answerOf(sets ...[]byte) *kmsg.FetchResponse {
	answer := kmsg.NewPtrFetchResponse()
	topic := kmsg.NewFetchResponseTopic()
	topic.Topic = "a"
	for i, set := range sets {
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.HighWatermark, p.RecordBatches = int32(i), 1000, set
		topic.Partitions = append(topic.Partitions, p)
	}
	answer.Topics = append(answer.Topics, topic)
	return answer
}

// anyLog draws batches with what a reader from next on must get of them, and where it must go on.
func anyLog(t *rapid.T, next int64) (batches []rawBatch, aborted []kmsg.FetchResponseTopicPartitionAbortedTransaction, want []record.Record, end int64) {
	at, open := rapid.Int64Range(0, next).Draw(t, "first"), map[int64]bool{}
	end = next
	for range rapid.IntRange(1, 8).Draw(t, "batches") {
		b := rawBatch{first: at, firstTime: 1_000_000, producer: rapid.Int64Range(1, 3).Draw(t, "producer"), txn: rapid.Bool().Draw(t, "txn"),
			codec: rapid.SampledFrom(allCodecs).Draw(t, "codec"), appended: rapid.IntRange(0, 4).Draw(t, "appended") == 0}
		switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
		case kind < 2 && b.txn: // the end of a transaction
			b.control, b.codec = true, sarama.CompressionNone
			outcome := byte(commit)
			if open[b.producer] {
				outcome = abort
			}
			b.records = []record.Record{{Key: []byte{0, 0, 0, outcome}, Value: []byte("end"), Offset: at, Timestamp: 1_000_000}}
			delete(open, b.producer)
		default:
			if b.txn && !open[b.producer] && rapid.IntRange(0, 2).Draw(t, "aborts") == 0 {
				open[b.producer] = true
				aborted = append(aborted, kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: b.producer, FirstOffset: at})
			}
			for o := at; o < at+rapid.Int64Range(0, 6).Draw(t, "records"); o += rapid.Int64Range(1, 2).Draw(t, "hole") {
				r := record.Record{Key: anyPart(t, "key"), Value: anyPart(t, "value"), Headers: anyHeaders(t), Offset: o, Timestamp: rapid.Int64Range(999_000, 1_001_000).Draw(t, "time")}
				b.records = append(b.records, r)
				if r.Offset >= next && !(b.txn && open[b.producer]) {
					if b.appended {
						r.Timestamp = 9_000_000
					}
					want = append(want, r)
				}
			}
		}
		if n := len(b.records); n > 0 {
			b.lastDelta = b.records[n-1].Offset - at
		}
		b.lastDelta += rapid.Int64Range(0, 2).Draw(t, "compacted")
		at += b.lastDelta + 1
		end = max(end, at)
		batches = append(batches, b)
	}
	return batches, aborted, want, end
}

// A tapped connection and sarama make the same records of any log; neither loses what is between them.
func TestATapReadsWhatSaramaReads(t *testing.T) {
	w := newWire(t)
	rapid.Check(t, func(t *rapid.T) {
		next := rapid.Int64Range(0, 20).Draw(t, "next")
		batches, aborted, want, end := anyLog(t, next)
		var set []byte
		for _, b := range batches {
			set = append(set, b.bytes(t)...)
		}
		answer := answerOf(set, []byte{}, rawBatch{records: []record.Record{{Offset: 0}}}.bytes(t))
		answer.Topics[0].Partitions[0].AbortedTransactions = aborted
		version := rapid.SampledFrom([]int16{11, 12}).Draw(t, "version")
		tapped, plain, err, plainErr := fetchFrom(t, w, version, next, answer)
		if err != nil || plainErr != nil {
			t.Fatalf("tapped: %v; sarama: %v", err, plainErr)
		}
		if diff := differ(want, tapped.Records); diff != "" {
			t.Fatalf("tapped (-want +got):\n%s", diff)
		}
		if tapped.Next != end || tapped.End != 1000 {
			t.Fatalf("goes on at %d, want %d; the log ends at %d", tapped.Next, end, tapped.End)
		}
		if diff := differ(plain.Records, tapped.Records); diff != "" || tapped.Bytes != plain.Bytes {
			t.Fatalf("sarama (-sarama +tapped), %d and %d bytes:\n%s", plain.Bytes, tapped.Bytes, diff)
		}
	})
}

// differ keeps nil apart from what is empty, but for the list itself.
func differ(want, got []record.Record) string {
	if len(want)+len(got) == 0 {
		return ""
	}
	return cmp.Diff(want, got)
}

func simpleBatch(first int64, values ...string) rawBatch {
	b := rawBatch{first: first, firstTime: 5, lastDelta: int64(len(values) - 1)}
	for i, v := range values {
		b.records = append(b.records, record.Record{Value: []byte(v), Offset: first + int64(i), Timestamp: 5})
	}
	return b
}

// What a tap does not take is sarama's, and its errors are as without a tap. What it takes and cannot read, it refuses
// after all that lies before has been read.
func TestATapRefusesWhatSaramaRefuses(t *testing.T) {
	spoiled := func(f func([]byte)) []byte {
		b := simpleBatch(2, "c")
		b.spoil = f
		return b.bytes(t)
	}
	good, w := simpleBatch(0, "a", "b").bytes(t), newWire(t)
	for _, c := range []struct {
		name  string
		set   []byte
		taken bool
	}{
		{"cut off", spoiled(nil)[:65], false},
		{"cut off in its head", spoiled(nil)[:20], false},
		{"a wrong checksum", spoiled(func(b []byte) { b[len(b)-1] ^= 1 }), false},
		{"an old format", spoiled(func(b []byte) { b[batchVersion] = 1 }), false},
		{"a length that is too small", spoiled(func(b []byte) { binary.BigEndian.PutUint32(b[8:], 5) }), false},
		{"a negative length", spoiled(func(b []byte) { binary.BigEndian.PutUint32(b[8:], 1<<31) }), false},
		{"records that are none", spoiled(func(b []byte) { b[batchHead] ^= 0x55; sum(b) }), true},
		{"an unknown compression", spoiled(func(b []byte) { b[22] = 7; sum(b) }), true},
		{"not what the compression says", spoiled(func(b []byte) { b[22] = 4; sum(b) }), true},
		{"more records than there are", spoiled(func(b []byte) { b[60] = 9; sum(b) }), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			behind, plain, err, plainErr := fetchFrom(t, w, 12, 0, answerOf(append(bytes.Clone(good), c.set...)))
			switch {
			case c.taken || plainErr == nil:
				if err != nil || behind.Next != 2 || len(behind.Records) != 2 {
					t.Errorf("behind a good batch: goes on at %d with %d records, %v", behind.Next, len(behind.Records), err)
				}
			case err == nil || err.Error() != plainErr.Error():
				t.Errorf("behind a good batch: %v; sarama: %v, %+v", err, plainErr, plain)
			}
			_, _, err, plainErr = fetchFrom(t, w, 12, 2, answerOf(c.set))
			refused := func(err error) bool {
				return errors.Is(err, errDamaged) || errors.Is(err, errOldFormat) || err != nil && errors.Is(unreadable(err), errUnreadable)
			}
			if !refused(err) || !refused(plainErr) {
				t.Errorf("alone: %v; sarama: %v", err, plainErr)
			}
		})
	}
}

func sum(b []byte) {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[batchChecked:], castagnoli))
}

// A batch whose checksum is right and that cannot be read is damage to whoever reads its partition, as any other.
func TestAnUndecodableBatchIsDamage(t *testing.T) {
	b := simpleBatch(7, "c")
	b.spoil = func(b []byte) { b[22] = byte(sarama.CompressionGZIP); sum(b) }
	tp := record.TopicPartition{Topic: "a"}
	sink := newCollector(0)
	f := &Fetcher{sources: map[record.TopicPartition]*fetchSource{}}
	s := &fetchSource{tp: tp, next: 7, sink: sink}
	f.sources[tp] = s
	l := &brokerLoop{fetcher: f, tap: &tap{sets: map[record.TopicPartition][]byte{tp: b.bytes(t)}}}
	for range maxStrikes {
		l.take(s, &sarama.FetchResponseBlock{})
	}
	if !errors.Is(sink.failed, errDamaged) || !strings.Contains(sink.failed.Error(), "a-0@7") {
		t.Errorf("%v", sink.failed)
	}
}

// Answers without records leave their memory to the next ones.
func TestEmptyAnswersCostNoMemory(t *testing.T) {
	w := newWire(t)
	_, tap, err := fetchTapped(t, w, 12, 0, answerOf([]byte{}))
	if err != nil || len(tap.memory.bytes) != 1 {
		t.Errorf("%d buffers wait, %v", len(tap.memory.bytes), err)
	}
	batch, tap, err := fetchTapped(t, w, 12, 0, answerOf(simpleBatch(0, "a").bytes(t)))
	if err != nil || len(tap.memory.bytes) != 0 {
		t.Fatalf("%d buffers wait while a batch does, %v", len(tap.memory.bytes), err)
	}
	if batch.Free(); len(tap.memory.bytes) != 1 || len(tap.memory.lists) != 1 {
		t.Errorf("%d buffers and %d lists wait", len(tap.memory.bytes), len(tap.memory.lists))
	}
}

// Nothing that a broker could send ends the process, or makes it read outside of the answer.
func TestDamagedAnswersAreNoDanger(t *testing.T) {
	answer := answerOf(simpleBatch(0, "a", "b").bytes(t), []byte{}, simpleBatch(7, "c").bytes(t))
	for _, version := range []int16{11, 12} {
		answer.Version = version
		body := make([]byte, 8)
		if version >= flexibleFetch {
			body = append(body, 0)
		}
		whole := answer.AppendTo(body)
		sets := map[record.TopicPartition][]byte{}
		if _, ok := cut(whole, version, sets); !ok || len(sets) != 2 {
			t.Fatalf("version %d: %v, %d sets", version, ok, len(sets))
		}
		r := rand.New(rand.NewPCG(1, uint64(version)))
		for range 4000 {
			damaged := bytes.Clone(whole)
			for range 1 + r.IntN(3) {
				damaged[8+r.IntN(len(damaged)-8)] = byte(r.Uint32())
			}
			damaged = damaged[:len(damaged)-r.IntN(2)*r.IntN(len(damaged)-8)]
			sets := map[record.TopicPartition][]byte{}
			cut(damaged, version, sets)
			for tp, set := range sets {
				_, _ = new(tap).decodeSet(gather(tp, 0, &sarama.FetchResponseBlock{}), set)
			}
		}
		set := simpleBatch(0, "a", "b", "c").bytes(t)
		for range 4000 {
			damaged := bytes.Clone(set)
			damaged[batchHead+r.IntN(len(set)-batchHead)] = byte(r.Uint32())
			damaged[57+r.IntN(4)] = byte(r.Uint32() & 1)
			sum(damaged)
			_, _ = new(tap).decodeSet(gather(record.TopicPartition{}, 0, &sarama.FetchResponseBlock{}), damaged)
		}
	}
}

// An answer that is too large for sarama is refused by sarama, as without a tap.
func TestAnAnswerThatIsTooLarge(t *testing.T) {
	limit := sarama.MaxResponseSize
	defer func() { sarama.MaxResponseSize = limit }()
	sarama.MaxResponseSize = 1000
	_, _, err, plainErr := fetchFrom(t, newWire(t), 12, 0, answerOf(simpleBatch(0, string(make([]byte, 2000))).bytes(t)))
	if err == nil || plainErr == nil || err.Error() != plainErr.Error() {
		t.Errorf("tapped: %v; sarama: %v", err, plainErr)
	}
}

func BenchmarkReadASet(b *testing.B) {
	var o record.Outbox
	for i := range 5000 {
		o.Append(fmt.Appendf(nil, "user-%06d", i), bytes.Repeat([]byte("v"), 100), nil, time.Now().UnixMilli())
	}
	raw := rawBatch{firstTime: o.Runs()[0].First, lastDelta: 4999}
	cursor := o.Walk()
	for r, ok := cursor.Next(); ok; r, ok = cursor.Next() {
		r.Offset = int64(len(raw.records))
		raw.records = append(raw.records, r)
	}
	answer := answerOf(raw.bytes(b))
	answer.Version = 12
	frame := answer.AppendTo(make([]byte, 9))
	tp := record.TopicPartition{Topic: "a"}
	var t tap
	b.ReportAllocs()
	for b.Loop() {
		sets := map[record.TopicPartition][]byte{}
		if _, ok := cut(frame, 12, sets); !ok {
			b.Fatal("not cut")
		}
		answer := &answerBytes{memory: &t.memory}
		answer.users.Store(2)
		t.answer = answer
		got, err := t.decodeSet(gather(tp, 0, &sarama.FetchResponseBlock{}), sets[tp])
		if err != nil || len(got.Records) != 5000 {
			b.Fatal(len(got.Records), err)
		}
		got.Free()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/5000, "ns/record")
}
