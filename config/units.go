package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"millrace/topology"
)

// Size is a number of bytes; in YAML it is written with a unit, as in 64MiB, or as a plain number of bytes.
type Size int64

// String writes a size with the largest unit that divides it.
func (s Size) String() string {
	for i := len(sizeUnits) - 1; i >= 0; i-- {
		u := sizeUnits[i]
		if u.binary && s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText writes a size as String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

var sizeUnits = []struct {
	name   string
	bytes  int64
	binary bool
}{
	{"B", 1, false},
	{"kB", 1e3, false}, {"KB", 1e3, false}, {"MB", 1e6, false}, {"GB", 1e9, false}, {"TB", 1e12, false},
	{"KiB", 1 << 10, true}, {"MiB", 1 << 20, true}, {"GiB", 1 << 30, true}, {"TiB", 1 << 40, true},
}

// ParseSize reads a size such as 64MiB, 1.5GB or 1048576.
func ParseSize(text string) (Size, error) {
	number, unit := splitUnit(strings.TrimSpace(text))
	unit = strings.TrimSpace(unit)
	scale := int64(0)
	for _, u := range sizeUnits {
		if unit == u.name || unit == "" {
			scale = u.bytes
			break
		}
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || scale == 0 {
		return 0, fmt.Errorf("%q is not a size; write it as in 64MiB or 1GiB", text)
	}
	if bytes := value * float64(scale); bytes < math.MaxInt64 {
		return Size(bytes), nil
	}
	return 0, fmt.Errorf("size %q is too large", text)
}

// maxDuration keeps sums of a time and a few durations inside int64, in whatever unit.
const maxDuration = 100 * 365 * 24 * time.Hour

var timeUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond, "ms": time.Millisecond,
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// ParseDuration reads a duration such as 15s, 10m, 1h30m or 7d; a day has 24 hours. A number without a unit is
// refused, since seconds and milliseconds are both common elsewhere; only 0 needs none.
func ParseDuration(text string) (time.Duration, error) {
	rest, negative := strings.CutPrefix(strings.TrimSpace(text), "-")
	if rest == "0" {
		return 0, nil
	}
	total := time.Duration(0)
	for parts := 0; rest != "" || parts == 0; parts++ {
		number, tail := splitUnit(rest)
		end := 0
		for end < len(tail) && (tail[end] < '0' || tail[end] > '9') && tail[end] != '.' {
			end++
		}
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration; write it as in 15s, 10m, 24h or 7d", text)
		}
		if end == 0 {
			return 0, fmt.Errorf("%q has no unit; write %ss for seconds, %sms for milliseconds", text, rest, rest)
		}
		unit, ok := timeUnits[tail[:end]]
		if !ok {
			return 0, fmt.Errorf("%q is not a duration: unknown unit %q; there are ns, us, ms, s, m, h and d", text, tail[:end])
		}
		// Whole and fraction apart: a float alone would lose nanoseconds of a long duration.
		whole, fraction := math.Modf(value)
		if whole > float64(maxDuration/unit) {
			return 0, fmt.Errorf("duration %q is longer than 100 years", text)
		}
		total += time.Duration(whole)*unit + time.Duration(math.Round(fraction*float64(unit)))
		if total > maxDuration {
			return 0, fmt.Errorf("duration %q is longer than 100 years", text)
		}
		rest = tail[end:]
	}
	if negative {
		total = -total
	}
	return total, nil
}

// splitUnit cuts a text after its leading digits and point.
func splitUnit(text string) (number, rest string) {
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
		i++
	}
	return text[:i], text[i:]
}

// formatDuration writes a duration the way people write it in YAML: 1h30m, 45s, 7d.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	if d%(24*time.Hour) == 0 {
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
	}
	return topology.ShortDuration(d)
}
