package store

import (
	"slices"
)

// A layer is a step's rows at one stage, apart by segment: a window's end, or 0 for a store without windows. There are
// few segments at a time, so a sorted slice finds them, and the last one is usually the one wanted.
type layer struct {
	segments []*segment
	last     *segment
	spares   []*segment // emptied, their memory waits for the next segments
}

type segment struct {
	id      int64
	table   table
	dropped bool // overlay: all rows of the segment ended, here and in the layers below
	written bool // overlay: rows were written since it was dropped
}

func (l *layer) find(id int64) *segment {
	if l.last != nil && l.last.id == id {
		return l.last
	}
	if i, ok := slices.BinarySearchFunc(l.segments, id, func(s *segment, id int64) int { return compareInt64(s.id, id) }); ok {
		l.last = l.segments[i]
		return l.last
	}
	return nil
}

// open returns the segment, made where it was missing.
func (l *layer) open(id int64) *segment {
	if s := l.find(id); s != nil {
		return s
	}
	i, _ := slices.BinarySearchFunc(l.segments, id, func(s *segment, id int64) int { return compareInt64(s.id, id) })
	s := &segment{}
	if n := len(l.spares); n > 0 {
		s, l.spares = l.spares[n-1], l.spares[:n-1]
	}
	s.id, s.dropped, s.written = id, false, false
	l.segments = slices.Insert(l.segments, i, s)
	l.last = s
	return s
}

// remove forgets a segment with its rows.
func (l *layer) remove(id int64) {
	if g := l.find(id); g != nil {
		g.table.release()
	}
	l.segments = slices.DeleteFunc(l.segments, func(s *segment) bool { return s.id == id })
	l.last = nil
}

func (l *layer) bytes() int {
	n := 0
	for _, s := range l.segments {
		n += s.table.bytes()
	}
	return n
}

func (l *layer) empty() bool { return len(l.segments) == 0 }

// recycle empties the layer. Up to keep bytes of its tables' memory wait for the next epoch.
func (l *layer) recycle(keep int) {
	for _, s := range l.segments {
		if size := s.table.bytes(); size <= keep {
			s.table.reset(keep)
			keep -= size
			l.spares = append(l.spares, s)
		} else {
			s.table.release()
		}
	}
	l.segments, l.last = l.segments[:0], nil
}

// release gives the layer's memory back.
func (l *layer) release() {
	for _, s := range l.segments {
		s.table.release()
	}
	for _, s := range l.spares {
		s.table.release()
	}
	*l = layer{}
}

func compareInt64(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
