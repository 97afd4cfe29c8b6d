package store

import (
	"sync"
	"sync/atomic"
)

// Chunks of tables come from here. They lie outside the Go heap where the system allows it: the collector would count
// them as live memory and let the heap grow to twice their size before it collects the real garbage. A released chunk is
// used again by the next table; what is waiting beyond a bound goes back to the system.
type arena struct {
	mu   sync.Mutex
	free [][]byte // each of chunkBytes
}

// chunkArena is the process's only one: chunks that one task's window leaves behind serve another's.
var chunkArena arena

// maxFreeChunks bounds what waits to be used again: 64 MiB.
const maxFreeChunks = 256

// mapped is how many bytes there are outside the Go heap.
var mapped atomic.Int64

// take returns an empty chunk. Its content is whatever was there before.
func (a *arena) take() []byte {
	a.mu.Lock()
	if n := len(a.free); n > 0 {
		c := a.free[n-1]
		a.free = a.free[:n-1]
		a.mu.Unlock()
		return c[:0]
	}
	a.mu.Unlock()
	return mapMemory(chunkBytes)[:0]
}

// give takes a chunk back. The caller keeps no reference to it or into it.
func (a *arena) give(c []byte) {
	c = c[:chunkBytes]
	a.mu.Lock()
	if len(a.free) < maxFreeChunks {
		a.free = append(a.free, c)
		a.mu.Unlock()
		return
	}
	a.mu.Unlock()
	unmapMemory(c)
}
