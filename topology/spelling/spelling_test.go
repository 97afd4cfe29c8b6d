package spelling

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	known := []string{"topic", "format", "timestamp", "timestamp_format", "to", "ad_id", "clicks_per_minute"}
	for word, want := range map[string]string{
		"tpoic": "topic", "topc": "topic", "fromat": "format", "TOPIC": "topic", "adid": "ad_id", "Ad_Idd": "ad_id",
		"time_stamp": "timestamp", "timestamp_fromat": "timestamp_format", "clics_pr_minut": "clicks_per_minute",
		"window": "", "": "", "xy": "", strings.Repeat("to", 40): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

func TestOneSlipOfAnyKindIsDistanceOne(t *testing.T) {
	for _, slip := range []string{"watermar", "watermarks", "waterm4rk", "watermrak", "xwatermark"} {
		if d := distance(slip, "watermark"); d != 1 {
			t.Errorf("%q is %d from watermark, want 1", slip, d)
		}
	}
}

func TestDistanceIsSymmetricAndZeroOnlyForEqualWords(t *testing.T) {
	word := rapid.StringMatching(`[ab]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("distance of %q and %q is %d, the other way %d", a, b, d, distance(b, a))
		}
	})
}
