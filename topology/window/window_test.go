package window_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"millrace/topology/window"
)

func tumbling(size, lateness int64) window.Spec {
	return window.Spec{Kind: window.Tumbling, Size: size, Advance: size, Lateness: lateness}
}

func hopping(size, advance int64) window.Spec {
	return window.Spec{Kind: window.Hopping, Size: size, Advance: advance}
}

func ends(s window.Spec, t int64) (out []int64) {
	for end := s.FirstEnd(t); end <= s.LastEnd(t); end += s.Advance {
		out = append(out, end)
	}
	return out
}

func same(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestWindowsOfATime(t *testing.T) {
	shifted := tumbling(10, 0)
	shifted.Offset = 3
	behind := tumbling(10, 0)
	behind.Offset = -7
	cases := []struct {
		name string
		spec window.Spec
		time int64
		ends []int64
	}{
		{"start is inside", tumbling(10, 0), 0, []int64{10}},
		{"last millisecond", tumbling(10, 0), 9, []int64{10}},
		{"end is outside", tumbling(10, 0), 10, []int64{20}},
		{"just before the epoch", tumbling(10, 0), -1, []int64{0}},
		{"negative start", tumbling(10, 0), -10, []int64{0}},
		{"negative end", tumbling(10, 0), -11, []int64{-10}},
		{"hopping", hopping(10, 5), 12, []int64{15, 20}},
		{"hopping, first windows start before the epoch", hopping(10, 5), 3, []int64{5, 10}},
		{"hopping, negative", hopping(10, 5), -1, []int64{0, 5}},
		{"advance does not divide size, three", hopping(10, 4), 9, []int64{10, 14, 18}},
		{"advance does not divide size, two", hopping(10, 4), 10, []int64{14, 18}},
		{"offset, before", shifted, 2, []int64{3}},
		{"offset, at", shifted, 3, []int64{13}},
		{"negative offset is the same windows", behind, 3, []int64{13}},
	}
	for _, c := range cases {
		if err := c.spec.Validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := ends(c.spec, c.time); !same(got, c.ends) {
			t.Errorf("%s: windows of %d end at %v, want %v", c.name, c.time, got, c.ends)
		}
	}
}

// The stories W1, W2 and W3: what is refused and what is still taken.
func TestClosing(t *testing.T) {
	cases := []struct {
		spec      window.Spec
		end       int64
		watermark int64
		closed    bool
	}{
		{tumbling(10, 0), 10, 9, false},
		{tumbling(10, 0), 10, 10, true},
		{tumbling(10, 5), 10, 14, false},
		{tumbling(10, 5), 10, 15, true},
		{hopping(10, 5), 10, 12, true},
		{hopping(10, 5), 15, 12, false},
	}
	for _, c := range cases {
		if got := c.spec.Closed(c.end, c.watermark); got != c.closed {
			t.Errorf("window ending %d at watermark %d: closed %v, want %v", c.end, c.watermark, got, c.closed)
		}
	}
}

func drawSpec(t *rapid.T) window.Spec {
	size := rapid.Int64Range(1, 1000).Draw(t, "size")
	advance := rapid.Int64Range(1, size).Draw(t, "advance")
	s := hopping(size, advance)
	s.Offset = rapid.Int64Range(1-advance, advance-1).Draw(t, "offset")
	return s
}

func TestEveryTimeIsInItsWindowsAndInNoOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		at := rapid.Int64Range(-5000, 5000).Draw(t, "time")
		got := ends(s, at)
		for i, end := range got {
			if start := s.Start(end); start > at || at >= end || end-start != s.Size {
				t.Fatalf("window [%d,%d) does not hold %d", start, end, at)
			}
			if alignment := (s.Start(end) - s.Offset) % s.Advance; alignment != 0 {
				t.Fatalf("window start %d is %d off", s.Start(end), alignment)
			}
			if i > 0 && end != got[i-1]+s.Advance {
				t.Fatalf("windows end at %v: not one advance apart", got)
			}
		}
		if s.Size%s.Advance == 0 && int64(len(got)) != s.Size/s.Advance {
			t.Fatalf("%d windows, want %d", len(got), s.Size/s.Advance)
		}
		want := 0
		for start := s.Offset - 10000*s.Advance; start <= s.Offset+10000*s.Advance; start += s.Advance {
			if start <= at && at < start+s.Size {
				want++
			}
		}
		if len(got) != want {
			t.Fatalf("%d windows, counting them gives %d", len(got), want)
		}
	})
}

func TestSlicesMakeUpWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		at := rapid.Int64Range(-5000, 5000).Draw(t, "time")
		slice, end := s.Slice(), s.SliceEnd(at)
		if s.Size%slice != 0 || s.Advance%slice != 0 {
			t.Fatalf("slice %d divides not both %d and %d", slice, s.Size, s.Advance)
		}
		if end-slice > at || at >= end {
			t.Fatalf("slice [%d,%d) does not hold %d", end-slice, end, at)
		}
		if !same(ends(s, at), ends(s, end-1)) || !same(ends(s, at), ends(s, end-slice)) {
			t.Fatalf("windows differ inside the slice that ends at %d", end)
		}
		first := s.FirstEnd(at)
		if n := (end - s.Start(first)) % slice; n != 0 {
			t.Fatalf("slice end %d is not on the grid of window start %d", end, s.Start(first))
		}
	})
}

func TestExtremeTimesDoNotOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		s.Size *= rapid.SampledFrom([]int64{1, 1000, window.MaxTime / 1000}).Draw(t, "scale")
		s.Lateness = window.MaxTime
		at := rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, -window.MaxTime, window.MaxTime,
			math.MaxInt64 - 1, math.MaxInt64}).Draw(t, "time")
		first, last := s.FirstEnd(at), s.LastEnd(at)
		if first > last || last-first >= s.Size {
			t.Fatalf("ends from %d to %d for size %d", first, last, s.Size)
		}
		for _, end := range []int64{first, last, s.SliceEnd(at)} {
			if s.Start(end) >= end || s.CloseTime(end) < end {
				t.Fatalf("window [%d,%d) closes at %d", s.Start(end), end, s.CloseTime(end))
			}
		}
	})
	s := tumbling(10, 5)
	if got := s.CloseTime(math.MaxInt64 - 1); got != math.MaxInt64 {
		t.Errorf("close time %d wrapped around", got)
	}
	if got := s.Start(math.MinInt64 + 3); got != math.MinInt64 {
		t.Errorf("start %d wrapped around", got)
	}
}

func TestValidateRefuses(t *testing.T) {
	berlin := load(t, "Europe/Berlin")
	day := int64(24 * time.Hour / time.Millisecond)
	cases := map[string]window.Spec{
		"no size":             {},
		"no advance":          {Kind: window.Hopping, Size: 10},
		"tumbling overlap":    {Size: 10, Advance: 5},
		"gaps":                {Kind: window.Hopping, Size: 5, Advance: 10},
		"offset too long":     {Size: 10, Advance: 10, Offset: 10},
		"offset too negative": {Size: 10, Advance: 10, Offset: -10},
		"negative lateness":   {Size: 10, Advance: 10, Lateness: -1},
		"huge size":           {Size: math.MaxInt64, Advance: math.MaxInt64},
		"zone of hours":       {Size: day / 24, Advance: day / 24, Location: berlin},
		"zone of hops":        {Kind: window.Hopping, Size: 2 * day, Advance: day, Location: berlin},
		"kind":                {Kind: 9, Size: 10, Advance: 10},
	}
	for name, s := range cases {
		if s.Validate() == nil {
			t.Errorf("%s: %+v was accepted", name, s)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	zoned := days(load(t, "Europe/Berlin"), 1)
	hops := hopping(3600_000, 60_000)
	var sum int64
	at := int64(1_700_000_000_000)
	if n := testing.AllocsPerRun(100, func() {
		for end := hops.FirstEnd(at); end <= hops.LastEnd(at); end += hops.Advance {
			sum += hops.CloseTime(end)
		}
		sum += zoned.LastEnd(at) + hops.SliceEnd(at)
	}); n != 0 {
		t.Errorf("%v allocations a record, want none", n)
	}
}
