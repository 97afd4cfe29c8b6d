package config

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	day := 24 * time.Hour
	good := map[string]time.Duration{
		"0": 0, "0s": 0, "15s": 15 * time.Second, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, "7d": 7 * day, "1d12h": 36 * time.Hour,
		"100ms": 100 * time.Millisecond, "5us": 5 * time.Microsecond, "5µs": 5 * time.Microsecond, "3ns": 3, "-1h": -time.Hour, "36500d": 36500 * day,
	}
	for text, want := range good {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-", "15", "s", "1w", "1 m", "1s2", "1..5s", "36501d", "1e9s", "99999999999999999999d", "forever", "1h-30m"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q: accepted as %s", text, got)
		}
	}
}

func TestDurationsSurviveBeingWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Range(0, int64(maxDuration/time.Millisecond)).Draw(t, "ms")) * time.Millisecond
		if got, err := ParseDuration(formatDuration(want)); err != nil || got != want {
			t.Fatalf("%s was written as %s and read as %s, %v", want, formatDuration(want), got, err)
		}
	})
}

func TestParseSize(t *testing.T) {
	good := map[string]Size{"0": 0, "1048576": 1 << 20, "64MiB": 64 << 20, "64 MiB": 64 << 20, "1.5GiB": 3 << 29, "1kB": 1000, "5B": 5, "2TB": 2e12}
	for text, want := range good {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "64mb", "-1", "1e3", "99999999999TiB", "1.2.3", "64MiBx"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q: accepted as %d", text, got)
		}
	}
}

func TestSizesSurviveBeingWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Size(rapid.Int64Range(0, 1<<50).Draw(t, "bytes"))
		if got, err := ParseSize(want.String()); err != nil || got != want {
			t.Fatalf("%d was written as %s and read as %d, %v", int64(want), want, int64(got), err)
		}
	})
}
