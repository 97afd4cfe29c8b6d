package store

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// A table is a hash table from key to value without pointers per entry: an open-addressing index of 8 bytes a place and
// entries in chunks of bytes, so that millions of rows cost the garbage collector nothing. Entries keep the order in
// which they came, which makes every walk deterministic although the hash is seeded per process.
//
// An entry is a header of four words (key length, value length, value capacity, flags), the key and the value, padded to
// eight bytes. A value that outgrows its capacity moves to a new entry; the old one is marked dead.
type table struct {
	index  index // upper half: hash; lower half: 1 + address of the entry in units of 8 bytes; 0: free
	chunks [][]byte
	used   int // chunks in use; the ones behind wait to be used again
	live   int
	dead   int // bytes of dead entries
	size   int // bytes of all entries
}

const (
	chunkBits   = 18 // chunks of 256 KiB, addressed by their number and an offset within
	chunkBytes  = 1 << chunkBits
	firstChunk  = 1 << 12
	entryHeader = 16
	absent      = ^uint32(0) // value length of a row that is known not to be there
)

// Flags of an entry. Overlays use the upper three, caches the lower ones.
const (
	flagDead     uint32 = 1 << iota // superseded: no part of the table any more
	flagDirty                       // committed, not yet in the engine
	flagInFlight                    // being written to the engine
	flagInEngine                    // the engine has, or may have, a row for this key
	flagBorn                        // did not exist before this epoch
	flagEmit                        // changed and not yet emitted
)

var hashSeed = maphash.MakeSeed()

func hashKey(key []byte) uint32 { return uint32(maphash.Bytes(hashSeed, key) >> 32) }

// An entry is a view into a chunk; it is good until the table's next insertion.
type entry []byte

func (e entry) keyLen() int   { return int(binary.LittleEndian.Uint32(e)) }
func (e entry) valLen() int   { return int(binary.LittleEndian.Uint32(e[4:])) }
func (e entry) valCap() int   { return int(binary.LittleEndian.Uint32(e[8:])) }
func (e entry) flags() uint32 { return binary.LittleEndian.Uint32(e[12:]) }
func (e entry) absent() bool  { return binary.LittleEndian.Uint32(e[4:]) == absent }
func (e entry) key() []byte   { return e[entryHeader : entryHeader+e.keyLen()] }

func (e entry) value() []byte {
	if e.absent() {
		return nil
	}
	at := entryHeader + e.keyLen()
	return e[at : at+e.valLen() : at+e.valLen()]
}

func (e entry) set(flag uint32) { binary.LittleEndian.PutUint32(e[12:], e.flags()|flag) }
func (e entry) clear(flag uint32) {
	binary.LittleEndian.PutUint32(e[12:], e.flags()&^flag)
}

func entrySize(keyLen, valCap int) int { return (entryHeader + keyLen + valCap + 7) &^ 7 }

func (e entry) size() int { return entrySize(e.keyLen(), e.valCap()) }

func (t *table) at(address uint32) entry {
	pos := uint64(address-1) << 3
	return entry(t.chunks[pos>>chunkBits][pos&(chunkBytes-1):])
}

// bytes is the memory that the table holds, index included.
func (t *table) bytes() int { return t.size + 8*len(t.index.places) }

func (t *table) find(hash uint32, key []byte) (entry, bool) {
	if len(t.index.places) == 0 {
		return nil, false
	}
	mask := uint32(len(t.index.places) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		place := t.index.places[i]
		if place == 0 {
			return nil, false
		}
		if uint32(place>>32) == hash {
			if e := t.at(uint32(place)); bytes.Equal(e.key(), key) {
				return e, true
			}
		}
	}
}

// put sets the value of key (nil: known absent) and replaces its flags. It returns the entry.
func (t *table) put(hash uint32, key, value []byte, flags uint32) entry {
	if 4*(t.live+1) > 3*len(t.index.places) {
		t.grow()
	}
	mask := uint32(len(t.index.places) - 1)
	i := hash & mask
	for ; t.index.places[i] != 0; i = (i + 1) & mask {
		if place := t.index.places[i]; uint32(place>>32) == hash {
			e := t.at(uint32(place))
			if !bytes.Equal(e.key(), key) {
				continue
			}
			if len(value) <= e.valCap() {
				e.fill(value, flags)
				return e
			}
			e.set(flagDead)
			t.dead += e.size()
			address, moved := t.add(key, value, flags)
			t.index.places[i] = uint64(hash)<<32 | uint64(address)
			return moved
		}
	}
	address, e := t.add(key, value, flags)
	t.index.places[i] = uint64(hash)<<32 | uint64(address)
	t.live++
	return e
}

func (e entry) fill(value []byte, flags uint32) {
	n := uint32(len(value))
	if value == nil {
		n = absent
	}
	binary.LittleEndian.PutUint32(e[4:], n)
	binary.LittleEndian.PutUint32(e[12:], flags)
	copy(e[entryHeader+e.keyLen():], value)
}

func (t *table) add(key, value []byte, flags uint32) (uint32, entry) {
	capacity := len(value)
	size := entrySize(len(key), capacity)
	capacity = size - entryHeader - len(key) // the padding serves small growth
	pos := t.reserve(size)
	e := entry(t.chunks[pos>>chunkBits][pos&(chunkBytes-1):])
	binary.LittleEndian.PutUint32(e, uint32(len(key)))
	binary.LittleEndian.PutUint32(e[8:], uint32(capacity))
	copy(e[entryHeader:], key)
	e.fill(value, flags)
	t.size += size
	return uint32(pos>>3) + 1, e
}

// reserve extends the last chunk by size bytes, or starts a new one, and returns the address of the room.
func (t *table) reserve(size int) uint64 {
	if t.used == 0 {
		t.open(max(firstChunk, size))
	}
	last := t.used - 1
	c := t.chunks[last]
	switch {
	case len(c)+size <= cap(c):
	case last == 0 && len(c)+size <= chunkBytes: // a small table stays small
		t.chunks[0] = enlarge(c, size)
	default:
		t.open(max(chunkBytes, size)) // a row larger than a chunk has one of its own
		last++
	}
	c = t.chunks[last]
	t.chunks[last] = c[:len(c)+size]
	return uint64(last)<<chunkBits | uint64(len(c))
}

// enlarge copies a small table's only chunk into a larger one.
func enlarge(c []byte, size int) []byte {
	capacity := max(2*cap(c), len(c)+size)
	if capacity >= chunkBytes {
		return append(chunkArena.take(), c...)
	}
	return append(make([]byte, 0, capacity), c...)
}

// open starts the next chunk, with an old one's memory where that is large enough.
func (t *table) open(capacity int) {
	if t.used == len(t.chunks) || cap(t.chunks[t.used]) < capacity {
		var c []byte
		if capacity == chunkBytes {
			c = chunkArena.take()
		} else {
			c = make([]byte, 0, capacity)
		}
		t.chunks = slices.Insert(t.chunks, t.used, c) // one that is too small goes on waiting behind it
	}
	t.used++
}

func (t *table) grow() {
	old := t.index
	defer old.release()
	t.index = newIndex(max(16, 2*len(old.places)))
	mask := uint32(len(t.index.places) - 1)
	for _, place := range old.places {
		if place == 0 {
			continue
		}
		i := uint32(place>>32) & mask
		for t.index.places[i] != 0 {
			i = (i + 1) & mask
		}
		t.index.places[i] = place
	}
}

// each visits the live entries in the order in which they came, until visit returns false.
func (t *table) each(visit func(e entry) bool) {
	for _, c := range t.chunks[:t.used] {
		for len(c) > 0 {
			e := entry(c)
			n := e.size()
			if e.flags()&flagDead == 0 && !visit(e) {
				return
			}
			c = c[n:]
		}
	}
}

// reset empties the table. It keeps its memory while that is at most keep bytes: an epoch is about as large as the last.
func (t *table) reset(keep int) {
	if t.bytes() > keep {
		t.release()
		return
	}
	clear(t.index.places)
	ordinary := t.chunks[:0]
	for _, c := range t.chunks {
		if cap(c) <= chunkBytes {
			ordinary = append(ordinary, c[:0])
		}
	}
	clear(t.chunks[len(ordinary):])
	t.chunks = ordinary
	t.used, t.live, t.dead, t.size = 0, 0, 0, 0
}

// release empties the table and gives its memory back. Nobody may hold an entry of it any more.
func (t *table) release() {
	for _, c := range t.chunks {
		if cap(c) == chunkBytes {
			chunkArena.give(c)
		}
	}
	t.index.release()
	*t = table{}
}
