package topology

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"millrace/record"
)

// Hopping windows are kept as slices of the greatest common divisor of size and advance: a record changes one row, and a
// window is merged from its slices when it is put out (Traub et al., "Scotty"). A slice ends when the last window that
// it is a part of has been put out.

// cursorSegment is where the window cursor's row lives; no slice ends there.
const cursorSegment = math.MinInt64

var cursorKey = []byte("cursor")

// windowCursor says how far finals are out: all windows that end before end, and of the one that ends there the keys up
// to key; done when it is complete. It is a row of the store, because the rows of slices cannot tell.
type windowCursor struct {
	end  int64
	key  []byte
	done bool
	keys KeySet // of the window that is being put out; nil: to be collected
	next int
	drop *closing // a slice whose rows are being ended
}

func (a *aggregator) readCursor() {
	a.cursor = windowCursor{end: record.NoTime, done: true}
	if !a.plan.slices {
		return
	}
	row, found, err := a.store.Load(cursorSegment, cursorKey)
	if err != nil || !found || len(row) < 9 {
		return // without a cursor nothing has been put out; an engine that fails does so again at the first record
	}
	a.cursor.end = int64(binary.LittleEndian.Uint64(row))
	a.cursor.done = row[8] == 1
	a.cursor.key = bytes.Clone(row[9:])
}

func (a *aggregator) saveCursor() error {
	if _, _, err := a.store.Load(cursorSegment, cursorKey); err != nil {
		return fatal{err}
	}
	row := binary.LittleEndian.AppendUint64(nil, uint64(a.cursor.end))
	done := byte(0)
	if a.cursor.done {
		done = 1
	}
	a.store.Save(cursorSegment, cursorKey, append(append(row, done), a.cursor.key...), false)
	return nil
}

// settled tells whether a window has been put out, as far as the key.
func (c *windowCursor) settled(end int64, key []byte) bool {
	return end < c.end || end == c.end && (c.done || bytes.Compare(key, c.key) <= 0)
}

// settle keeps a record that some windows have refused out of them, although it changes a slice that they share with
// windows that take it: all that have refused it were put out before, also those that nothing was in.
func (a *aggregator) settle() error {
	if len(a.refused) == 0 {
		return nil
	}
	last := a.refused[len(a.refused)-1]
	if last <= a.cursor.end {
		return nil
	}
	a.cursor = windowCursor{end: last, done: true}
	a.schedule()
	return a.saveCursor()
}

// nextWindow returns the end of the first window that is still owed; MaxInt64 if no slice has one.
func (a *aggregator) nextWindow() int64 {
	if !a.cursor.done {
		return a.cursor.end
	}
	w := a.plan.windows
	for _, slice := range a.open {
		for end := w.FirstEnd(slice - 1); end <= w.LastEnd(slice-1); end += w.Advance {
			if end > a.cursor.end {
				return end
			}
		}
	}
	return math.MaxInt64
}

// slicesDueAt is the watermark from which on a window is to be put out or a slice ends.
func (a *aggregator) slicesDueAt() int64 {
	if a.cursor.drop != nil || a.sliceEnded() {
		return math.MinInt64
	}
	return a.plan.windows.CloseTime(a.nextWindow())
}

// sliceEnded tells whether all windows of the first slice have been put out.
func (a *aggregator) sliceEnded() bool {
	last := a.plan.windows.LastEnd(a.open[0] - 1)
	return last < a.cursor.end || last == a.cursor.end && a.cursor.done
}

func (a *aggregator) fireSlices(budget *int) error {
	if a.cursor.drop == nil && a.sliceEnded() {
		keys, err := a.store.Keys(a.open[0])
		if err != nil {
			return fatal{err}
		}
		a.cursor.drop = &closing{segment: a.open[0], keys: keys}
	}
	if a.cursor.drop != nil {
		return a.dropSlice(budget)
	}
	return a.fireWindow(budget)
}

func (a *aggregator) dropSlice(budget *int) error {
	c := a.cursor.drop
	for ; c.next < c.keys.Len(); c.next++ {
		if *budget <= 0 {
			return nil
		}
		*budget--
		_, found, err := a.store.Load(c.segment, c.keys.At(c.next))
		if err != nil {
			return fatal{err}
		}
		if found {
			a.store.Delete(c.segment, c.keys.At(c.next))
		}
	}
	a.cursor.drop = nil
	a.end(c.segment)
	return nil
}

// fireWindow puts out the next window that is due, from where an earlier call stopped.
func (a *aggregator) fireWindow(budget *int) error {
	c := &a.cursor
	end := a.nextWindow()
	slicesOf := a.slicesOf(end)
	if c.done || c.keys == nil {
		keys, err := a.store.Keys(slicesOf...)
		if err != nil {
			return fatal{err}
		}
		resume := c.key
		if c.done {
			resume = nil
		}
		*c = windowCursor{end: end, keys: keys, key: resume}
		for resume != nil && c.next < keys.Len() && bytes.Compare(keys.At(c.next), resume) <= 0 {
			c.next++ // they went out before a restart
		}
	}
	for ; c.next < c.keys.Len(); c.next++ {
		if *budget <= 0 {
			return a.saveCursor()
		}
		*budget--
		key := c.keys.At(c.next)
		c.key = append(c.key[:0], key...)
		newest, found, changed, err := a.mergeSlices(slicesOf, key)
		if err != nil {
			return err
		}
		if found {
			a.tallies.closed.n++
		}
		if found && (changed || a.plan.emit == emitFinal) {
			if err := a.result.emit(key, a.merged, newest, a.window(end), 0); err != nil {
				return err
			}
		}
	}
	*c = windowCursor{end: end, done: true}
	return a.saveCursor()
}

// slicesOf returns the open slices of the window that ends at end.
func (a *aggregator) slicesOf(end int64) []int64 {
	start := a.plan.windows.Start(end)
	var of []int64
	for _, slice := range a.open {
		if slice > start && slice <= end {
			of = append(of, slice)
		}
	}
	return of
}

// mergeSlices leaves the state of a key over several slices in a.merged; changed tells whether one of them has changed
// since its windows were last put out.
func (a *aggregator) mergeSlices(of []int64, key []byte) (newest int64, found, changed bool, err error) {
	a.merged = a.set.Init(a.merged[:0])
	newest = record.NoTime
	for _, slice := range of {
		row, ok, err := a.store.Load(slice, key)
		if err != nil {
			return 0, false, false, fatal{err}
		}
		if !ok {
			continue
		}
		changed = changed || a.store.Pending()
		state, at, _, err := splitRow(row)
		if err != nil {
			return 0, false, false, fatal{err}
		}
		found, newest = true, max(newest, at)
		if a.merged, err = a.worker.Merge(a.merged, state); err != nil {
			return 0, false, false, fatal{err}
		}
	}
	return newest, found, changed, nil
}

// emitChangedSlices puts out every open window that one of this epoch's changed slices is a part of, once a key, in the
// order of the windows' ends, then of the keys' first changes.
func (a *aggregator) emitChangedSlices() error {
	type change struct {
		end   int64
		order int
		key   string
	}
	var changes []change
	w := a.plan.windows
	err := a.store.Changed(func(slice int64, key, _ []byte) error {
		for end := w.FirstEnd(slice - 1); end <= w.LastEnd(slice-1); end += w.Advance {
			if !a.cursor.settled(end, key) {
				changes = append(changes, change{end, len(changes), string(key)})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(changes, func(x, y change) int {
		return cmp.Or(cmp.Compare(x.end, y.end), cmp.Compare(x.order, y.order))
	})
	seen := map[string]bool{}
	for i, c := range changes {
		if i > 0 && changes[i-1].end != c.end {
			clear(seen)
		}
		if seen[c.key] {
			continue
		}
		seen[c.key] = true
		newest, found, _, err := a.mergeSlices(a.slicesOf(c.end), []byte(c.key))
		if err != nil {
			return err
		}
		if found {
			if err := a.result.emit([]byte(c.key), a.merged, newest, a.window(c.end), 0); err != nil {
				return err
			}
		}
	}
	return nil
}
