package store

import (
	"bytes"
	"slices"
	"time"

	"millrace/record"
)

// FlushStats tells what a flush wrote.
type FlushStats struct {
	Rows  int
	Bytes int
	Took  time.Duration
}

type flushResult struct {
	stats FlushStats
	err   error
}

// FlushDue tells whether dirty rows should go to the engine now: they are old enough, or the cache is full.
func (s *State) FlushDue(now time.Time) bool {
	if s.flushing != nil || s.dirtySince.IsZero() || s.broken != nil {
		return false
	}
	return now.Sub(s.dirtySince) >= s.options.FlushInterval || s.CacheBytes() > s.options.CacheBytes
}

// Full tells whether the cache is so far over its bound that the task should wait for a flush.
func (s *State) Full() bool {
	return (s.flushing != nil || !s.dirtySince.IsZero()) && s.CacheBytes() > 2*s.options.CacheBytes
}

// Trim lets rows go that were only read: with nothing dirty no flush will do it.
func (s *State) Trim() {
	if s.flushing == nil && s.dirtySince.IsZero() && s.CacheBytes() > s.options.CacheBytes {
		for _, st := range s.stores {
			st.cache.rotate()
		}
	}
}

// StartFlush copies the dirty rows and writes them in a goroutine of its own; Flushed tells when it is done.
func (s *State) StartFlush(now time.Time) {
	drop := s.dropPrefixes()
	rows, arena := s.dirtyRows()
	c := Checkpoint{Positions: append([]record.Offset(nil), s.positions...), Written: now, Note: s.note}
	done := make(chan flushResult, 1)
	s.flushing, s.dirtySince = done, time.Time{}
	s.flushed = c.Positions
	go func() {
		begin := time.Now()
		slices.SortFunc(rows, func(a, b Row) int { return bytes.Compare(a.Key, b.Key) })
		err := s.engine.Flush(rows, drop, c)
		done <- flushResult{FlushStats{len(rows), len(arena), time.Since(begin)}, err}
	}()
}

// Flushing tells whether a flush is under way; the channel delivers nothing to the caller, Flushed does.
func (s *State) Flushing() bool { return s.flushing != nil }

// Flushed finishes a flush that has been written. done is false while it is under way, or when there is none; with wait
// it waits. After an error the State must be closed: its rows and the engine's no longer agree, and a later checkpoint
// would speak for rows that were lost, so none is written.
func (s *State) Flushed(wait bool) (stats FlushStats, done bool, err error) {
	if s.flushing == nil {
		return stats, false, nil
	}
	var r flushResult
	if wait {
		r = <-s.flushing
	} else {
		select {
		case r = <-s.flushing:
		default:
			return stats, false, nil
		}
	}
	s.flushing = nil
	if r.err != nil {
		s.broken = r.err
		return r.stats, true, r.err
	}
	for _, st := range s.stores {
		st.cache.landed()
	}
	if s.CacheBytes() > s.options.CacheBytes {
		for _, st := range s.stores {
			st.cache.rotate()
		}
	}
	return r.stats, true, nil
}

// Flush writes everything that is committed and waits: on a clean stop, and in steps of a restore.
func (s *State) Flush(now time.Time) (FlushStats, error) {
	if stats, done, err := s.Flushed(true); done && err != nil {
		return stats, err
	}
	if s.broken != nil {
		return FlushStats{}, s.broken
	}
	if s.dirtySince.IsZero() && slices.Equal(s.positions, s.flushed) {
		return FlushStats{}, nil
	}
	s.StartFlush(now)
	stats, _, err := s.Flushed(true)
	return stats, err
}

// Close closes the engine without flushing.
func (s *State) Close() error {
	_, _, flushErr := s.Flushed(true)
	for _, st := range s.stores {
		st.entry = nil
		for _, l := range []*layer{&st.overlay, &st.frozen, &st.cache.young, &st.cache.old} {
			l.release()
		}
	}
	if err := s.engine.Close(); err != nil {
		return err
	}
	return flushErr
}

// dirtyRows copies every dirty row and marks it as in flight.
func (s *State) dirtyRows() (rows []Row, arena []byte) {
	n, size := 0, 0
	s.eachDirty(func(_ *Store, _ int64, e entry) {
		n++
		size += segmentBytes + e.keyLen() + len(e.value())
	})
	rows, arena = make([]Row, 0, n), make([]byte, 0, size) // exact, so that the rows may alias the arena
	s.eachDirty(func(st *Store, segment int64, e entry) {
		from := len(arena)
		arena = append(appendSegment(arena, st.number, segment), e.key()...)
		r := Row{Key: arena[from:len(arena):len(arena)]}
		if !e.absent() {
			from = len(arena)
			arena = append(arena, e.value()...)
			r.Value = arena[from:len(arena):len(arena)]
		}
		rows = append(rows, r)
		e.clear(flagDirty)
		e.set(flagInFlight)
		if st.cache.engine[segment] == nil { // from now on the segment must be dropped there too
			st.cache.engine[segment] = &onDisk{}
		}
	})
	return rows, arena
}

func (s *State) eachDirty(visit func(st *Store, segment int64, e entry)) {
	for _, st := range s.stores {
		for _, l := range []*layer{&st.cache.old, &st.cache.young} {
			for _, g := range l.segments {
				g.table.each(func(e entry) bool {
					if e.flags()&flagDirty != 0 {
						visit(st, g.id, e)
					}
					return true
				})
			}
		}
	}
}

// dropPrefixes lists the engine's rows of segments that have ended, and forgets the segments.
func (s *State) dropPrefixes() [][]byte {
	var prefixes [][]byte
	for _, st := range s.stores {
		for id := range st.cache.dropped {
			prefixes = append(prefixes, appendSegment(nil, st.number, id))
			delete(st.cache.engine, id)
		}
		clear(st.cache.dropped)
	}
	slices.SortFunc(prefixes, bytes.Compare)
	return prefixes
}

// landed turns rows in flight into clean ones.
func (c *cache) landed() {
	for _, l := range []*layer{&c.old, &c.young} {
		for _, g := range l.segments {
			g.table.each(func(e entry) bool {
				if e.flags()&flagInFlight != 0 {
					e.clear(flagInFlight)
					if !e.absent() {
						e.set(flagInEngine)
					}
				}
				return true
			})
		}
	}
}
