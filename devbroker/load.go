package devbroker

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// LoadFlags are the flags of `dev` that describe generated data, as they were typed.
type LoadFlags struct {
	Generate   []string // clicks=500/s, one a source
	Late       string   // 5%:40s
	Duplicates string   // 1%
	Skew       string   // zipf:1.2
}

// Load says what is generated for one source.
type Load struct {
	Source     string
	PerSecond  float64
	LateShare  float64 // of the records, 0 to 1
	LateBy     time.Duration
	Duplicates float64 // share of the records that are sent a second time, 0 to 1
	Skew       float64 // exponent of a Zipf distribution over the ids; 0: all ids are alike
}

// mostPerSecond is beyond what one connection carries; a larger number is a slip of the finger.
const mostPerSecond = 10_000_000

// Parse reads the flags. Late, Duplicates and Skew apply to every source of Generate. Errors name the flag.
func (f LoadFlags) Parse() ([]Load, error) {
	var common Load
	var err error
	if f.Late != "" {
		if common.LateShare, common.LateBy, err = parseLate(f.Late); err != nil {
			return nil, fmt.Errorf("--late %q: %w", f.Late, err)
		}
	}
	if f.Duplicates != "" {
		if common.Duplicates, err = parseShare(f.Duplicates); err != nil {
			return nil, fmt.Errorf("--duplicates %q: %w", f.Duplicates, err)
		}
	}
	if f.Skew != "" {
		if common.Skew, err = parseSkew(f.Skew); err != nil {
			return nil, fmt.Errorf("--skew %q: %w", f.Skew, err)
		}
	}
	if len(f.Generate) == 0 && common != (Load{}) {
		return nil, fmt.Errorf("--late, --duplicates and --skew shape generated records: add --generate SOURCE=500/s")
	}
	seen := make(map[string]bool)
	var loads []Load
	for _, text := range f.Generate {
		load := common
		if load.Source, load.PerSecond, err = parseRate(text); err != nil {
			return nil, fmt.Errorf("--generate %q: %w", text, err)
		}
		if seen[load.Source] {
			return nil, fmt.Errorf("--generate %q: source %s has a rate already; give each source once", text, load.Source)
		}
		seen[load.Source] = true
		loads = append(loads, load)
	}
	return loads, nil
}

func parseRate(text string) (source string, perSecond float64, err error) {
	source, rate, ok := strings.Cut(text, "=")
	if !ok || source == "" {
		return "", 0, fmt.Errorf("want SOURCE=RATE, as in clicks=500/s")
	}
	number, unit, ok := strings.Cut(rate, "/")
	seconds := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	if !ok || seconds == 0 {
		return "", 0, fmt.Errorf("rate %q has no unit: write it a second, minute or hour, as in 500/s, 30/m, 10/h", rate)
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return "", 0, fmt.Errorf("rate %q does not begin with a positive number, as 500/s does", rate)
	}
	if n/seconds > mostPerSecond {
		return "", 0, fmt.Errorf("rate %q is more than %d records a second", rate, mostPerSecond)
	}
	return source, n / seconds, nil
}

func parseShare(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, fmt.Errorf("share %q has no percent sign, as 1%% has", text)
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > 100 {
		return 0, fmt.Errorf("share %q is not between 0%% and 100%%", text)
	}
	return n / 100, nil
}

func parseLate(text string) (share float64, by time.Duration, err error) {
	left, right, ok := strings.Cut(text, ":")
	if !ok {
		return 0, 0, fmt.Errorf("want SHARE:DURATION, as in 5%%:40s")
	}
	if share, err = parseShare(left); err != nil {
		return 0, 0, err
	}
	by, err = time.ParseDuration(right)
	if err != nil || by <= 0 {
		return 0, 0, fmt.Errorf("lateness %q is not a positive duration, as 40s or 5m are", right)
	}
	return share, by, nil
}

func parseSkew(text string) (float64, error) {
	kind, exponent, ok := strings.Cut(text, ":")
	if !ok || kind != "zipf" {
		return 0, fmt.Errorf("want zipf:EXPONENT, as in zipf:1.2")
	}
	s, err := strconv.ParseFloat(exponent, 64)
	if err != nil || math.IsNaN(s) || s <= 1 || s > 10 {
		return 0, fmt.Errorf("exponent %q is not above 1 and at most 10; 1.2 is a usual skew", exponent)
	}
	return s, nil
}
