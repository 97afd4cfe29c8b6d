package task

import (
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	now := time.UnixMilli(1000)
	looks := 0
	clock := func() time.Time { looks++; return now }
	var m meter
	m.take(now) // the time before is nobody's
	pass := func(to activity, d time.Duration) {
		m.turn(to, clock)
		now = now.Add(d)
	}
	pass(busy, 3*time.Second)
	pass(busy, time.Second)
	pass(blocked, 2*time.Second)
	pass(idle, 5*time.Second)
	pass(busy, 7*time.Second)
	if looks != 4 {
		t.Errorf("the clock was looked at %d times, want once a change: 4", looks)
	}
	if got := m.take(now); got[busy] != 11*time.Second || got[blocked] != 2*time.Second || got[idle] != 5*time.Second {
		t.Errorf("spent %v", got)
	}
	now = now.Add(time.Second)
	if got := m.take(now); got[busy] != time.Second || got[blocked] != 0 {
		t.Errorf("since then %v", got)
	}
}
