package topology_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"millrace/record"
)

// shuffleJob counts by a field that is not the key, so that rows must travel. Its records are {"g":group,"v":value}.
func shuffleJob(c windowing, watermark string) string {
	aggregate := "count()"
	if c.fold {
		aggregate = `fold("", acc == "" ? value.v : acc + "+" + value.v)`
	}
	return fmt.Sprintf(`topology:
  sources:
    in:
      topic: in
      key: value.v
      fields: { g: string, v: string }
      watermark: { max_out_of_orderness: %dms%s }
      invalid_timestamp: skip
  steps:
    s:
      from: in
      where: value.v != "filtered"
      group_by: value.g
      window: %s
      aggregate: { r: '%s' }
      emit: %s
      late: { to: late }
      to: out
  sinks: { out: { topic: out }, late: { topic: late } }
`, c.disorder, watermark, c.yaml(), aggregate, c.emit)
}

const shuffleTopic = "app-s-repartition"

// event is a record of shuffleJob. What the oracle is given has the group as key and the value alone.
func event(group, value string, at int64) (r, plain record.Record) {
	r = record.Record{Key: []byte(value), Value: fmt.Appendf(nil, `{"g":%q,"v":%q}`, group, value), Timestamp: at}
	return r, record.Record{Key: []byte(group), Value: []byte(value), Timestamp: at}
}

// interleave lets the tasks of a world work in any order, epochs end and be lost anywhere. turn is called before a task's
// turn, step before each of its records; both may be nil.
func interleave(t *rapid.T, w *world, turn, step func(k *worker)) {
	quiet := 0
	for quiet < 3 {
		k := w.tasks[rapid.IntRange(0, len(w.tasks)-1).Draw(t, "task")]
		k.limit = rapid.IntRange(1, 4).Draw(t, "limit")
		switch rapid.IntRange(0, 9).Draw(t, "between") {
		case 0, 1:
			k.freeze()
		case 2, 3:
			k.commit()
		case 4:
			k.restart()
		}
		if turn != nil {
			turn(k)
		}
		for range rapid.IntRange(1, 6).Draw(t, "burst") {
			if k.fire() || !k.has(0) {
				continue
			}
			if step != nil {
				step(k)
			}
			if err := k.step(0); err != nil {
				t.Fatalf("%v", err)
			}
		}
		quiet++
		for _, k := range w.tasks {
			if k.has(0) || k.instance.Due() {
				quiet = 0
			}
		}
	}
	for _, k := range w.tasks {
		k.limit = 0
	}
	w.settle()
}

// rowsOf shows the results, with the values of a fold sorted, since tasks upstream race.
func rowsOf(t fataler, w *world, topic string) (rows []string) {
	t.Helper()
	for _, r := range w.read(topic) {
		rows = append(rows, sortedFold(strings.Split(show(t, r), " revision ")[0]))
	}
	return rows
}

func sortedFold(row string) string {
	from, to := strings.Index(row, "=")+1, strings.Index(row, " @")
	parts := strings.Split(row[from:to], "+")
	sort.Strings(parts)
	return row[:from] + strings.Join(parts, "+") + row[to:]
}

func (o *oracle) sortedResults() (rows []string) {
	for _, r := range o.results() {
		rows = append(rows, sortedFold(r))
	}
	return rows
}

// Records that are on time in their own partition are on time behind the repartition topic, however many tasks write and
// read it, in whatever order they get to work, and whether rows are combined on the way or not.
func TestShufflesAgreeWithTheOracle(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		c := drawWindowing(t, "final", "final_with_corrections", "changes")
		upstream, downstream := int32(rapid.IntRange(1, 4).Draw(t, "writers")), int32(rapid.IntRange(1, 3).Draw(t, "readers"))
		w := newWorld(t, compile(t, dir, shuffleJob(c, "")), map[string]int32{"in": upstream, shuffleTopic: downstream, "out": 2})
		o := newOracle(c)
		base := int64(20)
		for i := range rapid.IntRange(1, 60).Draw(t, "events") {
			base += rapid.Int64Range(0, 9).Draw(t, "step")
			r, plain := event(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", ""}).Draw(t, "group"), fmt.Sprint("v", i), base+rapid.Int64Range(0, c.disorder).Draw(t, "ahead"))
			w.write("in", rapid.Int32Range(0, upstream-1).Draw(t, "partition"), r)
			o.add(plain)
		}
		for p := range upstream { // time moves on everywhere; nothing is counted
			r, _ := event("z", "filtered", 100_000)
			w.write("in", p, r)
		}
		o.pass(100_000 - c.disorder)
		interleave(t, w, nil, nil)

		rows, want := rowsOf(t, w, "out"), o.sortedResults()
		if c.emit == "final" {
			slices.SortFunc(rows, func(a, b string) int { return slices.Index(want, a) - slices.Index(want, b) })
		} else {
			rows = last(rows, want)
		}
		if d := cmp.Diff(want, rows); d != "" {
			t.Fatalf("results, -want +got:\n%s", d)
		}
		if n := partials(w); c.fold && n > 0 {
			t.Fatalf("%d records carry a fold that was combined, although its order is lost by that", n)
		}
		if n := w.tally(record.Late, "s", ""); n != 0 || len(w.read("late")) != 0 {
			t.Fatalf("%d late records: %v", n, w.read("late"))
		}
	})
}

// With one task upstream a shuffle is not to be seen at all: what is late is late, wherever epochs end.
func TestShuffleOfOneTaskJudgesLatenessExactly(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		c := drawWindowing(t, "final", "final_with_corrections", "changes")
		downstream := int32(rapid.IntRange(1, 3).Draw(t, "readers"))
		w := newWorld(t, compile(t, dir, shuffleJob(c, "")), map[string]int32{shuffleTopic: downstream})
		o := newOracle(c)
		for i, e := range drawEvents(t, 60) {
			r, plain := event(string(e.Key), fmt.Sprint("v", i), e.Timestamp)
			w.write("in", 0, r)
			o.add(plain)
		}
		interleave(t, w, nil, nil)
		rows, want := rowsOf(t, w, "out"), o.sortedResults()
		if c.emit == "final" {
			slices.SortStableFunc(rows, func(a, b string) int { return slices.Index(want, a) - slices.Index(want, b) })
		} else {
			rows = last(rows, want)
		}
		if d := cmp.Diff(want, rows); d != "" {
			t.Fatalf("results, -want +got:\n%s", d)
		}
		checkShuffledLate(t, w, o)
		checkConservation(t, w, o)
	})
}

// checkShuffledLate checks the late topic: its records are as they came, although they travelled.
func checkShuffledLate(t fataler, w *world, o *oracle) {
	t.Helper()
	var late []string
	for _, r := range w.read("late") {
		var g, v string
		if _, err := fmt.Sscanf(strings.ReplaceAll(string(r.Value), ",", " "), `{"g":%q "v":%q}`, &g, &v); err != nil || v != string(r.Key) {
			t.Fatalf("late record %s %s is not as it came: %v", r.Key, r.Value, err)
		}
		r.Key, r.Value = []byte(g), []byte(v)
		late = append(late, showLate(r))
	}
	want := slices.Clone(o.late)
	sort.Strings(want)
	sort.Strings(late)
	if d := cmp.Diff(want, late); d != "" {
		t.Fatalf("late records, -want +got:\n%s", d)
	}
}
