// Package store holds the state of tasks: uncommitted rows in memory, committed rows in a cache, and Badger behind them
// as a copy that may lag but never leads what Kafka has committed. It knows neither Kafka nor event time.
package store

import (
	"fmt"
	"time"

	"millrace/record"
)

// Engine is the durable half. Only Flush writes, and it writes only what has been committed. Get and Range may run
// while a Flush does; all else is the task's goroutine alone.
type Engine interface {
	// Get returns a copy of the value, good until the next Get.
	Get(key []byte) (value []byte, found bool, err error)
	// Range visits the rows whose keys start with prefix, in order, until visit returns false.
	Range(prefix []byte, visit func(key, value []byte) bool) error
	// Heads visits the first n bytes of the keys that start with prefix, each once and in order. It skips from one to the
	// next, so that it costs what there are of them and not what there are of rows. Keys shorter than n have none.
	Heads(prefix []byte, n int, visit func(head []byte)) error
	// Flush drops the prefixes, writes the rows (sorted by key; a nil value deletes), and then the checkpoint.
	Flush(rows []Row, drop [][]byte, c Checkpoint) error
	// Checkpoint returns what the last Flush wrote; ok is false for an empty engine.
	Checkpoint() (c Checkpoint, ok bool, err error)
	// DiskBytes is the space that the engine's files take, and how much of it is a log of large values.
	DiskBytes() (all, valueLog int64)
	Close() error
}

// Row is a row on its way to the engine.
type Row struct{ Key, Value []byte }

// Options of a State.
type Options struct {
	Stores        []string      // names of the steps, in the plan's order
	CacheBytes    int           // bound of the committed rows in memory
	FlushInterval time.Duration // how old a dirty row may get
}

// State is all stores of one task over one engine. The task's goroutine owns it; only a flush's writing runs beside.
type State struct {
	stores    []*Store
	engine    Engine
	options   Options
	positions []record.Offset // of the cache: next offset of each changelog
	reused    []record.Offset // positions as found in the engine at Open
	flushed   []record.Offset // positions that the engine has
	note      []byte          // the task's progress as of positions
	written   time.Time       // when the checkpoint found at Open was written; zero for an empty engine

	flushing   chan flushResult // nil: no flush under way
	broken     error            // of a flush that failed: the engine is behind what the rows' flags say
	dirtySince time.Time        // zero: nothing is dirty
	key        []byte           // scratch for engine keys
	keep       int              // bytes that a recycled overlay may keep
}

// Open returns a State over an engine, positioned at its checkpoint: 0 for every store of an empty one.
func Open(e Engine, o Options) (*State, error) {
	s := &State{engine: e, options: o, positions: make([]record.Offset, len(o.Stores)), keep: 16 << 20}
	for i, name := range o.Stores {
		s.stores = append(s.stores, &Store{state: s, number: i, name: name, cache: newCache()})
	}
	c, ok, err := e.Checkpoint()
	if err != nil {
		return nil, err
	}
	if ok {
		if len(c.Positions) != len(s.positions) {
			return nil, fmt.Errorf("the engine holds %d stores, the plan has %d", len(c.Positions), len(s.positions))
		}
		copy(s.positions, c.Positions)
		s.note, s.written = c.Note, c.Written
		if err := s.findSegments(); err != nil {
			return nil, err
		}
	}
	s.reused = append(s.reused, s.positions...)
	s.flushed = append(s.flushed, s.positions...)
	return s, nil
}

// findSegments notes which segments have rows in the engine, at a cost that does not grow with their rows.
func (s *State) findSegments() error {
	for i, st := range s.stores {
		prefix := appendSegment(nil, i, 0)[:2]
		err := s.engine.Heads(prefix, segmentBytes, func(head []byte) {
			_, segment, _ := parseSegment(head)
			st.cache.engine[segment] = &onDisk{partial: true}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Store returns store i.
func (s *State) Store(i int) *Store { return s.stores[i] }

// Stores returns the number of stores.
func (s *State) Stores() int { return len(s.stores) }

// Position is the next offset of store i's changelog: everything before is in the State.
func (s *State) Position(i int) record.Offset { return s.positions[i] }

// Reused is the position that store i had when the State was opened: 0 when nothing was on disk.
func (s *State) Reused(i int) record.Offset { return s.reused[i] }

// Note is what the task noted with the State's positions.
func (s *State) Note() []byte { return s.note }

// SetNote replaces the note; it goes to the engine with the next flush.
func (s *State) SetNote(note []byte) { s.note = append(s.note[:0:0], note...) }

// Written tells when the engine's checkpoint, as found at Open, was written; zero for an empty engine.
func (s *State) Written() time.Time { return s.written }

// OverlayBytes is the memory of what is not committed.
func (s *State) OverlayBytes() int {
	n := 0
	for _, st := range s.stores {
		n += st.overlay.bytes() + st.frozen.bytes()
	}
	return n
}

// CacheBytes is the memory of committed rows.
func (s *State) CacheBytes() int {
	n := 0
	for _, st := range s.stores {
		n += st.CacheBytes()
	}
	return n
}

// SetCacheBytes changes the bound of committed rows in memory.
func (s *State) SetCacheBytes(n int) { s.options.CacheBytes = n }

// Freeze ends the epoch's writes: they wait in the frozen layer for Commit or Abort. The one before must be decided.
func (s *State) Freeze() {
	for _, st := range s.stores {
		if !st.frozen.empty() {
			panic("store: freeze while an epoch is undecided")
		}
		st.frozen, st.overlay = st.overlay, st.frozen
		st.entry = nil
	}
}

// Commit moves the frozen rows into the cache: Kafka has committed them, with the changelogs at positions.
func (s *State) Commit(positions []record.Offset, now time.Time) {
	for _, st := range s.stores {
		for _, g := range st.frozen.segments {
			if g.dropped {
				st.cache.drop(g.id)
			}
			g.table.each(func(e entry) bool {
				if !g.dropped || !e.absent() {
					st.cache.apply(g.id, hashKey(e.key()), e.key(), e.value())
				}
				return true
			})
		}
		st.frozen.recycle(s.keep)
	}
	for i, p := range positions {
		s.SetPosition(i, p, now)
	}
}

// Abort drops everything that is not committed.
func (s *State) Abort() {
	for _, st := range s.stores {
		st.overlay.recycle(s.keep)
		st.frozen.recycle(s.keep)
		st.entry = nil
	}
}

// Apply takes one committed change from store i's changelog, at restore; nil ends the row.
func (s *State) Apply(i int, segment int64, key, value []byte) {
	s.stores[i].cache.apply(segment, hashKey(key), key, value)
}

// SetPosition moves store i's position: everything before next has been applied. A position alone is worth a flush too,
// since a restart replays from the engine's.
func (s *State) SetPosition(i int, next record.Offset, now time.Time) {
	if next > s.positions[i] {
		s.positions[i] = next
		if s.dirtySince.IsZero() {
			s.dirtySince = now
		}
	}
}

// CacheStats returns how many lookups the memory answered and how many went to the engine, since the last call.
func (s *State) CacheStats() (hits, misses int64) {
	for _, st := range s.stores {
		hits += st.cache.hits
		misses += st.cache.misses
		st.cache.hits, st.cache.misses = 0, 0
	}
	return hits, misses
}

// DiskBytes is the space that the engine's files take, and how much of it is a log of large values.
func (s *State) DiskBytes() (all, valueLog int64) { return s.engine.DiskBytes() }

// Rows counts the committed rows in memory of store i; rows that only the engine holds are not in it.
func (s *State) Rows(i int) int64 {
	n := 0
	c := &s.stores[i].cache
	for _, l := range []*layer{&c.young, &c.old} {
		for _, g := range l.segments {
			n += g.table.live
		}
	}
	return int64(n)
}
