package store

import (
	"testing"
	"time"

	"millrace/record"
)

// One of sampleEvery operations of a kind is timed, whatever comes in between; a walk over a segment always.
func TestOperationsAreSampled(t *testing.T) {
	state, err := Open(NewMemory(), Options{Stores: []string{"s"}, CacheBytes: 1 << 20, FlushInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s := state.Store(0)
	for i := range 3 * sampleEvery {
		key := []byte{byte(i), byte(i >> 8)}
		if _, _, err := s.Load(0, key); err != nil {
			t.Fatal(err)
		}
		s.Save(0, key, key, false)
	}
	s.Delete(0, []byte{1, 0})
	if _, err := s.Keys(0); err != nil {
		t.Fatal(err)
	}
	got := s.Operations()
	for kind, want := range map[int]int64{record.StoreGet: 3, record.StorePut: 3, record.StoreDelete: 1, record.StoreScan: 1} {
		if n := got[kind].Count(); n != want {
			t.Errorf("operation %d was timed %d times, want %d", kind, n, want)
		}
	}
	for kind, again := range s.Operations() {
		if again != nil {
			t.Errorf("operation %d is reported twice", kind)
		}
	}
}
