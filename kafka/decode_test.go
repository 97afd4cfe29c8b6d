package kafka

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/go-cmp/cmp"

	"millrace/record"
)

// data is a batch of one record an offset, with the offset as its value.
func data(producer int64, transactional bool, offsets ...int64) *sarama.Records {
	rb := &sarama.RecordBatch{Version: 2, FirstOffset: offsets[0], LastOffsetDelta: int32(offsets[len(offsets)-1] - offsets[0]),
		ProducerID: producer, IsTransactional: transactional, FirstTimestamp: time.UnixMilli(1000), MaxTimestamp: time.UnixMilli(9000)}
	for i, o := range offsets {
		rb.Records = append(rb.Records, &sarama.Record{OffsetDelta: o - offsets[0], TimestampDelta: time.Duration(i) * time.Millisecond, Value: []byte{byte(o)}})
	}
	return &sarama.Records{RecordBatch: rb}
}

func marker(producer, offset int64, commit uint16) *sarama.Records {
	key := binary.BigEndian.AppendUint16([]byte{0, 0}, commit)
	return &sarama.Records{RecordBatch: &sarama.RecordBatch{Version: 2, FirstOffset: offset, ProducerID: producer, Control: true, IsTransactional: true,
		Records: []*sarama.Record{{Key: key}}}}
}

const abort, commit = 0, 1

func offsetsOf(b record.Batch) []int64 {
	var all []int64
	for _, r := range b.Records {
		all = append(all, r.Offset)
	}
	return all
}

var from = record.TopicPartition{Topic: "t"}

func TestAbortedTransactionsAreLeftOut(t *testing.T) {
	aborted := func(of ...int64) (list []*sarama.AbortedTransaction) {
		for i := 0; i < len(of); i += 2 {
			list = append(list, &sarama.AbortedTransaction{ProducerID: of[i], FirstOffset: of[i+1]})
		}
		return list
	}
	tests := []struct {
		name    string
		from    int64
		aborted []*sarama.AbortedTransaction
		sets    []*sarama.Records
		want    []int64
		next    int64
	}{
		{"interleaved", 0, aborted(2, 1),
			[]*sarama.Records{data(1, true, 0), data(2, true, 1, 2), data(1, true, 3), data(2, true, 4), marker(2, 5, abort), marker(1, 6, commit)}, []int64{0, 3}, 7},
		{"one producer aborts, then commits", 0, aborted(1, 0),
			[]*sarama.Records{data(1, true, 0), marker(1, 1, abort), data(1, true, 2), marker(1, 3, commit)}, []int64{2}, 4},
		{"one producer aborts twice", 0, aborted(1, 4, 1, 0), // listed in no order
			[]*sarama.Records{data(1, true, 0), marker(1, 1, abort), data(1, true, 2), marker(1, 3, commit), data(1, true, 4, 5), marker(1, 6, abort)}, []int64{2}, 7},
		{"it began before the position", 5, aborted(1, 2),
			[]*sarama.Records{data(1, true, 4, 5), data(2, true, 6), marker(1, 7, abort), data(1, true, 8)}, []int64{6, 8}, 9},
		{"records without a transaction of the same producer", 0, aborted(1, 1),
			[]*sarama.Records{data(1, false, 0), data(1, true, 1), data(1, false, 2), marker(1, 3, abort)}, []int64{0, 2}, 4},
		{"nothing but an aborted transaction", 0, aborted(1, 0), []*sarama.Records{data(1, true, 0, 1), marker(1, 2, abort)}, nil, 3},
		{"the position is within a batch", 2, nil, []*sarama.Records{data(1, true, 0, 1, 2, 3)}, []int64{2, 3}, 4},
		{"holes of compaction", 0, nil, []*sarama.Records{data(1, true, 3, 7), data(1, true, 11)}, []int64{3, 7, 11}, 12},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := decode(from, tt.from, &sarama.FetchResponseBlock{HighWaterMarkOffset: 50, AbortedTransactions: tt.aborted, RecordsSet: tt.sets})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, offsetsOf(b)); diff != "" {
				t.Error(diff)
			}
			if b.Next != tt.next || b.End != 50 || b.From != from {
				t.Errorf("next %d, want %d; end %d; from %v", b.Next, tt.next, b.End, b.From)
			}
		})
	}
}

func TestTheLastOffsetOfABatchCountsNotItsLastRecord(t *testing.T) {
	set := data(1, true, 3)
	set.RecordBatch.LastOffsetDelta = 9 // compaction has removed 4 to 12
	b, err := decode(from, 0, &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{set}})
	if err != nil || b.Next != 13 {
		t.Errorf("next %d, want 13; %v", b.Next, err)
	}
}

// withHidden sets what sarama keeps to itself about batches without records.
func withHidden(block *sarama.FetchResponseBlock, next int64) *sarama.FetchResponseBlock {
	f := reflect.ValueOf(block).Elem().FieldByName("recordsNextOffset")
	reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem().Set(reflect.ValueOf(&next))
	return block
}

func TestEmptiedBatchesArePassed(t *testing.T) {
	f, ok := reflect.TypeFor[sarama.FetchResponseBlock]().FieldByName("recordsNextOffset")
	if !ok || f.Type != reflect.TypeFor[*int64]() {
		t.Fatal("sarama has renamed FetchResponseBlock.recordsNextOffset: nextOffset must be adapted, or restores of compacted changelogs stop")
	}
	b, err := decode(from, 5, withHidden(&sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{}}, 40))
	if err != nil || b.Next != 40 || len(b.Records) > 0 {
		t.Errorf("next %d, want 40; %d records, %v", b.Next, len(b.Records), err)
	}
	if b, err := decode(from, 5, &sarama.FetchResponseBlock{}); err != nil || b.Next != 5 {
		t.Errorf("an empty answer moves the position to %d, %v", b.Next, err)
	}
	// What a trailing batch reaches that was cut off is not read yet.
	if b, err := decode(from, 0, withHidden(&sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{data(1, true, 0)}}, 40)); err != nil || b.Next != 1 {
		t.Errorf("next %d, want 1; %v", b.Next, err)
	}
}

func TestABatchThatIsCutOff(t *testing.T) {
	cut := &sarama.Records{RecordBatch: &sarama.RecordBatch{FirstOffset: 7, LastOffsetDelta: 5, PartialTrailingRecord: true}}
	b, err := decode(from, 0, &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{data(1, true, 0), cut}})
	if err != nil || b.Next != 7 || len(b.Records) != 1 {
		t.Errorf("behind records: next %d, %d records, %v", b.Next, len(b.Records), err)
	}
	b, err = decode(from, 3, &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{cut}})
	if err != nil || b.Next != 7 {
		t.Errorf("behind batches that compaction has emptied: next %d, want 7; %v", b.Next, err)
	}
	if _, err = decode(from, 7, &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{cut}}); !errors.Is(err, errDamaged) {
		t.Errorf("at its beginning: %v", err)
	}
	if _, err = decode(from, 7, &sarama.FetchResponseBlock{Partial: true}); !errors.Is(err, errDamaged) {
		t.Errorf("within its header: %v", err)
	}
}

func TestOldMessageFormatsAreRefused(t *testing.T) {
	_, err := decode(from, 0, &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{{MsgSet: &sarama.MessageSet{}}}})
	if !errors.Is(err, errOldFormat) {
		t.Errorf("%v", err)
	}
}

func TestTimestamps(t *testing.T) {
	created, appended, timeless := data(1, false, 0, 1), data(1, false, 2, 3), data(1, false, 4)
	appended.RecordBatch.LogAppendTime = true
	timeless.RecordBatch.FirstTimestamp = time.Time{} // sarama's form of Kafka's -1
	b, err := decode(from, 0, &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{created, appended, timeless, marker(1, 5, commit)}})
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, r := range b.Records {
		got = append(got, r.Timestamp)
	}
	if diff := cmp.Diff([]int64{1000, 1001, 9000, 9000, noTimestamp}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHeadersOfNeighboursAreKeptApart(t *testing.T) {
	set := data(1, false, 0, 1, 2)
	h := func(k string) *sarama.RecordHeader { return &sarama.RecordHeader{Key: []byte(k), Value: []byte("v")} }
	set.RecordBatch.Records[0].Headers = []*sarama.RecordHeader{h("a"), h("b")}
	set.RecordBatch.Records[2].Headers = []*sarama.RecordHeader{h("c")}
	b, err := decode(from, 0, &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{set}})
	if err != nil {
		t.Fatal(err)
	}
	b.Records[0].Headers = append(b.Records[0].Headers, record.Header{Key: []byte("x")})
	if got := b.Records[2].Headers; len(got) != 1 || string(got[0].Key) != "c" || b.Records[1].Headers != nil {
		t.Errorf("headers %v, %v", b.Records[1].Headers, got)
	}
}

func TestDecodingCostsNoHeapObjectARecord(t *testing.T) {
	var offsets []int64
	for o := range int64(1000) {
		offsets = append(offsets, o)
	}
	set := data(1, true, offsets...)
	for _, r := range set.RecordBatch.Records {
		r.Headers = []*sarama.RecordHeader{{Key: []byte("k")}}
	}
	block := &sarama.FetchResponseBlock{RecordsSet: []*sarama.Records{set}}
	if got := testing.AllocsPerRun(20, func() {
		if _, err := decode(from, 0, block); err != nil {
			t.Fatal(err)
		}
	}); got > 10 {
		t.Errorf("%v heap objects for 1000 records", got)
	}
}
