package trial

import (
	"testing"
	"time"

	"millrace/bench/clicks"
	"millrace/bench/cluster"
	"millrace/bench/process"
	"millrace/bench/results"
)

func TestParseRow(t *testing.T) {
	for _, row := range []string{
		`{"user_id":"u0000000042","window_start":1767225600000,"window_end":1767225660000,"count":7,"cents":123}`,
		`{"cents":123,"count":7,"window_start":1767225600000,"user_id":"u0000000042"}`,
	} {
		user, start, tally, err := parseRow([]byte(row), true)
		if err != nil || user != 42 || start != clicks.Begin || tally != (clicks.Tally{Count: 7, Cents: 123}) {
			t.Errorf("%s: %d %d %+v %v", row, user, start, tally, err)
		}
	}
	for _, row := range []string{
		``, `{}`, `{"user_id":"u0000000042","window_start":1767225600000,"count":7}`, `{"user_id":"x","window_start":1,"count":7,"cents":1}`,
		`{"user_id":"u0000000042","window_start":1767225600000,"count":7.5,"cents":123}`, `{"user_id":"u0000000042","window_start":1767225600000,"count":7,"cents":123`,
		`{"user_id":"u0000000042","window_start":1767225600000,"count":5000000000,"cents":1}`, `{"user_id":"u0000000042","window_start":1,"count":-1,"cents":1}`,
	} {
		if _, _, _, err := parseRow([]byte(row), true); err == nil {
			t.Errorf("%s was taken", row)
		}
	}
}

func TestArrivals(t *testing.T) {
	begin := time.Unix(1000, 0)
	fresh := func() *arrivals {
		return &arrivals{schedule: cluster.Schedule{Begin: begin, Rate: 10, Records: 3}, warm: 1, seen: make([]bool, 3)}
	}
	a := fresh()
	for seq, after := range []time.Duration{0, 130 * time.Millisecond, 220 * time.Millisecond} { // due at 0, 100 and 200 ms
		a.add([]byte(`{"x":1,"seq":`+string(rune('0'+seq))+`}`), begin.Add(after))
	}
	if got, want := *a.latency(10), (results.Latency{P50: 30, P99: 30, P999: 30, Max: 30, Rate: 10}); a.problem != nil || a.count != 3 || len(a.millis) != 2 || got != want {
		t.Errorf("%+v, %+v", a, got)
	}
	for name, values := range map[string][]string{"twice": {`{"seq":1}`, `{"seq":1}`}, "unknown": {`{"seq":3}`}, "unreadable": {`{"seq":x}`}, "missing": {`{}`}} {
		a := fresh()
		for _, v := range values {
			a.add([]byte(v), begin)
		}
		if a.problem == nil {
			t.Errorf("%s was not seen", name)
		}
	}
}

func TestSteadyFiguresAreFromAQuarterToTheLastCommitButOne(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(second int, done uint64, cpu time.Duration) sample {
		return sample{at: begin.Add(time.Duration(second) * time.Second), done: done, usage: process.Usage{CPU: cpu}}
	}
	tr := &trial{process: &process.Process{Started: begin}}
	tr.note(at(2, 1_000_000, 2*time.Second), at(4, 3_000_000, 4*time.Second), at(5, 4_000_000, 8*time.Second))
	if r := tr.run; r.CPUSteady != 1 || r.RateSteady != 1e6 || r.CPUWhole != 2 || r.WallSeconds != 5 {
		t.Errorf("%+v", r)
	}
	short := &trial{process: &process.Process{Started: begin}}
	short.note(at(2, 1_000_000, 0), at(3, 1_500_000, time.Second), at(4, 4_000_000, time.Second))
	if r := short.run; r.CPUSteady != 0 || r.CPUWhole == 0 {
		t.Errorf("a run that was over too soon has steady figures: %+v", r)
	}
}
