package topology

import (
	"testing"

	"pgregory.net/rapid"

	"millrace/record"
)

func TestClockTakesTheLeastChannel(t *testing.T) {
	c := NewClock([]int64{5, 0})
	if c.Watermark() != record.NoTime {
		t.Fatalf("a new clock is at %d", c.Watermark())
	}
	for i, s := range []struct {
		channel int
		time    int64 // -1: idle
		want    int64
	}{
		{0, 20, record.NoTime}, // channel 1 was not heard
		{1, 10, 10},
		{1, 30, 15}, // held by channel 0, less its disorder
		{1, 25, 15},
		{0, -1, 30},
		{0, 18, 30}, // it is back, behind; time does not go back
		{1, 50, 30},
		{0, 60, 50},
		{1, -1, 55},
		{0, -1, 55}, // nobody is left: time stays
		{0, 60, 55}, // idleness ends with any event
		{0, 61, 56},
	} {
		if s.time < 0 {
			c.SetIdle(s.channel)
		} else {
			c.Observe(s.channel, s.time)
		}
		if c.Watermark() != s.want {
			t.Fatalf("after event %d the watermark is %d, want %d", i, c.Watermark(), s.want)
		}
	}
}

func TestClockNearTheEndsOfTime(t *testing.T) {
	c := NewClock([]int64{1 << 60})
	c.Observe(0, -1<<63+5)
	if c.Watermark() != record.NoTime {
		t.Errorf("the watermark is %d: the bound of disorder ran over", c.Watermark())
	}
}

// A restored clock goes on exactly as the one that was written, and is not worse for being restored twice.
func TestClockRestored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "channels")
		disorder := rapid.SliceOfN(rapid.Int64Range(0, 20), n, n).Draw(t, "disorder")
		c, twin := NewClock(disorder), NewClock(disorder)
		turn := func() {
			i := rapid.IntRange(0, n-1).Draw(t, "channel")
			before := c.Watermark()
			switch at := rapid.Int64Range(-3, 200).Draw(t, "time"); at {
			case -3, -2:
				c.SetIdle(i)
				twin.SetIdle(i)
			case -1:
				c.Advance(before + 5)
				twin.Advance(before + 5)
			default:
				if moved := c.Observe(i, at); moved != (c.Watermark() != before) {
					t.Fatalf("Observe says %v, the watermark went from %d to %d", moved, before, c.Watermark())
				}
				twin.Observe(i, at)
			}
			if c.Watermark() < before {
				t.Fatalf("the watermark went back from %d to %d", before, c.Watermark())
			}
		}
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			turn()
		}
		c.SetGuard(rapid.Int64Range(0, 100).Draw(t, "guard"))
		written := c.Encode(nil)
		twin = NewClock(disorder)
		for range rapid.IntRange(1, 2).Draw(t, "times") {
			if err := twin.Restore(written); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "after") {
			if twin.Watermark() != c.Watermark() || twin.AllIdle() != c.AllIdle() || twin.Guard() != c.Guard() {
				t.Fatalf("the restored clock is at %d (all idle: %v, guard %d), the other at %d (%v, %d)",
					twin.Watermark(), twin.AllIdle(), twin.Guard(), c.Watermark(), c.AllIdle(), c.Guard())
			}
			turn()
		}
		for cut := range written {
			if err := NewClock(disorder).Restore(written[:cut]); err == nil {
				t.Fatalf("a clock of %d bytes of %d was taken", cut, len(written))
			}
		}
	})
}

func TestClockOfAnotherShapeKeepsItsWatermark(t *testing.T) {
	old := NewClock([]int64{0})
	old.Observe(0, 100)
	c := NewClock([]int64{0, 0, 0})
	if err := c.Restore(old.Encode(nil)); err != nil {
		t.Fatal(err)
	}
	if c.Observe(0, 50); c.Watermark() != 100 {
		t.Errorf("the watermark is %d, want 100", c.Watermark())
	}
}

func TestBehindTheNewestOfItsChannel(t *testing.T) {
	c := NewClock([]int64{5, 5})
	if got := c.Behind(0, 100); got != 0 {
		t.Errorf("the first is %d behind", got)
	}
	c.Observe(0, 100)
	for time, want := range map[int64]int64{100: 0, 101: 0, 40: 60} {
		if got := c.Behind(0, time); got != want {
			t.Errorf("%d is %d behind, want %d", time, got, want)
		}
	}
	if got := c.Behind(1, 40); got != 0 {
		t.Errorf("another partition's newest counts: %d", got)
	}
}
