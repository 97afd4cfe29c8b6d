package store

import (
	"fmt"
	"testing"
)

// waiting is what the arena keeps to be used again.
func waiting() int64 {
	chunkArena.mu.Lock()
	defer chunkArena.mu.Unlock()
	return int64(len(chunkArena.free)) * chunkBytes
}

// A table that grows and ends leaves nothing outside the Go heap, whatever sizes it had.
func TestMemoryOutsideTheHeapIsGivenBack(t *testing.T) {
	before := mapped.Load() - waiting()
	var tab table
	for i := range 100_000 {
		key := fmt.Append(nil, i)
		tab.put(hashKey(key), key, []byte("v"), 0)
	}
	if tab.index.memory == nil {
		t.Error("a large index lies in the Go heap")
	}
	for i := range 100_000 {
		key := fmt.Append(nil, i)
		if _, ok := tab.find(hashKey(key), key); !ok {
			t.Fatalf("%s is lost", key)
		}
	}
	tab.release()
	scratch := NewScratch()
	for i := range 50_000 {
		key := fmt.Append(nil, i)
		if _, _, err := scratch.Load(0, key); err != nil {
			t.Fatal(err)
		}
		scratch.Save(0, key, []byte("v"), false)
	}
	scratch.Empty()
	scratch.Release()
	if after := mapped.Load() - waiting(); after != before {
		t.Errorf("%d bytes outside the heap, %d before", after, before)
	}
}
