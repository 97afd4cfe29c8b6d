package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"millrace/devbroker"
)

// output is what a read_committed reader finds, partition by partition.
type output struct{ out, late []devbroker.Record }

// verdict is what the oracle says: what is not there yet, and what must never be.
type verdict struct{ missing, wrong []string }

func (v *verdict) miss(format string, args ...any) {
	v.missing = append(v.missing, fmt.Sprintf(format, args...))
}

func (v *verdict) fault(format string, args ...any) {
	v.wrong = append(v.wrong, fmt.Sprintf(format, args...))
}

func (v verdict) exact() bool { return len(v.missing)+len(v.wrong) == 0 }

func (v verdict) String() string {
	const most = 12
	list := append(slices.Clone(v.wrong), v.missing...)
	text := fmt.Sprintf("%d wrong, %d missing", len(v.wrong), len(v.missing))
	for _, l := range list[:min(most, len(list))] {
		text += "\n  " + l
	}
	return text
}

type windowKey struct {
	key   string
	start int64
}

func (k windowKey) String() string { return fmt.Sprintf("%s@%d", k.key, k.start-firstTime) }

// total is one window's exact result.
type total struct{ count, cents int64 }

func (t total) plus(c click) total { return total{t.count + 1, t.cents + c.Cents} }

func byUser(c click) string { return c.User }
func byAd(c click) string   { return c.Ad }

func windowOf(c click, by func(click) string) windowKey {
	return windowKey{by(c), c.Time - c.Time%minute}
}

// lateBehindOwn tells which records come after their window has closed by the newest time of their own partition. A task
// that reads one partition refuses exactly these; one that reads several can only refuse some of them.
func lateBehindOwn(all []click) map[int64]bool {
	late, newest := map[int64]bool{}, map[int32]int64{}
	for _, c := range all {
		newest[c.partition] = max(newest[c.partition], c.Time)
		if windowOf(c, byUser).start+minute+lateness <= newest[c.partition] {
			late[c.N] = true
		}
	}
	return late
}

func totals(all []click, by func(click) string, leftOut map[int64]bool, flush bool) map[windowKey]total {
	sums := map[windowKey]total{}
	for _, c := range all {
		if !leftOut[c.N] && (flush || !c.flush) {
			k := windowOf(c, by)
			sums[k] = sums[k].plus(c)
		}
	}
	return sums
}

// result is a row of a windowed job.
type result struct {
	windowKey
	total
	revision int64
}

func parseResult(r devbroker.Record, by string) (result, error) {
	decoder := json.NewDecoder(strings.NewReader(string(r.Value)))
	decoder.UseNumber()
	var row map[string]any
	if err := decoder.Decode(&row); err != nil {
		return result{}, fmt.Errorf("%q: %w", r.Value, err)
	}
	got := result{revision: -1}
	got.key, _ = row[by].(string)
	var numbers [4]int64
	for i, name := range []string{"window_start", "window_end", "count", "revision"} {
		n, ok := row[name].(json.Number)
		if !ok && name == "revision" {
			continue
		}
		var err error
		if numbers[i], err = n.Int64(); err != nil {
			return result{}, fmt.Errorf("%q: %s: %w", r.Value, name, err)
		}
	}
	amount, _ := row["amount"].(json.Number)
	cents, ok := parseCents(amount.String())
	got.start, got.count, got.cents = numbers[0], numbers[2], cents
	if _, ok := row["revision"]; ok {
		got.revision = numbers[3]
	}
	if !ok || got.key == "" || string(r.Key) != got.key || numbers[1] != got.start+minute {
		return result{}, fmt.Errorf("%q under key %q is no result of this job", r.Value, r.Key)
	}
	return got, nil
}

// parseCents reads an exact amount of money with exactly two decimals, as all inputs have.
func parseCents(text string) (int64, bool) {
	whole, part, ok := strings.Cut(text, ".")
	if !ok || len(part) != 2 {
		return 0, false
	}
	var cents int64
	_, err := fmt.Sscanf(whole+part, "%d", &cents)
	return cents, err == nil
}

// lateOf checks that every late record is as it came, and there once; it returns them.
func lateOf(all []click, o output, v *verdict) map[int64]bool {
	known := map[int64]click{}
	for _, c := range all {
		known[c.N] = c
	}
	found := map[int64]bool{}
	for _, r := range o.late {
		var c click
		if err := json.Unmarshal(r.Value, &struct{ N *int64 }{&c.N}); err != nil {
			v.fault("late %q: %v", r.Value, err)
			continue
		}
		if string(known[c.N].record().Value) != string(r.Value) {
			v.fault("late %q never came in", r.Value)
		}
		if found[c.N] {
			v.fault("late record %d is there twice", c.N)
		}
		found[c.N] = true
	}
	return found
}

// sameLate holds the late topic against what must be in it.
func sameLate(want, found map[int64]bool, v *verdict) {
	for _, n := range slices.Sorted(maps.Keys(found)) {
		if !want[n] {
			v.fault("record %d is in the late topic and was in time", n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(want)) {
		if !found[n] {
			v.miss("late record %d", n)
		}
	}
}

// finals checks that every window has one final, in the order of closing, and that each is what want says.
func finals(want map[windowKey]total, rows []devbroker.Record, by string, v *verdict) {
	found := map[windowKey]bool{}
	last := map[int32]result{}
	for _, r := range rows {
		got, err := parseResult(r, by)
		if err != nil {
			v.fault("%v", err)
			continue
		}
		if before, ok := last[r.Partition]; ok && (got.start < before.start || got.start == before.start && got.key < before.key) {
			v.fault("partition %d has the final of %v behind the one of %v", r.Partition, got.windowKey, before.windowKey)
		}
		last[r.Partition] = got
		if found[got.windowKey] {
			v.fault("%v has two finals", got.windowKey)
		}
		found[got.windowKey] = true
		if t, ok := want[got.windowKey]; !ok || t != got.total {
			v.fault("%v is %v, want %v", got.windowKey, got.total, t)
		}
	}
	for k, t := range want {
		if !found[k] {
			v.miss("final of %v: %v", k, t)
		}
	}
}

func verifyFinal(_ int32, all []click, o output) (v verdict) {
	late := lateBehindOwn(all)
	sameLate(late, lateOf(all, o, &v), &v)
	finals(totals(all, byUser, late, false), o.out, "user", &v)
	return v
}

// verifyShuffled: behind a repartition topic, which records are late depends on how the partitions' times met, but never
// whether a record counts: it is in its final or in the late topic.
func verifyShuffled(partitions int32, all []click, o output) (v verdict) {
	may, found := lateBehindOwn(all), lateOf(all, o, &v)
	if partitions == 1 {
		sameLate(may, found, &v)
	}
	for n := range found {
		if !may[n] {
			v.fault("record %d is in the late topic and was in time", n)
		}
	}
	finals(totals(all, byAd, found, false), o.out, "ad", &v)
	return v
}

// verifyChanges: a window's rows only ever grow, and the last one is the result.
func verifyChanges(_ int32, all []click, o output) (v verdict) {
	late := lateBehindOwn(all)
	sameLate(late, lateOf(all, o, &v), &v)
	last := map[windowKey]result{}
	for _, r := range o.out {
		got, err := parseResult(r, "user")
		if err != nil {
			v.fault("%v", err)
			continue
		}
		if before, ok := last[got.windowKey]; ok && got.count <= before.count {
			v.fault("%v goes from %v to %v", got.windowKey, before.total, got.total)
		}
		last[got.windowKey] = got
	}
	want := totals(all, byUser, late, true)
	for k, got := range last {
		if t, ok := want[k]; !ok || got.count > t.count || got.count == t.count && got.cents != t.cents {
			v.fault("%v is %v, want %v", k, got.total, t)
		}
	}
	for k, t := range want {
		if last[k].count < t.count {
			v.miss("%v: %v, so far %v", k, t, last[k].total)
		}
	}
	return v
}

// verifyStateless: every partition of the output has the records of the input's that passed, in their order.
func verifyStateless(partitions int32, all []click, o output) (v verdict) {
	want, got := make([][]string, partitions), make([][]string, partitions)
	for _, c := range all {
		if c.Cents >= 50_000 {
			want[c.partition] = append(want[c.partition], fmt.Sprintf(`{"n":%d,"user":%q,"amount":%d.%02d}`, c.N, c.User, c.Cents/100, c.Cents%100))
		}
	}
	for _, r := range o.out {
		got[r.Partition] = append(got[r.Partition], string(r.Value))
	}
	for p := range partitions {
		n := min(len(want[p]), len(got[p]))
		for i := range n {
			if want[p][i] != got[p][i] {
				v.fault("row %d of partition %d is %s, want %s", i, p, got[p][i], want[p][i])
				return v
			}
		}
		for _, extra := range got[p][n:] {
			v.fault("partition %d has %s behind its end", p, extra)
		}
		for _, absent := range want[p][n:] {
			v.miss("partition %d: %s", p, absent)
		}
	}
	return v
}
