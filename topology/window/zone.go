package window

import (
	"time"

	"millrace/record"
)

// localDays returns the window of whole local days that holds t.
//
// The wall clock is read as if it were UTC, which makes windows plain arithmetic again, and the two ends are then
// turned back into instants. Where a zone sets its clock back across midnight the wall shows the same day twice, with
// the next day's beginning in between; the steps forward and back keep such windows in one piece each.
func (s Spec) localDays(t int64) record.Window {
	wall := alignDown(t+zoneOffset(t, s.Location), s.Offset, s.Size)
	w := record.Window{Start: firstShown(wall, s.Location), End: firstShown(wall+s.Size, s.Location)}
	for w.End <= t {
		wall += s.Size
		w.Start, w.End = w.End, firstShown(wall+s.Size, s.Location)
	}
	for w.Start > t {
		wall -= s.Size
		w.Start, w.End = firstShown(wall, s.Location), w.Start
	}
	return w
}

// zoneOffset is what the local clock is ahead of UTC at an instant, in ms.
func zoneOffset(t int64, loc *time.Location) int64 {
	_, seconds := time.UnixMilli(t).In(loc).Zone()
	return int64(seconds) * 1000
}

// firstShown returns the first instant at which the local clock shows wall or more. Of a time that is shown twice it is
// the earlier one; for a time that is skipped it is the instant of the change. time.Date leaves both cases open.
func firstShown(wall int64, loc *time.Location) int64 {
	// No zone was ever a day away from UTC, so the clock cannot have shown wall before this instant.
	at := wall - dayMillis
	for {
		_, change := time.UnixMilli(at).In(loc).ZoneBounds()
		shown := max(at, wall-zoneOffset(at, loc))
		if change.IsZero() {
			return shown
		}
		next := change.UnixMilli()
		if next <= at {
			// Beyond a zone's table the standard library ends every year after 365 days, so that on the last day of a
			// leap year the change is in the past. No zone changes on that day by rule; go on until it is over.
			next = at + hourMillis
		}
		if shown < next {
			return shown
		}
		at = next
	}
}
