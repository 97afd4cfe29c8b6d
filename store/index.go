package store

import "unsafe"

// An index's places lie outside the Go heap from a certain size on, as chunks do, and for the same reason.
type index struct {
	places []uint64
	memory []byte // what holds them; nil: the Go heap does
}

// mappedIndex is the least size, in bytes, of an index outside the Go heap: a mapping takes whole pages and a call.
const mappedIndex = 64 << 10

// newIndex returns free places; their number is a power of two.
func newIndex(places int) index {
	size := 8 * places
	if size < mappedIndex {
		return index{places: make([]uint64, places)}
	}
	b := mapMemory(size) // aligned to a page, or as the Go heap aligns what is larger than a word
	return index{unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), places), b}
}

// release gives the memory back. Nobody may hold the places any more.
func (x *index) release() {
	if x.memory != nil {
		unmapMemory(x.memory)
	}
	*x = index{}
}
