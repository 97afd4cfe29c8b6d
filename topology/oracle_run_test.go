package topology_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"millrace/record"
)

// drawEvents draws records of a few keys whose times go up on the whole, with disorder, jumps and nulls.
func drawEvents(t *rapid.T, most int) (events []record.Record) {
	at := int64(20)
	for i := range rapid.IntRange(1, most).Draw(t, "events") {
		at = max(0, at+rapid.Int64Range(-12, 16).Draw(t, "step"))
		if rapid.IntRange(0, 19).Draw(t, "jump") == 0 {
			at += 100
		}
		r := record.Record{Timestamp: at}
		if key := rapid.SampledFrom([]string{"a", "b", "c", "ab", "", "∅"}).Draw(t, "key"); key != "∅" {
			r.Key = []byte(key)
		}
		if rapid.IntRange(0, 9).Draw(t, "tombstone") > 0 {
			r.Value = []byte("v" + strconv.Itoa(i))
		}
		events = append(events, r)
	}
	return events
}

// shake lets a task process all that there is while epochs end, are decided or lost, and the task starts again, at any
// place where that may happen.
func shake(t *rapid.T, k *worker) {
	for {
		k.limit = rapid.IntRange(1, 4).Draw(t, "limit")
		switch rapid.IntRange(0, 11).Draw(t, "between") {
		case 0:
			k.freeze()
		case 1:
			k.decide()
		case 2, 3:
			k.commit()
		case 4:
			k.restart()
		}
		if k.fire() {
			continue
		}
		i := slices.IndexFunc(k.inputs, func(tp record.TopicPartition) bool { return k.has(slices.Index(k.inputs, tp)) })
		if i < 0 {
			break
		}
		if err := k.step(i); err != nil {
			t.Fatalf("%v", err)
		}
	}
	k.commit()
}

func window(r string) (id string) { return r[:strings.Index(r, "=")] }

// last keeps the last row of each window, in the order of the oracle.
func last(rows, order []string) (kept []string) {
	at := map[string]string{}
	for _, r := range rows {
		at[window(r)] = r
	}
	for _, r := range order {
		if row, ok := at[window(r)]; ok {
			kept = append(kept, row)
			delete(at, window(r))
		}
	}
	for _, r := range at {
		kept = append(kept, r) // what should not be there
	}
	return kept
}

// checkRevisions checks that each window's revisions count from 1 to what the oracle says, and takes them off the rows.
func checkRevisions(t fataler, o *oracle, rows []string) (plain []string) {
	t.Helper()
	seen := map[string]int{}
	for _, r := range rows {
		row, rest, _ := strings.Cut(r, " revision ")
		text, final := strings.CutSuffix(rest, " final")
		n, _ := strconv.Atoi(text)
		seen[window(row)]++
		if n != seen[window(row)] {
			t.Fatalf("%s: want revision %d", r, seen[window(row)])
		}
		if final && n != 1 {
			t.Fatalf("%s is final, yet was corrected before its window was over", r)
		}
		plain = append(plain, row)
	}
	for w, sum := range o.totals {
		if got := seen[window(o.row(w))]; got != sum.revision {
			t.Fatalf("%s has %d revisions, want %d", o.row(w), got, sum.revision)
		}
	}
	return plain
}

// checkEpochs checks that changes come at most once a key and window in an epoch.
func checkEpochs(t fataler, k *worker, rows []string) {
	t.Helper()
	from := 0
	for _, end := range k.ends {
		seen := map[string]bool{}
		for _, r := range rows[from:end] {
			if seen[window(r)] {
				t.Fatalf("%s: twice in one epoch", r)
			}
			seen[window(r)] = true
		}
		from = end
	}
}

func checkTallies(t fataler, w *world, o *oracle, events int) {
	t.Helper()
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"consumed", w.tally(record.Consumed, "in", "in"), int64(events)},
		{"null_value", w.tally(record.Dropped, "in", "null_value"), o.dropped["null_value"]},
		{"null_key", w.tally(record.Dropped, "s", "null_key"), o.dropped["null_key"]},
		{"late", w.tally(record.Late, "s", ""), int64(len(o.late))},
		{"late windows", w.tally(record.LateWindow, "s", ""), o.refusals},
	} {
		if c.got != c.want {
			t.Fatalf("tally %s is %d, want %d", c.name, c.got, c.want)
		}
	}
}

// Whatever the windows, the records, the epochs and the restarts: results, late records and counts are the oracle's.
func TestWindowsAgreeWithTheOracle(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		c := drawWindowing(t, "final", "final_with_corrections", "changes")
		job := strings.Replace(storyJob(c.yaml(), c.aggregate(), c.emit), "key: key }", fmt.Sprintf("key: key, watermark: { max_out_of_orderness: %dms } }", c.disorder), 1)
		w := newWorld(t, compile(t, dir, job), nil)
		k, o := w.tasks[0], newOracle(c)
		events := drawEvents(t, 60)
		if rapid.Bool().Draw(t, "to the end") {
			events = append(events, record.Record{Key: []byte("z"), Value: []byte("end"), Timestamp: 100_000})
		}
		for _, r := range events {
			w.write("in", 0, r)
			o.add(r)
		}
		shake(t, k)

		var rows, late []string
		for _, r := range w.read("out") {
			rows = append(rows, show(t, r))
		}
		for _, r := range w.read("late") {
			late = append(late, showLate(r))
		}
		want := o.results()
		switch c.emit {
		case "final_with_corrections":
			rows = last(checkRevisions(t, o, rows), want)
		case "changes":
			checkEpochs(t, k, rows)
			rows = last(rows, want)
		}
		if d := cmp.Diff(want, rows); d != "" {
			t.Fatalf("results, -want +got:\n%s", d)
		}
		if d := cmp.Diff(o.late, late); d != "" {
			t.Fatalf("late records, -want +got:\n%s", d)
		}
		checkTallies(t, w, o, len(events))
		checkConservation(t, w, o)
	})
}

// checkConservation adds up: each record is in the results of its windows or was refused by them.
func checkConservation(t fataler, w *world, o *oracle) {
	t.Helper()
	counted := int64(0)
	for _, sum := range o.totals {
		counted += int64(len(sum.values))
	}
	if refused := w.tally(record.LateWindow, "s", ""); counted+refused != o.entered {
		t.Fatalf("%d counted and %d refused of %d", counted, refused, o.entered)
	}
}
