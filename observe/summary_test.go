package observe

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Run ends with its context.
func TestRunEnds(t *testing.T) {
	s := newStory(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestDurationsAreBounded(t *testing.T) {
	var d durations
	for i := range 3 * maxDurations {
		d = d.add(time.Duration(i))
	}
	if len(d.ring) != maxDurations || d.n != 3*maxDurations {
		t.Errorf("%d kept, %d counted", len(d.ring), d.n)
	}
	var small durations
	for i := 100; i > 0; i-- {
		small = small.add(time.Duration(i) * time.Millisecond)
	}
	if got := small.p99(); got != 99*time.Millisecond {
		t.Errorf("p99 of 1..100 ms is %s", got)
	}
}

func TestByteText(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 1023: "1023B", 1024: "1KiB", 1536: "1.5KiB", 212 << 20: "212MiB", 5 << 40: "5TiB"} {
		if got := byteText(n); got != want {
			t.Errorf("byteText(%d) = %s, want %s", n, got, want)
		}
	}
	if fmt.Sprint(short(1234567*time.Microsecond), short(41234*time.Microsecond), short(90*time.Second)) != "1.23s 41.2ms 1m30s" {
		t.Error(short(1234567*time.Microsecond), short(41234*time.Microsecond), short(90*time.Second))
	}
}
