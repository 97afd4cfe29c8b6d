package store

// A cache holds committed rows: clean ones (the engine has them too), dirty ones (not yet flushed) and keys known to be
// absent. It has two generations. New and used rows live in the young one; when the budget is full and everything is
// flushed, the old generation is dropped whole and the young one takes its place. That is a second-chance eviction
// without a list, a pointer or a hole in the memory.
type cache struct {
	young, old layer
	engine     map[int64]*onDisk // segments that have rows in the engine
	dropped    map[int64]bool    // segments that ended; their rows in the engine go with the next flush
	hits       int64             // lookups answered from memory
	misses     int64             // lookups that went to the engine
}

type onDisk struct {
	partial bool // not every row of the segment is in memory: a miss must ask the engine
}

func newCache() cache {
	return cache{engine: map[int64]*onDisk{}, dropped: map[int64]bool{}}
}

// mustAskEngine tells whether the engine may know rows of the segment that the memory does not.
func (c *cache) mustAskEngine(segment int64) bool {
	if len(c.engine) == 0 {
		return false
	}
	d := c.engine[segment]
	return d != nil && d.partial && !c.dropped[segment]
}

func (c *cache) load(s *Store, segment int64, key []byte) ([]byte, bool, error) {
	if y := c.young.find(segment); y != nil {
		if e, ok := y.table.find(s.hash, key); ok {
			c.hits++
			return e.value(), !e.absent(), nil
		}
	}
	if o := c.old.find(segment); o != nil {
		if e, ok := o.table.find(s.hash, key); ok && e.flags()&flagDead == 0 {
			c.hits++
			e = c.promote(segment, s.hash, e)
			return e.value(), !e.absent(), nil
		}
	}
	if !c.mustAskEngine(segment) {
		c.hits++
		return nil, false, nil
	}
	c.misses++
	s.state.key = append(appendSegment(s.state.key[:0], s.number, segment), key...)
	value, found, err := s.state.engine.Get(s.state.key)
	if err != nil {
		return nil, false, err
	}
	flags := uint32(0)
	if found {
		flags = flagInEngine
		if value == nil {
			value = []byte{}
		}
	} else {
		value = nil
	}
	e := c.young.open(segment).table.put(s.hash, key, value, flags)
	return e.value(), found, nil
}

// promote moves a used row to the young generation, flags and all.
func (c *cache) promote(segment int64, hash uint32, e entry) entry {
	moved := c.young.open(segment).table.put(hash, e.key(), e.value(), e.flags())
	e.set(flagDead)
	return moved
}

// apply takes one committed change as dirty. hash is the key's.
func (c *cache) apply(segment int64, hash uint32, key, value []byte) {
	known, inEngine := false, false
	if y := c.young.find(segment); y != nil {
		if e, ok := y.table.find(hash, key); ok {
			known, inEngine = true, e.flags()&(flagInEngine|flagInFlight) != 0
		}
	}
	if !known {
		if o := c.old.find(segment); o != nil {
			if e, ok := o.table.find(hash, key); ok && e.flags()&flagDead == 0 {
				known, inEngine = true, e.flags()&(flagInEngine|flagInFlight) != 0
				e.set(flagDead)
			}
		}
	}
	if !known {
		inEngine = c.mustAskEngine(segment) // nobody asked: it may have the row
	}
	flags := flagDirty
	if inEngine {
		flags |= flagInEngine
	}
	if value == nil && !inEngine {
		flags = 0 // the engine never had it: nothing to delete there
	}
	c.young.open(segment).table.put(hash, key, value, flags)
}

// drop forgets a segment whose rows have all ended.
func (c *cache) drop(segment int64) {
	c.young.remove(segment)
	c.old.remove(segment)
	if c.engine[segment] != nil {
		c.dropped[segment] = true
	}
}

func (c *cache) bytes() int { return c.young.bytes() + c.old.bytes() }

// rotate drops the old generation, whose rows must all be clean, and ages the young one.
func (c *cache) rotate() {
	for _, g := range c.old.segments {
		if d := c.engine[g.id]; d != nil && g.table.live > 0 {
			d.partial = true
		}
	}
	c.old.release()
	c.old, c.young = c.young, layer{}
}
