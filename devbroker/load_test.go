package devbroker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLoadFlags(t *testing.T) {
	got, err := LoadFlags{
		Generate: []string{"clicks=500/s", "views=30/m", "orders=0.5/s"}, Late: "5%:40s", Duplicates: "1%", Skew: "zipf:1.2",
	}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	load := Load{LateShare: 0.05, LateBy: 40 * time.Second, Duplicates: 0.01, Skew: 1.2}
	var want []Load
	for _, source := range []struct {
		name string
		rate float64
	}{{"clicks", 500}, {"views", 0.5}, {"orders", 0.5}} {
		load.Source, load.PerSecond = source.name, source.rate
		want = append(want, load)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loads:\n%s", diff)
	}
	if none, err := (LoadFlags{}).Parse(); err != nil || len(none) != 0 {
		t.Errorf("no flags give %v, %v", none, err)
	}
}

func TestLoadFlagsThatAreRefused(t *testing.T) {
	generate := []string{"clicks=500/s"}
	for _, c := range []struct {
		flags LoadFlags
		want  string // the flag, and what to write instead
	}{
		{LoadFlags{Generate: []string{"clicks"}}, `--generate "clicks": want SOURCE=RATE`},
		{LoadFlags{Generate: []string{"=5/s"}}, "want SOURCE=RATE"},
		{LoadFlags{Generate: []string{"clicks=500"}}, "has no unit"},
		{LoadFlags{Generate: []string{"clicks=500/day"}}, "has no unit"},
		{LoadFlags{Generate: []string{"clicks=/s"}}, "positive number"},
		{LoadFlags{Generate: []string{"clicks=-1/s"}}, "positive number"},
		{LoadFlags{Generate: []string{"clicks=NaN/s"}}, "positive number"},
		{LoadFlags{Generate: []string{"clicks=Inf/s"}}, "more than"},
		{LoadFlags{Generate: []string{"clicks=1e9/s"}}, "more than"},
		{LoadFlags{Generate: []string{"clicks=1/s", "clicks=2/s"}}, "clicks has a rate already"},
		{LoadFlags{Generate: generate, Late: "5%"}, `--late "5%": want SHARE:DURATION`},
		{LoadFlags{Generate: generate, Late: "5:40s"}, "no percent sign"},
		{LoadFlags{Generate: generate, Late: "5%:40"}, "positive duration"},
		{LoadFlags{Generate: generate, Late: "5%:-1s"}, "positive duration"},
		{LoadFlags{Generate: generate, Duplicates: "0.01"}, `--duplicates "0.01": share`},
		{LoadFlags{Generate: generate, Duplicates: "101%"}, "between 0% and 100%"},
		{LoadFlags{Generate: generate, Duplicates: "NaN%"}, "between 0% and 100%"},
		{LoadFlags{Generate: generate, Skew: "1.2"}, `--skew "1.2": want zipf:EXPONENT`},
		{LoadFlags{Generate: generate, Skew: "zipf:1"}, "not above 1"},
		{LoadFlags{Generate: generate, Skew: "zipf:NaN"}, "not above 1"},
		{LoadFlags{Skew: "zipf:1.2"}, "add --generate"},
	} {
		if _, err := c.flags.Parse(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want an error with %q", c.flags, err, c.want)
		}
	}
}
