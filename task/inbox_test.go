package task

import (
	"errors"
	"testing"
	"unsafe"

	"millrace/record"

	"pgregory.net/rapid"
)

func batchAt(at int64, next record.Offset) record.Batch {
	return record.Batch{Records: []record.Record{{Timestamp: at, Offset: next - 1}}, Next: next, End: next, Bytes: 100}
}

func (i *inbox) mustTake(t *testing.T) (record.Batch, int) {
	t.Helper()
	b, input, ok, err := i.take()
	if !ok || err != nil {
		t.Fatalf("nothing to take: %v", err)
	}
	return b, input
}

func TestTheOldestRecordIsTakenFirst(t *testing.T) {
	i := newInbox(3, func() {})
	port{i, 0}.Offer(batchAt(30, 1))
	port{i, 0}.Offer(batchAt(5, 2)) // behind the 30 of its partition
	port{i, 1}.Offer(batchAt(20, 1))
	port{i, 2}.Offer(batchAt(20, 1))
	port{i, 2}.Offer(batchAt(40, 2))
	for n, want := range []struct {
		input int
		at    int64
	}{{1, 20}, {2, 20}, {0, 30}, {0, 5}, {2, 40}} {
		if b, input := i.mustTake(t); input != want.input || b.Records[0].Timestamp != want.at {
			t.Errorf("take %d: input %d at %d, want %+v", n, input, b.Records[0].Timestamp, want)
		}
	}
	if _, _, ok, err := i.take(); ok || err != nil {
		t.Errorf("an empty inbox gives %v %v", ok, err)
	}
}

func TestEmptyBatchesComeFirst(t *testing.T) {
	i := newInbox(2, func() {})
	port{i, 0}.Offer(batchAt(1, 1))
	port{i, 1}.Offer(record.Batch{Next: 7, End: 7})
	if b, input := i.mustTake(t); input != 1 || b.Next != 7 {
		t.Errorf("input %d, %+v", input, b)
	}
}

// Batches of one partition keep their order, and none is lost or doubled, however inputs and takes interleave.
func TestAnInboxKeepsEachPartitionsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const inputs = 3
		i := newInbox(inputs, func() {})
		var given, taken [inputs]record.Offset
		take := func() bool {
			b, input, ok, err := i.take()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return false
			}
			if taken[input]++; b.Next != taken[input] {
				t.Fatalf("input %d: batch %d after %d", input, b.Next, taken[input]-1)
			}
			return true
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "take") {
				take()
				continue
			}
			input := rapid.IntRange(0, inputs-1).Draw(t, "input")
			given[input]++
			port{i, input}.Offer(batchAt(rapid.Int64Range(0, 9).Draw(t, "at"), given[input]))
		}
		for take() {
		}
		if taken != given {
			t.Fatalf("taken %v of %v", taken, given)
		}
	})
}

// A partition is full by its own bytes alone, and the fetcher hears of it once there is room again.
func TestAFullPartitionPausesItselfOnly(t *testing.T) {
	drained := 0
	i := newInbox(2, func() { drained++ })
	large := batchAt(1, 1)
	large.Bytes = inboxBytes - recordBytes - 1
	port{i, 0}.Offer(large)
	if (port{i, 0}).Full() {
		t.Errorf("full before the bound: a record counts %d bytes", recordBytes)
	}
	port{i, 0}.Offer(batchAt(2, 2))
	if !(port{i, 0}).Full() || (port{i, 1}).Full() {
		t.Error("the wrong partition is full")
	}
	port{i, 1}.Offer(batchAt(0, 1))
	if i.mustTake(t); drained != 0 {
		t.Error("drained by the batch of another partition")
	}
	if i.mustTake(t); drained != 1 || (port{i, 0}).Full() {
		t.Errorf("drained %d times when there was room again", drained)
	}
	if i.mustTake(t); drained != 1 || i.queues[0].bytes != 0 || i.queues[1].bytes != 0 {
		t.Errorf("drained %d times, %d and %d bytes left", drained, i.queues[0].bytes, i.queues[1].bytes)
	}
}

func TestAFailureReachesTheTaskBeforeMoreInput(t *testing.T) {
	i := newInbox(2, func() {})
	gone := errors.New("offset 5 is gone")
	port{i, 0}.Offer(batchAt(1, 1))
	<-i.ready
	port{i, 1}.Fail(gone)
	<-i.ready     // it wakes the task
	for range 2 { // it stays failed
		if _, _, ok, err := i.take(); ok || !errors.Is(err, gone) {
			t.Errorf("%v %v", ok, err)
		}
	}
	if !(port{i, 0}).Full() {
		t.Error("a failed task is fed on")
	}
}

func TestQuietIsReadToTheEndAndHeardOfIt(t *testing.T) {
	i := newInbox(1, func() {})
	if i.quiet(0, 0) {
		t.Error("quiet before the broker has answered")
	}
	if _, known := i.lag(0, 0); known {
		t.Error("the lag is known before the broker has answered")
	}
	port{i, 0}.Offer(record.Batch{Records: []record.Record{{Offset: 4}}, Next: 5, End: 9})
	if i.quiet(0, 4) {
		t.Error("quiet with a batch waiting")
	}
	i.mustTake(t)
	if i.quiet(0, 5) {
		t.Error("quiet before the end of the log")
	}
	if lag, known := i.lag(0, 5); lag != 4 || !known {
		t.Errorf("lag %d %v", lag, known)
	}
	if !i.quiet(0, 9) {
		t.Error("not quiet at the end of the log")
	}
	if lag, _ := i.lag(0, 12); lag != 0 {
		t.Errorf("lag %d", lag)
	}
}

func TestWhatARecordCountsIsItsSize(t *testing.T) {
	if size := int(unsafe.Sizeof(record.Record{})); size != recordBytes {
		t.Errorf("a record has %d bytes and counts %d", size, recordBytes)
	}
}
