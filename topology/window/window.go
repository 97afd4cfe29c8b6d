// Package window is the arithmetic of event-time windows: which windows a time belongs to, where they start and end and
// when they close. Every time is int64 milliseconds since the epoch and every window is half open, [start, end). It
// keeps nothing between calls and knows no clock: the same time is always in the same windows.
//
// Windows are aligned to the epoch plus an offset and go on to both sides of it. Kafka Streams starts no window before
// 0; here a hopping window that holds time 3 may start at -5, so that the first windows of a stream are as complete as
// all others and negative times need no rule of their own.
package window

import (
	"fmt"
	"math"
	"time"
)

// Kind says how windows lie to each other.
type Kind uint8

// The kinds of windows. A tumbling window starts where the one before it ends; hopping windows overlap.
const (
	Tumbling Kind = iota
	Hopping
)

const (
	// MaxTime bounds all times and lengths, to both sides: about 285,000 years, the most milliseconds that a double
	// still holds exactly. A time beyond it is treated as the bound itself, so that no sum below can overflow.
	MaxTime = int64(1) << 53

	hourMillis = int64(time.Hour / time.Millisecond)
	dayMillis  = 24 * hourMillis
)

// Spec describes the windows of one step, in milliseconds. It is a value: copy it, share it, compare it.
type Spec struct {
	Kind    Kind
	Size    int64 // length of a window
	Advance int64 // from one window's start to the next one's; Size for tumbling windows
	Offset  int64 // starts are at Offset + k*Advance
	// Location aligns tumbling windows of whole days to local midnight; a day with a clock change is then a window of
	// 23 or 25 hours. nil means UTC days, which all have 24.
	Location *time.Location
	Lateness int64 // how long after its end a window still takes records
}

// Validate tells what is wrong with the windows; every other method expects a Spec that passed.
func (s Spec) Validate() error {
	switch {
	case s.Kind > Hopping:
		return fmt.Errorf("window kind %d is not known: use Tumbling or Hopping", s.Kind)
	case s.Size <= 0 || s.Size > MaxTime:
		return fmt.Errorf("window size %d ms: want at least 1 ms and at most %d ms", s.Size, MaxTime)
	case s.Advance <= 0:
		return fmt.Errorf("window advance %d ms: want at least 1 ms", s.Advance)
	case s.Kind == Tumbling && s.Advance != s.Size:
		return fmt.Errorf("tumbling window: advance %d ms must equal size %d ms; overlapping windows are hopping",
			s.Advance, s.Size)
	case s.Advance > s.Size:
		return fmt.Errorf("window advance %d ms is longer than size %d ms: records between two windows would be in none",
			s.Advance, s.Size)
	case s.Offset <= -s.Advance || s.Offset >= s.Advance:
		return fmt.Errorf("window offset %d ms: want less than the advance of %d ms; more repeats the same windows",
			s.Offset, s.Advance)
	case s.Lateness < 0 || s.Lateness > MaxTime:
		return fmt.Errorf("allowed lateness %d ms: want 0 to %d ms", s.Lateness, MaxTime)
	case s.Location != nil && (s.Kind != Tumbling || s.Size%dayMillis != 0):
		return fmt.Errorf("time zone %s: only tumbling windows of whole days follow a zone; drop the zone or use 24h",
			s.Location)
	}
	return nil
}

// Slice is the length of the longest pieces that every window is made of: a record is added to one slice, and a window
// merges Size/Slice of them. It is the greatest common divisor of size and advance.
func (s Spec) Slice() int64 {
	a, b := s.Size, s.Advance
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// SliceEnd returns the end of the slice that holds t. The slices of a window end at Start(end)+Slice, Start(end)+2*Slice
// and so on up to end; the windows of a slice are those of the time SliceEnd-1. With a Location, windows and slices are
// the same.
func (s Spec) SliceEnd(t int64) int64 {
	if s.Location != nil {
		return s.LastEnd(t)
	}
	slice := s.Slice()
	return alignDown(clamp(t), s.Offset, slice) + slice
}

// FirstEnd returns the end of the earliest window that holds t. All of them, without allocation:
//
//	for end := s.FirstEnd(t); end <= s.LastEnd(t); end += s.Advance {
func (s Spec) FirstEnd(t int64) int64 {
	if s.Location != nil {
		return s.LastEnd(t)
	}
	// A window holds t when start <= t < end, so its end is the first aligned point after t.
	t = clamp(t)
	return alignDown(t, s.Offset+s.Size, s.Advance) + s.Advance
}

// LastEnd returns the end of the latest window that holds t.
func (s Spec) LastEnd(t int64) int64 {
	if s.Location != nil {
		return s.localDays(clamp(t)).End
	}
	return alignDown(clamp(t), s.Offset, s.Advance) + s.Size
}

// Start returns where the window with this end starts.
func (s Spec) Start(end int64) int64 {
	if s.Location != nil {
		return s.localDays(clamp(end - 1)).Start
	}
	if end < math.MinInt64+s.Size {
		return math.MinInt64
	}
	return end - s.Size
}

// CloseTime returns the watermark from which on the window with this end takes no more records.
func (s Spec) CloseTime(end int64) int64 {
	if end > math.MaxInt64-s.Lateness {
		return math.MaxInt64
	}
	return end + s.Lateness
}

// Closed tells whether the window with this end is over at a watermark. A record whose own time makes it so is already
// refused by it.
func (s Spec) Closed(end, watermark int64) bool { return watermark >= s.CloseTime(end) }

// alignDown returns the last point at or before t that is a multiple of step away from origin. The remainder of Go's
// division has the sign of t, so times before the origin need the correction.
func alignDown(t, origin, step int64) int64 {
	r := (t - origin) % step
	if r < 0 {
		r += step
	}
	return t - r
}

func clamp(t int64) int64 { return min(max(t, -MaxTime), MaxTime) }
