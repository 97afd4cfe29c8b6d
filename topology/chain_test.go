package topology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"millrace/record"
)

// chainJob counts per key and window and sums these counts over a larger window of the second step, which reads the first
// through two stateless ones. second is the second step's group: key stays in the task, value.all travels.
func chainJob(first, second windowing, group string) string {
	return fmt.Sprintf(`topology:
  sources: { in: { topic: in, format: string, key: key, watermark: { max_out_of_orderness: %dms } } }
  steps:
    first:
      from: in
      group_by: key
      window: %s
      aggregate: { n: count() }
      emit: %s
      late: { to: late }
    thought: { from: first, where: value.n > 0 }
    named: { from: thought, select: { n: value.n, key: key, all: '"all"' } }
    second:
      from: named
      group_by: %s
      window: %s
      aggregate: { r: sum(value.n) }
      emit: final
      late: { to: lost }
      to: out
  sinks: { out: { topic: out }, late: { topic: late, format: string }, lost: { topic: lost } }
`, first.disorder, first.yaml(), first.emit, group, second.yaml())
}

// What a step puts out when its windows close is never late for the next step, however far time has jumped, and so the
// second step is as exact as the first.
func TestFinalsAreOnTimeForTheNextStep(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		first, second := drawWindowing(t, "final"), drawWindowing(t, "final")
		second.lateness, second.disorder = 0, 0
		group := rapid.SampledFrom([]string{"key", "value.all"}).Draw(t, "group")
		w := newWorld(t, compile(t, dir, chainJob(first, second, group)), map[string]int32{"app-second-repartition": 2})
		o := newOracle(first)
		events := append(drawEvents(t, 50), record.Record{Key: []byte("z"), Value: []byte("end"), Timestamp: 100_000}, record.Record{Key: []byte("z"), Value: []byte("end"), Timestamp: 200_000})
		for _, r := range events {
			w.write("in", 0, r)
			o.add(r)
		}
		interleave(t, w, nil, nil)

		// The second step's input are the first one's finals, all in time.
		sums := map[groupWindow]int{}
		for gw, sum := range o.totals {
			if o.watermark < gw.end+first.lateness {
				continue
			}
			key := gw.key
			if group != "key" {
				key = "all"
			}
			for end := sum.newest + 1; end <= sum.newest+second.size; end++ {
				if (end-second.size-second.offset)%second.advance == 0 && end < 100_000 {
					sums[groupWindow{end, key}] += len(sum.values)
				}
			}
		}
		want := map[string]int{}
		for gw, n := range sums {
			want[fmt.Sprintf("%s[%d,%d)", gw.key, gw.end-second.size, gw.end)] = n
		}
		got := map[string]int{}
		for _, r := range w.read("out") {
			row := show(t, r)
			if strings.HasPrefix(row, "z[") || r.Timestamp >= 100_000 {
				continue // the end
			}
			if _, twice := got[window(row)]; twice {
				t.Fatalf("%s comes twice", row)
			}
			n := 0
			fmt.Sscanf(row[strings.Index(row, "="):], "=%d", &n)
			got[window(row)] = n
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("results, -want +got:\n%s", d)
		}
		if lost := w.read("lost"); len(lost) != 0 {
			t.Fatalf("results were late for the next step: %v", lost)
		}
	})
}

// The changes of a step without windows come when an epoch ends; the next step's time waits for them.
func TestChangesAreOnTimeForTheNextStep(t *testing.T) {
	job := `topology:
  sources: { in: { topic: in, format: string, key: key } }
  steps:
    table: { from: in, group_by: key, aggregate: { n: count() }, ttl: forever }
    seen:
      from: table
      group_by: key
      window: { type: tumbling, size: 10ms }
      aggregate: { r: count() }
      emit: final
      late: { to: lost }
      to: out
  sinks: { out: { topic: out }, lost: { topic: lost } }
`
	w := single(t, job)
	for _, text := range []string{"a x 5", "b x 12", "c x 70"} {
		w.write("in", 0, parseRecord(t, text))
	}
	w.settle()
	w.tasks[0].restart()
	w.write("in", 0, parseRecord(t, "b x 71")) // its table row is of 71, in time
	w.write("in", 0, parseRecord(t, "d x 3"))  // this one is not
	w.write("in", 0, parseRecord(t, "c x 90"))
	w.settle()
	var got []string
	for _, r := range w.read("out") {
		got = append(got, show(t, r))
	}
	if text := strings.Join(got, "; "); text != "a[0,10)=1 @5; b[10,20)=1 @12; b[70,80)=1 @71; c[70,80)=1 @70" {
		t.Errorf("got %s", text)
	}
	if lost := w.read("lost"); len(lost) != 1 || string(lost[0].Key) != "d" {
		t.Errorf("late: %v; want d", lost)
	}
}

const mergeJob = `topology:
  sources:
    clicks: { topic: clicks, key: key, fields: { ad: string, cost: long } }
    views: { topic: views, key: key, fields: { extra: string, cost: long, ad: string } }
  steps:
    paid: { from: clicks, where: value.cost > 0, to: paid }
    dear: { from: paid, where: value.cost > 10, to: dear }
    both: { from: [dear, views] }
    spend:
      from: both
      group_by: %s
      window: { type: tumbling, size: 10ms }
      aggregate: { r: sum(value.cost) }
      emit: final
      late: { to: late }
      to: out
  sinks: { paid: { topic: paid }, dear: { topic: dear }, out: { topic: out }, late: { topic: late } }
`

// One source feeds several steps, and a step merges rows of two layouts, with and without a repartition topic.
func TestStatelessStepsAndMerges(t *testing.T) {
	for _, group := range []string{"key", "value.ad"} {
		w := newWorld(t, compile(t, t.TempDir(), fmt.Sprintf(mergeJob, group)), nil)
		write := func(topic, key, value string, at int64) {
			w.write(topic, 0, record.Record{Key: []byte(key), Value: []byte(value), Timestamp: at})
		}
		write("clicks", "a", `{"cost":0,"ad":"a"}`, 1)
		write("clicks", "a", `{"cost":5,"ad":"a"}`, 2)
		write("clicks", "a", `{"cost":50,"ad":"a","other":[1]}`, 3)
		write("views", "a", `{"extra":"x","ad":"a","cost":7}`, 4)
		write("clicks", "b", `{"cost":11,"ad":"b"}`, 30)
		write("views", "b", `{"ad":"b"}`, 30)
		write("views", "b", `{"ad":"b","extra":"late"}`, 3)
		w.settle()
		for topic, want := range map[string]string{
			"paid": `{"cost":5,"ad":"a"} {"cost":50,"ad":"a","other":[1]} {"cost":11,"ad":"b"}`,
			"dear": `{"cost":50,"ad":"a","other":[1]} {"cost":11,"ad":"b"}`,
			"late": `{"ad":"b","extra":"late"}`, // as it came
		} {
			var values []string
			for _, r := range w.read(topic) {
				values = append(values, string(r.Value))
			}
			if got := strings.Join(values, " "); got != want {
				t.Errorf("group %s, topic %s: %s, want %s", group, topic, got, want)
			}
		}
		out := w.read("out")
		if len(out) != 1 || show(t, out[0]) != "a[0,10)=57 @4" {
			t.Errorf("group %s: results %v", group, out)
		}
		if in, filtered := w.tally(record.In, "paid", ""), w.tally(record.Filtered, "paid", ""); in != 4 || filtered != 1 {
			t.Errorf("step paid had %d records and filtered %d", in, filtered)
		}
		if n := w.tally(record.Filtered, "dear", ""); n != 1 {
			t.Errorf("step dear filtered %d", n)
		}
	}
}

// Every kind of value survives the way through a repartition topic as a derived row.
func TestDerivedRowsTravelUnchanged(t *testing.T) {
	w := single(t, `topology:
  sources:
    in:
      topic: in
      fields: { s: string, n: long, d: double, x: decimal, b: boolean, ms: timestamp_ms, at: timestamp, l: list, m: map, none: string, any: any, bytes: bytes }
  steps:
    rows:
      from: in
      select: { "a.b": value.s, s: value.s, n: value.n, d: value.d, x: value.x, b: value.b, ms: value.ms, at: value.at, l: value.l, m: value.m, none: value.none, any: value.any, bytes: value.bytes, took: value.at - value.ms }
    kept:
      from: rows
      group_by: value.s
      aggregate: { n: last(value.n), d: last(value.d), x: last(value.x), b: last(value.b), ms: last(value.ms), at: last(value.at), l: last(value.l), m: last(value.m), none: last(value.none), any: last(value.any), bytes: last(value.bytes), took: last(value.took) }
      ttl: forever
      to: out
  sinks: { out: { topic: out } }
`)
	value := `{"s":"a|b\\c","n":-9007199254740993,"d":0.1,"x":12.30,"b":true,"ms":1000,"at":"2026-01-02T03:04:05.678Z","l":[1,"x"],"m":{"k":null},"any":3,"bytes":"AAEC"}`
	w.write("in", 0, record.Record{Value: []byte(value)})
	w.settle()
	out := w.read("out")
	if len(w.plan.Repartitions()) != 1 || len(out) != 1 {
		t.Fatalf("%d repartition topics, %d results", len(w.plan.Repartitions()), len(out))
	}
	want := `{"s":"a|b\\c","n":-9007199254740993,"d":0.1,"x":12.30,"b":true,"ms":1000,"at":"2026-01-02T03:04:05.678Z","l":[1,"x"],"m":{"k":null},"none":null,"any":3,"bytes":"AAEC","took":"490923h4m4.678s"}`
	if got := string(out[0].Value); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !slices.Equal(out[0].Key, []byte(`a|b\c`)) {
		t.Errorf("key %q: a single value is written plainly", out[0].Key)
	}
}
