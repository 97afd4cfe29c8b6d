package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"millrace/record"
)

// tableJob is a job of one step without windows, with a sink of each mode.
func tableJob(aggregate, ttl string) string {
	return `topology:
  sources: { in: { topic: in, format: string, key: key } }
  steps:
    s:
      from: in
      group_by: key
      aggregate: { r: '` + aggregate + `' }
      ttl: ` + ttl + `
      to: [out, appended]
  sinks: { out: { topic: out, mode: upsert }, appended: { topic: appended } }
`
}

func TestCountWithoutWindows(t *testing.T) { // A1
	tell(t, single(t, tableJob("count()", "forever")), []story{
		{"k a 10", "k=1 @10"},
		{"k b 4", "k=2 @10"},
		{"∅ c 11", ""},
		{"k ∅ 12", ""},
		{"k d 11", "k=3 @11"},
		{"j z 1", "j=1 @1"},
	})
}

const concatOrDelete = `fold("", value == "del" ? nil : acc == nil || acc == "" ? value : acc + "+" + value)`

func TestAFoldToNullDeletes(t *testing.T) { // A2
	w := single(t, tableJob(concatOrDelete, "forever"))
	tell(t, w, []story{
		{"k a 1", "k=a @1"},
		{"k del 2", "k=null @2"},
		{"k b 3", "k=b @3"},
		{"q del 4", ""}, // there is nothing to delete
		{"k a 10", "k=b+a @10"},
		{"k del 3", "k=null @10"},
		{"k b 2", "k=b @2"}, // time starts anew
		{"k del 11", "k=null @11"},
		{"k del 12", ""}, // it is gone already
	})
	for _, r := range w.read("appended") {
		if r.Value == nil {
			t.Errorf("a tombstone for %s in a sink that is not keyed by the group", r.Key)
		}
	}
	if n := w.tasks[0].rows(0); n != 0 {
		t.Errorf("%d rows are left of what was deleted", n)
	}
}

func TestADeletedRowThatComesBackInTheSameEpoch(t *testing.T) {
	w := single(t, tableJob(concatOrDelete, "forever"))
	for _, text := range []string{"k a 1", "n b 2", "n del 3"} {
		w.write("in", 0, parseRecord(t, text))
	}
	w.settle() // n began and ended: nobody has seen it
	for _, text := range []string{"k del 4", "k c 5"} {
		w.write("in", 0, parseRecord(t, text))
	}
	w.settle()
	var got []string
	for _, r := range w.read("out") {
		got = append(got, show(t, r))
	}
	if text := strings.Join(got, "; "); text != "k=a @1; k=c @5" {
		t.Errorf("got %s", text)
	}
}

// The end of a window or of a ttl is not a deletion: what an upsert keeps is the last result.
func TestARowThatEndsLeavesItsLastResult(t *testing.T) {
	for _, fold := range []string{"count()", concatOrDelete} {
		for name, job := range map[string]string{
			"window": strings.Replace(storyJob("{ type: tumbling, size: 10ms }", fold, "changes"), "format: json }", "format: json, mode: upsert }", 1),
			"ttl":    tableJob(fold, "10ms"),
		} {
			t.Run(name+" "+fold, func(t *testing.T) {
				w := single(t, job)
				w.write("in", 0, parseRecord(t, "k a 1"))
				w.settle()
				w.write("in", 0, parseRecord(t, "k b 2")) // changes and ends in one epoch
				w.write("in", 0, parseRecord(t, "j c 1000"))
				w.settle()
				var k []record.Record
				for _, r := range w.read("out") {
					if string(r.Key) == "k" {
						k = append(k, r)
					}
				}
				if len(k) != 2 || k[1].Value == nil || k[1].Timestamp != 2 {
					t.Errorf("results for k: %v", k)
				}
				if n := w.tasks[0].rows(0); n != 1 {
					t.Errorf("%d rows are kept, want j's alone", n)
				}
			})
		}
	}
}

func TestARowExpiresByEventTime(t *testing.T) {
	w := single(t, tableJob("count()", "10ms"))
	tell(t, w, []story{
		{"k a 0", "k=1 @0"},
		{"j a 10", "j=1 @10"},
		{"k b 0", "k=2 @0"},     // 0 is 10 ms old: just in time
		{"j b 11", "j=2 @11"},   // now k is over
		{"k c 3", "k=1 @3"},     // and starts anew, if late
		{"k d 40", "k=1 @40"},   // after a ttl of silence
		{"k e 50", "k=2 @50"},   // each record is a new lease
		{"k f 60", "k=3 @60"},   // …
		{"z f 500", "z=1 @500"}, // all others are over
	})
	if n := w.tasks[0].rows(0); n != 1 {
		t.Errorf("%d rows are kept, want z's alone", n)
	}
	if n := w.tally(record.Expired, "s", ""); n != 4 {
		t.Errorf("%d rows expired, want k three times and j", n)
	}
}

// What expires and what comes out last does not depend on epochs, restarts or how far sweeping has come.
func TestExpiryAgreesWithTheOracle(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		ttl := rapid.Int64Range(1, 200).Draw(t, "ttl")
		aggregate := rapid.SampledFrom([]string{"count()", concat}).Draw(t, "aggregate")
		w := newWorld(t, compile(t, dir, tableJob(aggregate, fmt.Sprintf("%dms", ttl))), nil)
		totals, watermark, lives, order := map[string]*total{}, int64(-1), 0, []string(nil)
		for _, r := range drawEvents(t, 80) {
			w.write("in", 0, r)
			watermark = max(watermark, r.Timestamp)
			if r.Key == nil || r.Value == nil {
				continue
			}
			key := string(r.Key)
			if totals[key] == nil {
				order = append(order, key)
			}
			if sum := totals[key]; sum == nil || sum.newest < watermark-ttl {
				totals[key] = &total{newest: r.Timestamp}
				lives++
			}
			totals[key].values = append(totals[key].values, string(r.Value))
			totals[key].newest = max(totals[key].newest, r.Timestamp)
		}
		shake(t, w.tasks[0])
		var want, got []string
		alive := 0
		for _, key := range order {
			sum := totals[key]
			result := fmt.Sprint(len(sum.values))
			if aggregate == concat {
				result = strings.Join(sum.values, "+")
			}
			want = append(want, fmt.Sprintf("%s=%s @%d", key, result, sum.newest))
			if sum.newest >= watermark-ttl {
				alive++
			}
		}
		for _, r := range w.read("out") {
			got = append(got, show(t, r))
		}
		if d := cmp.Diff(want, last(got, want)); d != "" {
			t.Fatalf("last results, -want +got:\n%s", d)
		}
		rows := w.tasks[0].rows(0)
		if expired := int(w.tally(record.Expired, "s", "")); rows+expired != lives || rows < alive {
			t.Fatalf("%d rows are kept and %d expired, of %d lives; %d must be kept", rows, expired, lives, alive)
		}
		w.write("in", 0, record.Record{Key: []byte("z"), Value: []byte("x"), Timestamp: watermark + 3*ttl + 64})
		w.settle()
		if rows := w.tasks[0].rows(0); rows != 1 {
			t.Fatalf("%d rows are kept after their ttl", rows)
		}
	})
}
