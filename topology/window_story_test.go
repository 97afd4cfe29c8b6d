package topology_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"millrace/record"
)

// A story writes records and says what each of them brings out. In `in`, "k a 3" is key, value and time; the key ∅ is
// null, as is the value. The rows of `out` are "k[0,10)=a @3".
type story struct{ in, out string }

// concat is the aggregate that the stories of Kafka Streams use: values joined in the order of their coming.
const concat = `fold("", acc == "" ? value : acc + "+" + value)`

// storyJob is a job of one windowed step over a source of plain text.
func storyJob(window, aggregate, emit string) string {
	return `topology:
  sources: { in: { topic: in, format: string, key: key } }
  steps:
    s:
      from: in
      group_by: key
      window: ` + window + `
      aggregate: { r: '` + aggregate + `' }
      emit: ` + emit + `
      late: { to: late }
      to: out
  sinks: { out: { topic: out, format: json }, late: { topic: late, format: string } }
`
}

func parseRecord(t fataler, text string) record.Record {
	t.Helper()
	parts := strings.Fields(text)
	at, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	r := record.Record{Timestamp: at}
	if parts[0] != "∅" {
		r.Key = []byte(parts[0])
	}
	if parts[1] != "∅" {
		r.Value = []byte(parts[1])
	}
	return r
}

// show writes a result row as the stories have it.
func show(t fataler, r record.Record) string {
	t.Helper()
	if r.Value == nil {
		return fmt.Sprintf("%s=null @%d", r.Key, r.Timestamp)
	}
	row := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(r.Value))
	d.UseNumber()
	if err := d.Decode(&row); err != nil {
		t.Fatalf("result %s: %v", r.Value, err)
	}
	text := string(r.Key)
	if row["window_start"] != nil {
		text += fmt.Sprintf("[%v,%v)", row["window_start"], row["window_end"])
	}
	text += fmt.Sprintf("=%v @%d", row["r"], r.Timestamp)
	if row["revision"] != nil {
		text += fmt.Sprintf(" revision %v", row["revision"])
		if row["final"] == true {
			text += " final"
		}
	}
	return text
}

// showLate writes a late record with the windows that refused it.
func showLate(r record.Record) string {
	text := fmt.Sprintf("late %s %s %d", r.Key, r.Value, r.Timestamp)
	for _, h := range r.Headers {
		text += fmt.Sprintf(" %s=%s", strings.TrimPrefix(string(h.Key), "millrace-"), h.Value)
	}
	return text
}

// tell plays the stories; an epoch ends after each record.
func tell(t *testing.T, w *world, stories []story) {
	t.Helper()
	seen, seenLate := 0, 0
	for _, s := range stories {
		for _, text := range strings.Split(s.in, ";") {
			w.write("in", 0, parseRecord(t, text))
			w.settle()
		}
		var got []string
		for _, r := range w.read("out")[seen:] {
			got = append(got, show(t, r))
			seen++
		}
		for _, r := range w.read("late")[seenLate:] {
			got = append(got, showLate(r))
			seenLate++
		}
		if text := strings.Join(got, "; "); text != s.out {
			t.Errorf("%s\n gives %s\n want  %s", s.in, text, s.out)
		}
	}
}

func TestTumblingBoundaries(t *testing.T) { // W1
	tell(t, single(t, storyJob("{ type: tumbling, size: 10ms }", concat, "changes")), []story{
		{"k a 0", "k[0,10)=a @0"},
		{"k b 9", "k[0,10)=a+b @9"},
		{"k c 10", "k[10,20)=c @10"},
		{"k d 9", "late k d 9 late-by-ms=0 window-end=10"},
		{"k e 19", "k[10,20)=c+e @19"},
		{"k f 20", "k[20,30)=f @20"},
	})
}

func TestAllowedLateness(t *testing.T) { // W2
	tell(t, single(t, storyJob("{ type: tumbling, size: 10ms, allowed_lateness: 5ms }", concat, "changes")), []story{
		{"k a 3", "k[0,10)=a @3"},
		{"k b 14", "k[10,20)=b @14"},
		{"k late1 9", "k[0,10)=a+late1 @9"},
		{"k c 15", "k[10,20)=b+c @15"},
		{"k late2 9", "late k late2 9 late-by-ms=0 window-end=10"},
		{"j other 8", "late j other 8 late-by-ms=0 window-end=10"},
		{"k d 27", "k[20,30)=d @27"},
		{"k late3 1", "late k late3 1 late-by-ms=12 window-end=10"},
	})
}

// Other than in Kafka Streams, windows start before 0 too, so that the first record is in two like all others.
func TestHoppingWindowsRefuseOneByOne(t *testing.T) { // W3
	w := single(t, storyJob("{ type: hopping, size: 10ms, advance: 5ms }", concat, "changes"))
	tell(t, w, []story{
		{"k a 3", "k[-5,5)=a @3; k[0,10)=a @3"},
		{"k b 12", "k[5,15)=b @12; k[10,20)=b @12"},
		{"k c 9", "k[5,15)=b+c @12; late k c 9 late-by-ms=2 window-end=10"},
		{"k d 4", "late k d 4 late-by-ms=7 window-end=5,10"},
	})
	if late, windows := w.tally(record.Late, "s", ""), w.tally(record.LateWindow, "s", ""); late != 2 || windows != 3 {
		t.Errorf("%d late records, %d refusals; want 2 and 3", late, windows)
	}
}

// The same story with an aggregate that is kept by slices.
func TestSlicedWindowsRefuseOneByOne(t *testing.T) { // W3
	tell(t, single(t, storyJob("{ type: hopping, size: 10ms, advance: 5ms }", "count()", "changes")), []story{
		{"k a 3", "k[-5,5)=1 @3; k[0,10)=1 @3"},
		{"k b 12", "k[5,15)=1 @12; k[10,20)=1 @12"},
		{"k c 9", "k[5,15)=2 @12; late k c 9 late-by-ms=2 window-end=10"},
		{"k d 4", "late k d 4 late-by-ms=7 window-end=5,10"},
	})
	tell(t, single(t, storyJob("{ type: hopping, size: 10ms, advance: 5ms }", "count()", "final")), []story{
		{"k a 12", ""},
		{"k c 9", "late k c 9 late-by-ms=2 window-end=10"}, // [0,10) is over, although nothing was in it
		{"k b 20", "k[5,15)=2 @12; k[10,20)=1 @12"},
	})
}

func TestResultTimeIsTheNewest(t *testing.T) { // W4
	tell(t, single(t, storyJob("{ type: tumbling, size: 10ms, allowed_lateness: 100ms }", concat, "changes")), []story{
		{"k a 5", "k[0,10)=a @5"},
		{"k b 3", "k[0,10)=a+b @5"},
		{"k c 7", "k[0,10)=a+b+c @7"},
	})
}

func TestNullsInAWindow(t *testing.T) { // W5
	w := single(t, storyJob("{ type: tumbling, size: 10ms }", "count()", "changes"))
	tell(t, w, []story{{"∅ a 5", ""}, {"k ∅ 5", ""}, {"k x 6", "k[0,10)=1 @6"}})
	if n := w.tally(record.Dropped, "s", "null_key"); n != 1 {
		t.Errorf("%d records without a key were counted, want 1", n)
	}
	if n := w.tally(record.Dropped, "in", "null_value"); n != 1 {
		t.Errorf("%d records without a value were counted, want 1", n)
	}
}

func TestFinalsInOrderOfEndThenKey(t *testing.T) { // W6
	w := single(t, storyJob("{ type: tumbling, size: 10ms, allowed_lateness: 5ms }", concat, "final"))
	tell(t, w, []story{
		{"k a 3; j b 5; k c 12; k d 14", ""},
		{"k e 15", "j[0,10)=b @5; k[0,10)=a @3"},
		{"k late 9", "late k late 9 late-by-ms=0 window-end=10"},
		{"z f 26", "k[10,20)=c+d+e @15"},
	})
	first := w.read("out")[0]
	if got := showLate(first); !strings.Contains(got, "window_start=0 window_end=10") {
		t.Errorf("headers of a final: %s", got)
	}
	if n := w.tally(record.WindowClosed, "s", ""); n != 3 {
		t.Errorf("%d closed windows, want 3", n)
	}
}

func TestAJumpClosesEveryWindowOnce(t *testing.T) { // W9
	for name, size := range map[string]string{"tumbling": "{ type: tumbling, size: 10ms", "hopping": "{ type: hopping, size: 10ms, advance: 10ms"} {
		t.Run(name, func(t *testing.T) {
			tell(t, single(t, storyJob(size+" }", "count()", "final")), []story{
				{"k a 3", ""},
				{"k b 100", "k[0,10)=1 @3"},
				{"k c 111", "k[100,110)=1 @100"},
			})
			w := single(t, storyJob(size+", allowed_lateness: 5ms }", "count()", "final"))
			for _, at := range []string{"k a 3", "k b 12", "k c 22", "k d 33", "k e 44", "k f 1000"} {
				w.write("in", 0, parseRecord(t, at))
			}
			w.settle() // all in one epoch
			want := "k[0,10)=1 @3; k[10,20)=1 @12; k[20,30)=1 @22; k[30,40)=1 @33; k[40,50)=1 @44"
			var got []string
			for _, r := range w.read("out") {
				got = append(got, show(t, r))
			}
			if text := strings.Join(got, "; "); text != want {
				t.Errorf("got  %s\nwant %s", text, want)
			}
		})
	}
}

// Time is taken at the source, from every record that has one: before keys, values and conditions are looked at.
func TestEveryRecordMovesTime(t *testing.T) { // W10, W11
	tell(t, single(t, storyJob("{ type: tumbling, size: 10ms }", "count()", "changes")), []story{
		{"k a 1", "k[0,10)=1 @1"}, {"∅ b 50", ""}, {"k c 2", "late k c 2 late-by-ms=40 window-end=10"},
	})
	tell(t, single(t, storyJob("{ type: tumbling, size: 10ms }", "count()", "changes")), []story{
		{"k a 1", "k[0,10)=1 @1"}, {"k ∅ 50", ""}, {"k c 2", "late k c 2 late-by-ms=40 window-end=10"},
	})
	filtered := strings.Replace(storyJob("{ type: tumbling, size: 10ms }", "count()", "changes"), "from: in", "from: in\n      where: value != \"drop\"", 1)
	w := single(t, filtered)
	tell(t, w, []story{
		{"k a 1", "k[0,10)=1 @1"}, {"k drop 50", ""}, {"k c 2", "late k c 2 late-by-ms=40 window-end=10"},
	})
	if n := w.tally(record.Filtered, "s", ""); n != 1 {
		t.Errorf("%d filtered, want 1", n)
	}
}

func TestCorrections(t *testing.T) {
	tell(t, single(t, storyJob("{ type: tumbling, size: 10ms, allowed_lateness: 20ms }", "count()", "final_with_corrections")), []story{
		{"k a 3; j a 4", ""},
		{"k b 10", "j[0,10)=1 @4 revision 1; k[0,10)=1 @3 revision 1"},
		{"k c 5", "k[0,10)=2 @5 revision 2"},
		{"i c 6", "i[0,10)=1 @6 revision 1"},
		{"k d 29", "k[10,20)=1 @10 revision 1"},
		{"k e 7", "k[0,10)=3 @7 revision 3"},
		{"k f 30", "k[20,30)=1 @29 revision 1"},
		{"k g 8", "late k g 8 late-by-ms=0 window-end=10"},
		{"k h 100", "k[30,40)=1 @30 revision 1 final"},
	})
}
