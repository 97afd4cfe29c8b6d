package window_test

import (
	"math"
	"testing"
	"time"
	_ "time/tzdata" // the table must not depend on what the machine has installed

	"pgregory.net/rapid"

	"millrace/topology/window"
)

func load(t interface {
	Helper()
	Fatal(...any)
}, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func days(loc *time.Location, n int64) window.Spec {
	size := n * int64(24*time.Hour/time.Millisecond)
	return window.Spec{Kind: window.Tumbling, Size: size, Advance: size, Location: loc}
}

func instant(t *testing.T, s string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

func TestLocalDays(t *testing.T) {
	cases := []struct {
		name, zone string
		time       string
		start, end string
		hours      int64
		days       int64
		offset     time.Duration
	}{
		{"winter", "Europe/Berlin", "2026-01-15T12:00:00+01:00", "2026-01-15T00:00:00+01:00", "2026-01-16T00:00:00+01:00", 24, 1, 0},
		{"summer", "Europe/Berlin", "2026-07-15T00:00:00+02:00", "2026-07-15T00:00:00+02:00", "2026-07-16T00:00:00+02:00", 24, 1, 0},
		{"last millisecond", "Europe/Berlin", "2026-07-15T23:59:59.999+02:00", "2026-07-15T00:00:00+02:00", "2026-07-16T00:00:00+02:00", 24, 1, 0},
		{"spring, before the change", "Europe/Berlin", "2026-03-29T01:59:59+01:00", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00", 23, 1, 0},
		{"spring, after the change", "Europe/Berlin", "2026-03-29T03:00:00+02:00", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00", 23, 1, 0},
		{"day before spring", "Europe/Berlin", "2026-03-28T23:30:00+01:00", "2026-03-28T00:00:00+01:00", "2026-03-29T00:00:00+01:00", 24, 1, 0},
		{"autumn, first 02:30", "Europe/Berlin", "2026-10-25T02:30:00+02:00", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", 25, 1, 0},
		{"autumn, second 02:30", "Europe/Berlin", "2026-10-25T02:30:00+01:00", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", 25, 1, 0},
		{"two days with a change", "Europe/Berlin", "2026-03-29T12:00:00+02:00", "2026-03-28T00:00:00+01:00", "2026-03-30T00:00:00+02:00", 47, 2, 0},
		{"day from six to six", "Europe/Berlin", "2026-03-29T05:59:59+02:00", "2026-03-28T06:00:00+01:00", "2026-03-29T06:00:00+02:00", 23, 1, 6 * time.Hour},
		{"day from the skipped hour", "Europe/Berlin", "2026-03-29T12:00:00+02:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00", 23, 1, 150 * time.Minute},
		{"day from the hour shown twice", "Europe/Berlin", "2026-10-25T02:30:00+01:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00", 25, 1, 150 * time.Minute},
		{"before the epoch", "Europe/Berlin", "1969-12-31T23:30:00Z", "1970-01-01T00:00:00+01:00", "1970-01-02T00:00:00+01:00", 24, 1, 0},
		{"midnight is skipped", "America/Sao_Paulo", "2018-11-04T12:00:00-02:00", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00", 23, 1, 0},
		{"23 o'clock comes twice", "America/Sao_Paulo", "2018-02-17T23:30:00-03:00", "2018-02-17T00:00:00-02:00", "2018-02-18T00:00:00-03:00", 25, 1, 0},
		{"midnight comes twice", "America/St_Johns", "2010-11-06T23:30:00-03:30", "2010-11-07T00:00:00-02:30", "2010-11-08T00:00:00-03:30", 25, 1, 0},
		{"last day of a leap year to come", "Europe/Berlin", "2044-12-31T12:00:00+01:00", "2044-12-31T00:00:00+01:00", "2045-01-01T00:00:00+01:00", 24, 1, 0},
		{"the day after it", "Europe/Berlin", "2045-01-01T12:00:00+01:00", "2045-01-01T00:00:00+01:00", "2045-01-02T00:00:00+01:00", 24, 1, 0},
		{"spring beyond the zone's table", "Europe/Berlin", "2044-03-27T12:00:00+02:00", "2044-03-27T00:00:00+01:00", "2044-03-28T00:00:00+02:00", 23, 1, 0},
		{"a whole day is skipped", "Pacific/Apia", "2011-12-31T00:00:00+14:00", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00", 24, 1, 0},
	}
	for _, c := range cases {
		s := days(load(t, c.zone), c.days)
		s.Offset = c.offset.Milliseconds()
		if err := s.Validate(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		end := s.LastEnd(instant(t, c.time))
		start := s.Start(end)
		if start != instant(t, c.start) || end != instant(t, c.end) {
			t.Errorf("%s: %s is in [%s, %s), want [%s, %s)", c.name, c.time, show(start, s), show(end, s), c.start, c.end)
		}
		if got := (end - start) / 3600_000; c.hours != got {
			t.Errorf("%s: %d hours, want %d", c.name, got, c.hours)
		}
		if s.FirstEnd(start) != end || s.SliceEnd(start) != end {
			t.Errorf("%s: the start is in another window", c.name)
		}
	}
}

func show(ms int64, s window.Spec) string {
	return time.UnixMilli(ms).In(s.Location).Format(time.RFC3339)
}

// Every day of a century is one window, in the years that the zone's table knows and in those that its rule makes.
func TestLocalDaysFollowEachOther(t *testing.T) {
	s := days(load(t, "Europe/Berlin"), 1)
	day := time.Date(1990, 1, 1, 0, 0, 0, 0, s.Location)
	for end := s.LastEnd(day.UnixMilli()); day.Year() < 2090; end = s.LastEnd(end) {
		day = day.AddDate(0, 0, 1)
		if end != day.UnixMilli() {
			t.Fatalf("window ends at %s, want %s", show(end, s), day)
		}
	}
}

func TestLocalDaysOfExtremeTimes(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/St_Johns", "Pacific/Apia", "UTC"} {
		s := days(load(t, zone), 3)
		for _, at := range []int64{math.MinInt64, -window.MaxTime, window.MaxTime, math.MaxInt64} {
			if end := s.LastEnd(at); s.Start(end) >= end {
				t.Errorf("%s: the window of %d is [%d,%d)", zone, at, s.Start(end), end)
			}
		}
	}
}

// Windows of any zone cover time without gap or overlap, and only clock changes alter their length.
func TestLocalDaysPartitionTime(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Pacific/Apia",
		"Asia/Kolkata", "Australia/Lord_Howe", "UTC"}
	rapid.Check(t, func(t *rapid.T) {
		s := days(load(t, rapid.SampledFrom(zones).Draw(t, "zone")), rapid.Int64Range(1, 7).Draw(t, "days"))
		s.Offset = rapid.Int64Range(0, s.Size-1).Draw(t, "offset")
		at := rapid.Int64Range(-3e12, 4e12).Draw(t, "time")
		end := s.LastEnd(at)
		start := s.Start(end)
		if start > at || at >= end {
			t.Fatalf("[%d,%d) does not hold %d", start, end, at)
		}
		inside := rapid.Int64Range(start, end-1).Draw(t, "inside")
		if s.LastEnd(inside) != end || s.FirstEnd(start) != end || s.LastEnd(start-1) != start || s.Start(s.LastEnd(end)) != end {
			t.Fatalf("[%d,%d) overlaps a neighbour", start, end)
		}
	})
}

func BenchmarkLocalDay(b *testing.B) {
	s := days(load(b, "Europe/Berlin"), 1)
	for i := 0; b.Loop(); i++ {
		s.LastEnd(1_700_000_000_000 + int64(i))
	}
}
