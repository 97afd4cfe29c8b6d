package record

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestOutboxGivesBackWhatItWasGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.Custom(func(t *rapid.T) []byte {
			switch rapid.IntRange(0, 20).Draw(t, "kind") {
			case 0:
				return nil
			case 1:
				return bytes.Repeat([]byte("x"), rapid.IntRange(0, 300_000).Draw(t, "large"))
			}
			return []byte(rapid.StringN(0, 20, 40).Draw(t, "text"))
		})
		var o Outbox
		for range rapid.IntRange(1, 3).Draw(t, "epochs") {
			var want []Record
			size := 0
			for range rapid.IntRange(0, 200).Draw(t, "records") {
				r := Record{Key: part.Draw(t, "key"), Value: part.Draw(t, "value"), Timestamp: rapid.Int64().Draw(t, "at")}
				for range rapid.IntRange(0, 2).Draw(t, "headers") {
					r.Headers = append(r.Headers, Header{Key: []byte("h"), Value: part.Draw(t, "header")})
				}
				o.Append(r.Key, r.Value, r.Headers, r.Timestamp)
				want = append(want, r)
				size += len(r.Key) + len(r.Value)
			}
			if o.Count != len(want) || o.Bytes() < size {
				t.Fatalf("count %d, bytes %d; want %d records of %d bytes", o.Count, o.Bytes(), len(want), size)
			}
			cursor := o.Walk()
			for i, w := range want {
				got, ok := cursor.Next()
				if !ok || !same(got, w) {
					t.Fatalf("record %d: got %v %v, want %v", i, got, ok, w)
				}
			}
			if _, ok := cursor.Next(); ok {
				t.Fatal("a record too many")
			}
			o.Reset()
		}
	})
}

func same(a, b Record) bool {
	if !sameBytes(a.Key, b.Key) || !sameBytes(a.Value, b.Value) || a.Timestamp != b.Timestamp || len(a.Headers) != len(b.Headers) {
		return false
	}
	for i := range a.Headers {
		if !sameBytes(a.Headers[i].Key, b.Headers[i].Key) || !sameBytes(a.Headers[i].Value, b.Headers[i].Value) {
			return false
		}
	}
	return true
}

// sameBytes keeps nil apart from empty: they are different on a topic.
func sameBytes(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

func TestOutboxAllocatesNothingOnceItIsWarm(t *testing.T) {
	var o Outbox
	fill := func() {
		for range 5000 {
			o.Append([]byte("key-of-a-record"), []byte(`{"some":"value","of":"usual","size":1234567}`), nil, 1)
		}
		o.Reset()
	}
	fill()
	if n := testing.AllocsPerRun(10, fill); n > 0 {
		t.Fatalf("%v allocations for 5000 records", n)
	}
}

// One large epoch does not hold its memory for ever, and one as large as the last allocates nothing.
func TestOutboxForgetsItsLargestEpoch(t *testing.T) {
	var o Outbox
	fill := func(n int) {
		for range n {
			o.Append(nil, make([]byte, 1000), nil, 1)
		}
	}
	fill(10_000)
	large := len(o.runs)
	o.Reset()
	if len(o.runs) != large {
		t.Errorf("%d runs of %d are kept for an epoch of the same size", len(o.runs), large)
	}
	for range 20 {
		fill(10)
		o.Reset()
	}
	if len(o.runs) > 1 {
		t.Errorf("%d runs of %d are kept after many small epochs", len(o.runs), large)
	}
}
