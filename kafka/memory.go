package kafka

import (
	"slices"
	"sync"
	"sync/atomic"

	"millrace/record"
)

// memory is what the answers of one connection lie in, and the lists of their records. Both are megabytes that would
// otherwise be cleared by the allocator for every answer, only to be written over. Whoever has worked a batch off gives
// its memory back; what nobody gives back is the garbage collector's, as ever.
type memory struct {
	mu    sync.Mutex
	bytes [][]byte
	lists [][]record.Record
}

// What is kept at most of what nobody uses: about an answer of each kind that a connection has under way.
const (
	keptBytes   = 8 << 20
	keptRecords = 64 << 10 // 6 MiB
)

// answerBytes is one answer's bytes, which the batches of several partitions share.
type answerBytes struct {
	memory *memory
	b      []byte
	users  atomic.Int32 // batches that have not been worked off
}

func (m *memory) answer(size int) *answerBytes {
	return &answerBytes{memory: m, b: take(m, &m.bytes, size)[:size]}
}

// release says that one of the batches is worked off.
func (a *answerBytes) release() {
	if a.users.Add(-1) == 0 {
		give(a.memory, &a.memory.bytes, a.b, keptBytes)
	}
}

// list returns an empty list with room for n records.
func (m *memory) list(n int) []record.Record { return take(m, &m.lists, n) }

// free returns what gives back a batch's part of the answer and its list.
func (m *memory) free(a *answerBytes, list []record.Record) func() {
	return func() {
		clear(list) // or it would keep answers that nobody needs
		give(m, &m.lists, list, keptRecords)
		a.release()
	}
}

// smallest is the size up to which any will do.
const smallest = 1 << 12

// take returns the first that is large enough and not much larger, or a new one.
func take[T any](m *memory, from *[][]T, size int) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, s := range *from {
		if cap(s) >= size && cap(s) <= 4*size+smallest {
			*from = slices.Delete(*from, i, i+1)
			return s[:0]
		}
	}
	return make([]T, 0, size)
}

// give keeps s, in the place of the oldest if that would be too much: sizes change with the load.
func give[T any](m *memory, to *[][]T, s []T, most int) {
	if cap(s) > most {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	room := cap(s)
	for _, k := range *to {
		room += cap(k)
	}
	oldest := 0
	for ; room > most; oldest++ {
		room -= cap((*to)[oldest])
	}
	*to = append(slices.Delete(*to, 0, oldest), s)
}
