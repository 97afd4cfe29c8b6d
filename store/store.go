package store

import (
	"bytes"
	"slices"
	"time"

	"millrace/record"
)

// Store is one step's state in one task: an overlay of this epoch's writes, the frozen overlay of the epoch that is
// being committed, the cache of committed rows, and the engine that all stores of the task share. A read stops at the
// first of them that knows. Only the task's goroutine uses it.
//
// Rows are apart by segment: the end of their window, or 0 where there is none. Whole segments end at once.
type Store struct {
	state  *State
	number int // first part of the engine's keys
	name   string

	overlay, frozen layer
	cache           cache
	operations      operations

	// What the last Load found, for the Save that follows it.
	hash  uint32
	entry entry
	born  bool
}

// Name is the step's name.
func (s *Store) Name() string { return s.name }

// CacheBytes is the memory of the store's committed rows.
func (s *Store) CacheBytes() int { return s.cache.bytes() }

// Load returns the row's value as of now: this epoch's writes included. The value aliases the store's memory and is good
// until the next call; the caller copies what it changes. An error is the engine's, and fails the task.
func (s *Store) Load(segment int64, key []byte) (value []byte, found bool, err error) {
	if s.operations.due(record.StoreGet) {
		defer s.operations.since(record.StoreGet, time.Now())
	}
	s.hash, s.entry, s.born = hashKey(key), nil, false
	if o := s.overlay.find(segment); o != nil {
		if e, ok := o.table.find(s.hash, key); ok {
			s.entry = e
			return e.value(), !e.absent(), nil
		}
		if o.dropped {
			s.born = true
			return nil, false, nil
		}
	}
	if f := s.frozen.find(segment); f != nil {
		if e, ok := f.table.find(s.hash, key); ok {
			s.born = e.absent()
			return e.value(), !e.absent(), nil
		}
		if f.dropped {
			s.born = true
			return nil, false, nil
		}
	}
	value, found, err = s.cache.load(s, segment, key)
	s.born = !found
	return value, found, err
}

// Save writes the row that the last Load asked for; nil deletes it. emit marks it as changed for Changed to find.
func (s *Store) Save(segment int64, key, value []byte, emit bool) {
	kind := record.StorePut
	if value == nil {
		kind = record.StoreDelete
	}
	if s.operations.due(kind) {
		defer s.operations.since(kind, time.Now())
	}
	flags := uint32(0)
	if s.entry != nil {
		flags = s.entry.flags() & (flagBorn | flagEmit)
	} else if s.born {
		flags = flagBorn
	}
	if emit {
		flags |= flagEmit
	}
	if s.entry != nil && !s.entry.absent() && value != nil && len(value) <= s.entry.valCap() {
		s.entry.fill(value, flags)
		return
	}
	o := s.overlay.open(segment)
	o.written = o.written || value != nil
	s.entry = o.table.put(s.hash, key, value, flags)
}

// Delete ends the row that the last Load asked for.
func (s *Store) Delete(segment int64, key []byte) { s.Save(segment, key, nil, false) }

// DropSegment says that every row of the segment has been deleted. It changes no result: it lets the memory and the disk
// of the segment go as a whole instead of row by row.
func (s *Store) DropSegment(segment int64) {
	o := s.overlay.open(segment)
	o.dropped, o.written = true, false
}

// visible returns the parts of the segment from the newest layer down to the first that ended it, and whether the engine
// may know more of it.
func (s *Store) visible(id int64) (parts [4]*segment, n int, ask bool) {
	for _, l := range []*layer{&s.overlay, &s.frozen} {
		if g := l.find(id); g != nil {
			parts[n] = g
			n++
			if g.dropped {
				return parts, n, false
			}
		}
	}
	for _, l := range []*layer{&s.cache.young, &s.cache.old} {
		if g := l.find(id); g != nil {
			parts[n] = g
			n++
		}
	}
	return parts, n, s.cache.mustAskEngine(id)
}

// Segments returns the segments that may hold rows, ascending.
func (s *Store) Segments() []int64 {
	var ids []int64
	for _, l := range []*layer{&s.overlay, &s.frozen, &s.cache.young, &s.cache.old} {
		for _, g := range l.segments {
			ids = append(ids, g.id)
		}
	}
	for id := range s.cache.engine {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id int64) bool {
		parts, n, ask := s.visible(id)
		for _, g := range parts[:n] {
			if g.table.live > 0 && (!g.dropped || g.written) {
				return false
			}
		}
		return !ask
	})
}

// Pending tells whether the row that the last Load asked for was saved with emit and Changed has not visited it since.
func (s *Store) Pending() bool { return s.entry != nil && s.entry.flags()&flagEmit != 0 }

// Changed visits the rows that were saved with emit since they were last visited, in the order of their first change in
// this epoch, and clears their marks; a nil value is a row that ended. visit may call neither Load nor Save.
func (s *Store) Changed(visit func(segment int64, key, value []byte) error) (err error) {
	for _, g := range s.overlay.segments {
		g.table.each(func(e entry) bool {
			if e.flags()&flagEmit != 0 {
				e.clear(flagEmit)
				if !e.absent() || e.flags()&flagBorn == 0 {
					err = visit(g.id, e.key(), e.value())
				}
			}
			return err == nil
		})
	}
	return err
}

// Changes visits the net changes of the frozen epoch: one a row, nil for a row that ended. Rows that began and ended
// within the epoch are left out: nobody has seen them.
func (s *Store) Changes(visit func(segment int64, key, value []byte)) {
	for _, g := range s.frozen.segments {
		g.table.each(func(e entry) bool {
			if !e.absent() || e.flags()&flagBorn == 0 {
				visit(g.id, e.key(), e.value())
			}
			return true
		})
	}
}

// Keys is a set of keys of one segment.
type Keys struct {
	arena []byte
	ends  []keyRef
}

type keyRef struct {
	prefix   uint64 // first eight bytes, big endian: most comparisons end here
	from, to uint32
}

// Len is the number of keys.
func (k *Keys) Len() int { return len(k.ends) }

// At returns key i.
func (k *Keys) At(i int) []byte { return k.arena[k.ends[i].from:k.ends[i].to] }

func (k *Keys) add(key []byte) {
	from := uint32(len(k.arena))
	k.arena = append(k.arena, key...)
	var head [8]byte
	copy(head[:], key)
	k.ends = append(k.ends, keyRef{prefix: bigEndian(head), from: from, to: uint32(len(k.arena))})
}

func (k *Keys) sort() {
	slices.SortFunc(k.ends, func(a, b keyRef) int {
		switch {
		case a.prefix < b.prefix:
			return -1
		case a.prefix > b.prefix:
			return 1
		}
		return bytes.Compare(k.arena[a.from:a.to], k.arena[b.from:b.to])
	})
	k.ends = slices.CompactFunc(k.ends, func(a, b keyRef) bool {
		return a.prefix == b.prefix && bytes.Equal(k.arena[a.from:a.to], k.arena[b.from:b.to])
	})
}

// Keys returns, sorted, every key that may have a row in one of the segments: Load tells whether it has.
func (s *Store) Keys(segments ...int64) (*Keys, error) {
	defer s.operations.since(record.StoreScan, time.Now())
	k := &Keys{arena: []byte{}} // not nil, so that an empty key is not nil either
	for _, segment := range segments {
		if err := s.collect(k, segment); err != nil {
			return nil, err
		}
	}
	k.sort()
	return k, nil
}

func (s *Store) collect(k *Keys, segment int64) error {
	parts, n, ask := s.visible(segment)
	for _, g := range parts[:n] {
		g.table.each(func(e entry) bool {
			if !e.absent() {
				k.add(e.key())
			}
			return true
		})
	}
	if !ask {
		return nil
	}
	prefix := appendSegment(nil, s.number, segment)
	return s.state.engine.Range(prefix, func(key, _ []byte) bool {
		k.add(key[len(prefix):])
		return true
	})
}

// A Scratch is a store whose rows live only in memory and never leave its overlay.
type Scratch struct{ *Store }

// NewScratch returns an empty one. Its owner releases it: its memory is not the garbage collector's.
func NewScratch() Scratch { return Scratch{&Store{cache: newCache()}} }

// Empty ends its rows.
func (s Scratch) Empty() {
	s.overlay.recycle(scratchKeep)
	s.entry = nil
}

// Release gives its memory back; it must not be used any more.
func (s Scratch) Release() {
	s.overlay.release()
	s.entry = nil
}

const scratchKeep = 16 << 20
