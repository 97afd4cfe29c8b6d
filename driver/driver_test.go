package driver

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"millrace/formats"
	"millrace/record"
	"millrace/topology"
)

func text(s string) topology.Text { return topology.Text{Value: s} }

// countingJob counts plain texts by their key in windows of 10 ms.
func countingJob() *topology.Spec {
	return &topology.Spec{
		ApplicationID: "counting",
		Sources:       []topology.SourceSpec{{Name: text("in"), Topic: text("in"), Format: text("string"), Key: text("key")}},
		Steps: []topology.StepSpec{{Name: text("counts"), From: []topology.Text{text("in")}, GroupBy: []topology.Named{{Expr: text("key")}},
			Window:    &topology.WindowSpec{Type: text("tumbling"), Size: topology.Span{Value: 10 * time.Millisecond, Set: true}},
			Aggregate: []topology.Named{{Name: text("n"), Expr: text("count()")}}, Emit: text("final"),
			Late: &topology.LateSpec{Policy: text("drop")}, To: []topology.Text{text("out")}}},
		Sinks: []topology.SinkSpec{{Name: text("out"), Topic: text("out")}},
	}
}

func newDriver(t *testing.T, spec *topology.Spec, partitions int32, coming ...Arrival) *Driver {
	t.Helper()
	d, err := New(Options{Spec: spec, Formats: formats.ByName{}, Partitions: partitions, MaxRecordBytes: 1 << 20, Coming: coming})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func at(key, value string, ms int64) record.Record {
	return record.Record{Key: []byte(key), Value: []byte(value), Timestamp: ms}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// show lists what a sink holds as key=value@time.
func show(outputs []Output) string {
	var all []string
	for _, o := range outputs {
		all = append(all, fmt.Sprintf("%s=%s@%d", o.Key, o.Value, o.Timestamp))
	}
	return strings.Join(all, " ")
}

const firstWindow = `k={"key":"k","window_start":0,"window_end":10,"n":2}@4`

func TestResultsAreSeenAfterTheCommit(t *testing.T) {
	d := newDriver(t, countingJob(), 1)
	must(t, d.Pipe("in", -1, at("k", "a", 1)), d.Pipe("in", -1, at("k", "b", 4)), d.Pipe("in", -1, at("k", "c", 12)))
	if got := d.Read("out"); len(got) != 0 {
		t.Errorf("before the commit: %s", show(got))
	}
	if got := d.Tallies(); len(got) != 0 {
		t.Errorf("counted before the commit: %v", got)
	}
	must(t, d.Commit())
	got := d.Read("out")
	if show(got) != firstWindow {
		t.Errorf("got %s", show(got))
	}
	if len(got) == 1 && got[0].Watermark != 12 {
		t.Errorf("watermark %d, want 12", got[0].Watermark)
	}
	must(t, d.Commit()) // nothing is left
	if again := d.Read("out"); len(again) != 1 {
		t.Errorf("a second commit put out more: %s", show(again))
	}
}

// However an epoch ends, its work is done exactly once in the end.
func TestEveryEndOfAnEpoch(t *testing.T) {
	for name, end := range map[string]func(*Driver) error{
		"restart":            func(d *Driver) error { return d.Restart(false) },
		"restart, disk lost": func(d *Driver) error { return d.Restart(true) },
		"rebalance":          (*Driver).Rebalance,
		"abort":              (*Driver).AbortEpoch,
		"crash after commit": (*Driver).CrashAfterCommit,
		"twice": func(d *Driver) error {
			return errors.Join(d.AbortEpoch(), d.CrashAfterCommit(), d.Rebalance(), d.Restart(true), d.Restart(false))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t, countingJob(), 2)
			for _, r := range []record.Record{at("k", "a", 1), at("k", "b", 4), at("k", "c", 12)} {
				must(t, d.Pipe("in", -1, r), end(d), d.Commit())
			}
			must(t, end(d))
			if got := show(d.Read("out")); got != firstWindow {
				t.Errorf("got %s", got)
			}
			for _, tally := range d.Tallies() {
				if tally.What == record.Consumed && tally.N != 3 {
					t.Errorf("%d records were counted as consumed, want 3", tally.N)
				}
			}
		})
	}
}

// What a clean end has flushed is not read from the changelog again: without it the driver would never restore from a
// disk that is a little behind.
func TestRebalanceFlushes(t *testing.T) {
	d := newDriver(t, countingJob(), 1)
	must(t, d.Pipe("in", -1, at("k", "a", 1)), d.Commit(), d.Rebalance())
	task := record.TaskID{}
	c, ok, err := d.engines[task].Checkpoint()
	end := d.cluster.log(record.TopicPartition{Topic: "counting-counts-changelog"}).end
	if err != nil || !ok || c.Positions[0] == 0 || c.Positions[0] > end {
		t.Errorf("checkpoint %v, %v, %v; the changelog ends at %d", c, ok, err, end)
	}
	must(t, d.Pipe("in", -1, at("k", "b", 4)), d.Commit(), d.Restart(false), d.Pipe("in", -1, at("k", "c", 12)), d.Commit())
	if got := show(d.Read("out")); got != firstWindow {
		t.Errorf("got %s", got)
	}
}

func TestCompactionKeepsTheNewestOfAKey(t *testing.T) {
	d := newDriver(t, countingJob(), 1)
	for i := range int64(9) {
		must(t, d.Pipe("in", -1, at("k", "a", i)), d.Commit())
	}
	l := d.cluster.log(record.TopicPartition{Topic: "counting-counts-changelog"})
	before, end := len(l.entries), l.end
	must(t, d.Restart(true))
	if len(l.entries) >= before || len(l.entries) == 0 || l.end != end {
		t.Errorf("%d of %d entries are left, the end went from %d to %d", len(l.entries), before, end, l.end)
	}
	must(t, d.Pipe("in", -1, at("k", "a", 10)), d.Commit())
	if got := show(d.Read("out")); !strings.Contains(got, `"n":9`) {
		t.Errorf("got %s", got)
	}
}

func TestAPolicyOfFailStopsTheJob(t *testing.T) { // X4
	spec := countingJob()
	spec.Sources[0].Format, spec.Sources[0].Fields = text("json"), []topology.FieldSpec{{Name: text("n"), Type: record.Type{Kind: record.Long}}}
	spec.Steps[0].Aggregate[0].Expr = text("sum(value.n)")
	spec.Errors.DeadLetterTopic = text("dead")
	d := newDriver(t, spec, 1)
	must(t, d.Pipe("in", -1, at("k", `{"n":1}`, 1)))
	err := d.Pipe("in", -1, at("k", "{garbage", 2))
	var bad *topology.RecordError
	if !errors.As(err, &bad) || bad.Kind != "deserialization" || bad.Origin.Offset != 1 {
		t.Fatalf("got %v", err)
	}
	if again := d.Commit(); !errors.Is(again, bad) {
		t.Errorf("the driver went on: %v", again)
	}
	if dead := d.DeadLetters(); len(dead) != 0 {
		t.Errorf("dead letters under fail: %s", show(dead))
	}
}

// A source that is read from its end keeps the place where it began, also when the process dies before the first record
// is committed.
func TestLatestBeginsOnce(t *testing.T) {
	spec := countingJob()
	spec.Sources[0].Start = text("latest")
	d := newDriver(t, spec, 1)
	must(t, d.Commit(), d.Pipe("in", -1, at("k", "a", 1)), d.Restart(true), d.Pipe("in", -1, at("k", "b", 4)), d.Pipe("in", -1, at("k", "c", 12)), d.Commit())
	if got := show(d.Read("out")); got != firstWindow {
		t.Errorf("got %s", got)
	}
}

func TestKeysAreLearntFromWhatComes(t *testing.T) {
	spec := countingJob()
	spec.Sources[0].Key = text("")
	spec.Steps[0].GroupBy = []topology.Named{{Name: text("word"), Expr: text("value")}}
	for name, c := range map[string]struct {
		coming       []Arrival
		repartitions int
	}{
		"keyed":     {[]Arrival{{"in", record.Record{Key: []byte("x")}}, {"in", at("a", "a", 1)}, {"in", at("k", "a", 1)}}, 0},
		"not keyed": {[]Arrival{{"in", at("k", "a", 1)}, {"in", at("a", "a", 1)}}, 1},
		"no record": {nil, 1},
	} {
		if got := len(newDriver(t, spec, 1, c.coming...).Plan().Repartitions()); got != c.repartitions {
			t.Errorf("%s: %d repartitions, want %d", name, got, c.repartitions)
		}
	}
}

func TestWrongNamesAreRefused(t *testing.T) {
	for name, call := range map[string]func(*Driver) error{
		"source":    func(d *Driver) error { return d.Pipe("other", -1, record.Record{}) },
		"partition": func(d *Driver) error { return d.Pipe("in", 2, record.Record{}) },
		"decree":    func(d *Driver) error { return d.AdvanceWatermark("other", Start) },
	} {
		if err := call(newDriver(t, countingJob(), 2)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(Options{Spec: countingJob(), Formats: formats.ByName{}}); err == nil {
		t.Error("no partitions: accepted")
	}
	broken := countingJob()
	broken.Steps[0].Emit = text("never")
	if _, err := New(Options{Spec: broken, Formats: formats.ByName{}, Partitions: 1}); err == nil || !strings.Contains(err.Error(), "emit") {
		t.Errorf("a broken job: %v", err)
	}
}

// Nothing that a driver does may bring offsets and state apart; where a task says they are, the driver says so, too.
func TestATasksWarningIsAnError(t *testing.T) {
	d := newDriver(t, countingJob(), 1)
	must(t, d.Pipe("in", -1, at("k", "a", 1)), d.Commit())
	clear(d.cluster.offsets)
	if err := d.Restart(false); err == nil || !strings.Contains(err.Error(), "MR3004") {
		t.Errorf("got %v", err)
	}
}
