package task

import "time"

// activity is what a task's goroutine does with its time.
type activity int

const (
	idle    activity = iota // nothing has arrived
	busy                    // records, windows, commands
	blocked                 // there is work, and no room in the epoch for what it would put out
	activities
)

// meter adds up where a task's time goes. The clock is looked at when the activity changes, not with every record.
type meter struct {
	now   activity
	since time.Time
	spent [activities]time.Duration
}

// turn ends the present activity; the same one again costs nothing.
func (m *meter) turn(to activity, clock func() time.Time) {
	if to == m.now {
		return
	}
	m.settle(clock())
	m.now = to
}

func (m *meter) settle(now time.Time) {
	if !m.since.IsZero() {
		m.spent[m.now] += now.Sub(m.since)
	}
	m.since = now
}

// take returns what was spent since the last call.
func (m *meter) take(now time.Time) [activities]time.Duration {
	m.settle(now)
	spent := m.spent
	m.spent = [activities]time.Duration{}
	return spent
}
