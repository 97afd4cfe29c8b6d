package topology

import (
	"encoding/binary"
	"math"
	"slices"

	"millrace/record"
)

// closing is a segment whose keys are being walked: to put out its rows, to end them, or both. It is resumed by the next
// call of fire, so that an epoch may end in between; nothing is written to the segment meanwhile.
type closing struct {
	segment int64
	keys    KeySet
	next    int
	first   bool // corrections: only first results go out, the rows stay
}

// due tells whether fire has something to do. It is asked after every record.
func (a *aggregator) due() bool { return a.closing != nil || a.watermark >= a.dueAt }

// schedule finds the watermark from which on something is due. It must be called after what it looks at has changed.
func (a *aggregator) schedule() {
	a.dueAt = math.MaxInt64
	switch {
	case a.plan.ttl > 0:
		a.dueAt = max(a.sweep, record.NoTime+1)
	case a.plan.windows == nil || len(a.open) == 0:
	case a.plan.slices:
		a.dueAt = a.slicesDueAt()
	default:
		a.dueAt = a.plan.windows.CloseTime(a.open[0])
		if a.plan.emit == emitCorrections {
			a.dueAt = min(a.dueAt, a.nextFirst())
		}
	}
}

// nextFirst returns the end of the first open window whose first results are owed; MaxInt64 if there is none.
func (a *aggregator) nextFirst() int64 {
	i, found := slices.BinarySearch(a.open, a.fired)
	if found {
		i++
	}
	if i == len(a.open) {
		return math.MaxInt64
	}
	return a.open[i]
}

// fire does about budget rows of what is due. Finals go out in the order of their windows' ends, then of their keys.
func (a *aggregator) fire(budget *int) error {
	switch {
	case a.plan.ttl > 0:
		return a.sweepShards(budget)
	case a.plan.slices:
		return a.fireSlices(budget)
	}
	if a.closing == nil {
		segment, first := a.open[0], false
		if !a.plan.windows.Closed(segment, a.watermark) {
			segment, first = a.nextFirst(), true
		}
		keys, err := a.store.Keys(segment)
		if err != nil {
			return fatal{err}
		}
		a.closing = &closing{segment: segment, keys: keys, first: first}
	}
	c := a.closing
	for ; c.next < c.keys.Len(); c.next++ {
		if *budget <= 0 {
			return nil
		}
		*budget--
		if err := a.closeRow(c, c.keys.At(c.next)); err != nil {
			return err
		}
	}
	a.closing = nil
	if c.first {
		a.fired = c.segment
		return nil
	}
	a.end(c.segment)
	return nil
}

// closeRow puts out one row of a window that is over, if it is still owed, and ends it.
func (a *aggregator) closeRow(c *closing, key []byte) error {
	row, found, err := a.store.Load(c.segment, key)
	if err != nil {
		return fatal{err}
	}
	if !found {
		return nil
	}
	owed := a.plan.emit == emitChanges && a.store.Pending()
	state, newest, revision, err := splitRow(row)
	if err != nil {
		return fatal{err}
	}
	switch a.plan.emit {
	case emitFinal:
		owed = true
	case emitCorrections:
		if owed = revision == 0; owed {
			revision = 1
		}
	}
	if c.first {
		if owed {
			a.state = appendTrailer(append(a.state[:0], state...), newest, revision)
			a.store.Save(c.segment, key, a.state, false)
			state = a.state[:len(a.state)-rowTrailer]
		}
	} else {
		a.state = append(a.state[:0], state...)
		state = a.state
		a.endRow(c.segment, key, owed)
		a.tallies.closed.n++
	}
	if !owed {
		return nil
	}
	return a.result.emit(key, state, newest, a.window(c.segment), revision)
}

// endRow deletes a row. owed tells that its last change goes out now.
func (a *aggregator) endRow(segment int64, key []byte, owed bool) {
	if owed && a.plan.emit == emitChanges && a.deletes() {
		a.ended[rowID(segment, key)] = struct{}{}
	}
	a.store.Delete(segment, key)
}

func rowID(segment int64, key []byte) string {
	return string(append(binary.BigEndian.AppendUint64(nil, uint64(segment)), key...))
}

// end forgets a segment whose rows have all been deleted.
func (a *aggregator) end(segment int64) {
	a.store.DropSegment(segment)
	if i, found := slices.BinarySearch(a.open, segment); found {
		a.open = slices.Delete(a.open, i, i+1)
	}
}

// emitChanged puts out the rows that this epoch has changed, one each. A row that has ended in the epoch is news only if
// a fold ended it: the end of its window or ttl says nothing about its last result, which went out then.
func (a *aggregator) emitChanged() error {
	if a.plan.slices {
		return a.emitChangedSlices()
	}
	defer clear(a.ended)
	return a.store.Changed(func(segment int64, key, row []byte) error {
		if row == nil {
			if _, over := a.ended[rowID(segment, key)]; over || !a.deletes() {
				return nil
			}
			return a.result.remove(key, a.window(segment))
		}
		state, newest, revision, err := splitRow(row)
		if err != nil {
			return fatal{err}
		}
		return a.result.emit(key, state, newest, a.window(segment), revision)
	})
}

// Rows that a ttl ends live in shards, so that a sweep walks a part of the keys at a time.
const ttlShards = 64

// shard is the segment of an un-windowed row. It must be the same in every process, so the hash has no seed.
func (a *aggregator) shard(key []byte) int64 {
	if a.plan.ttl == 0 {
		return 0
	}
	return int64(record.Murmur2(key) % ttlShards)
}

// expired tells whether a row's ttl is over, in event time.
func (a *aggregator) expired(row []byte) bool {
	if a.plan.ttl == 0 || a.watermark == record.NoTime {
		return false
	}
	_, newest, _, err := splitRow(row)
	return err == nil && newest < a.watermark-a.plan.ttl
}

// sweepShards ends rows whose ttl is over. A row is expired from the moment on that its ttl says, whether it has been
// swept or not; sweeping only frees the room. Each shard comes once a ttl of event time.
func (a *aggregator) sweepShards(budget *int) error {
	step := max(a.plan.ttl/ttlShards, 1)
	if round := step * (ttlShards - 1); a.sweep == record.NoTime || a.watermark-a.sweep > round {
		a.sweep = a.watermark - round // after a jump all shards are due, once
	}
	shard := (a.sweep/step%ttlShards + ttlShards) % ttlShards
	keys, err := a.store.Keys(shard)
	if err != nil {
		return fatal{err}
	}
	for i := range keys.Len() {
		row, found, err := a.store.Load(shard, keys.At(i))
		if err != nil {
			return fatal{err}
		}
		*budget--
		if found && a.expired(row) {
			if err := a.endExpired(shard, keys.At(i), row); err != nil {
				return err
			}
		}
	}
	*budget--
	a.sweep += step
	return nil
}

// endExpired deletes a row, after its last change: whether an epoch ended in between must not decide if that is seen.
func (a *aggregator) endExpired(shard int64, key, row []byte) error {
	owed := a.store.Pending()
	state, newest, revision, err := splitRow(row)
	if err != nil {
		return fatal{err}
	}
	a.state = append(a.state[:0], state...)
	a.endRow(shard, key, owed)
	a.tallies.expired.n++
	if !owed {
		return nil
	}
	return a.result.emit(key, a.state, newest, record.Window{}, revision)
}
