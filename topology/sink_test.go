package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"millrace/record"
	"millrace/topology"
)

func TestSinkKeysAndHeaders(t *testing.T) {
	w := newWorld(t, compile(t, t.TempDir(), `topology:
  sources: { in: { topic: in, key: key, fields: { ad: string, user: string, n: long } } }
  steps:
    all: { from: in, to: [by_user, plain] }
    s:
      from: in
      group_by: key
      window: { type: tumbling, size: 10ms }
      aggregate: { r: count() }
      emit: final
      late: { policy: drop }
      to: windows
  sinks:
    plain: { topic: plain }
    by_user: { topic: by_user, key: value.user, headers: { ad: value.ad, n: value.n } }
    windows: { topic: windows, key_with_window: true, mode: upsert }
`), map[string]int32{"plain": 8, "by_user": 8, "windows": 8})
	w.write("in", 0, record.Record{Key: []byte("k"), Value: []byte(`{"ad":"x","user":"u1"}`), Timestamp: 5, Headers: []record.Header{{Key: []byte("own"), Value: []byte("1")}}})
	w.write("in", 0, record.Record{Key: []byte("k"), Value: []byte(`{"ad":"x","user":null,"n":3}`), Timestamp: 15})
	w.write("in", 0, record.Record{Value: []byte(`{"user":"u1"}`), Timestamp: 100})
	w.settle()
	at := func(topic, key string) []record.Record {
		return w.topics[record.TopicPartition{Topic: topic, Partition: record.PartitionOf([]byte(key), 8)}]
	}
	if rows := at("by_user", "u1"); len(rows) < 2 || string(rows[0].Key) != "u1" || header(rows[0], "own") != "1" || header(rows[0], "ad") != "x" || header(rows[0], "n") != "" {
		t.Errorf("rows keyed by user: %v", rows)
	}
	null := 0
	for _, r := range w.read("by_user") {
		if r.Key == nil {
			null++
		}
	}
	if null != 1 {
		t.Errorf("%d rows of users that are null, want 1", null)
	}
	if rows := at("plain", "k"); len(rows) < 2 || string(rows[1].Value) != `{"ad":"x","user":null,"n":3}` {
		t.Errorf("rows that go through: %v", rows)
	}
	// A group's windows stay in the group's partition although their keys differ.
	if rows := at("windows", "k"); len(rows) != 2 || string(rows[0].Key) != "k|0" || string(rows[1].Key) != "k|10" {
		t.Errorf("windows: %v", rows)
	}
}

func TestAnUpsertNeedsAKey(t *testing.T) {
	w := single(t, `errors: { processing: skip }
topology:
  sources: { in: { topic: in, format: string } }
  steps: { s: { from: in, to: out } }
  sinks: { out: { topic: out, format: string, mode: upsert } }
`)
	w.write("in", 0, record.Record{Value: []byte("x")})
	w.write("in", 0, record.Record{Key: []byte("k"), Value: []byte("x")})
	w.settle()
	if n := w.tally(record.Dropped, "out", "processing_error"); n != 1 || len(w.read("out")) != 1 {
		t.Errorf("%d rows without key were counted, %d rows are there", n, len(w.read("out")))
	}
}

// A source whose key is not what the job says would be counted in the wrong task: no policy may pass over that.
func TestAWrongKeyStopsTheTask(t *testing.T) {
	w := single(t, `errors: { processing: skip }
topology:
  sources: { in: { topic: in, key: value.user, fields: { user: string } } }
  steps: { s: { from: in, group_by: value.user, aggregate: { r: count() }, ttl: forever, to: out } }
  sinks: { out: { topic: out } }
`)
	w.write("in", 0, record.Record{Key: []byte("u1"), Value: []byte(`{"user":"u1"}`)})
	w.write("in", 0, record.Record{Key: []byte("u1"), Value: []byte(`{"user":"u2"}`)})
	if err := w.tasks[0].step(0); err != nil {
		t.Fatal(err)
	}
	err := w.tasks[0].step(0)
	var failure *topology.RecordError
	if !errors.As(err, &failure) || failure.Origin.Offset != 1 || !strings.Contains(err.Error(), "write the source's true key") || strings.Contains(err.Error(), "is fail") {
		t.Errorf("got %v", err)
	}
}

// Arguments are evaluated before the repartition topic where rows are combined, and behind it otherwise. Either way the dead
// letter is the record as it came, with its own coordinates.
func TestDeadLettersOfAShuffle(t *testing.T) {
	for _, aggregate := range []string{"sum(1 % value.n)", "fold(0, acc + 1 % value.n)"} {
		w := newWorld(t, compile(t, t.TempDir(), `errors: { processing: dead_letter, dead_letter_topic: dlq }
topology:
  sources: { in: { topic: in, key: key, fields: { g: string, n: long } } }
  steps: { s: { from: in, group_by: value.g, aggregate: { r: '`+aggregate+`' }, ttl: forever, to: out } }
  sinks: { out: { topic: out } }
`), map[string]int32{"in": 2})
		for _, n := range []int{2, 0, 3} {
			w.write("in", 1, record.Record{Key: []byte("k"), Value: fmt.Appendf(nil, `{"g":"a","n":%d}`, n), Timestamp: 7})
		}
		w.settle()
		letters := w.read("dlq")
		if len(letters) != 1 || string(letters[0].Key) != "k" || string(letters[0].Value) != `{"g":"a","n":0}` {
			t.Fatalf("%s: dead letters %v", aggregate, letters)
		}
		for name, want := range map[string]string{"topic": "in", "partition": "1", "offset": "1", "step": "s"} {
			if got := header(letters[0], "__streams.errors."+name); got != want {
				t.Errorf("%s: header %s is %q, want %q", aggregate, name, got, want)
			}
		}
		if n := w.tally(record.DeadLettered, "s", "processing"); n != 1 {
			t.Errorf("%s: counted %d times", aggregate, n)
		}
		rows := w.read("out")
		if got := show(t, rows[len(rows)-1]); got != "a=2 @7" {
			t.Errorf("%s: %s, want the other two", aggregate, got)
		}
	}
}

// A sum may be too large only where parts of several tasks meet.
func TestPartsThatDoNotFitTogether(t *testing.T) {
	w := newWorld(t, compile(t, t.TempDir(), `errors: { processing: dead_letter, dead_letter_topic: dlq }
topology:
  sources: { in: { topic: in, key: key, fields: { g: string, n: long } } }
  steps: { s: { from: in, group_by: value.g, aggregate: { r: sum(value.n) }, ttl: forever, to: out } }
  sinks: { out: { topic: out } }
`), map[string]int32{"in": 2})
	for p := range int32(2) {
		w.write("in", p, record.Record{Key: []byte("k"), Value: []byte(`{"g":"a","n":9000000000000000000}`), Timestamp: 7})
	}
	w.settle()
	if rows := w.read("out"); len(rows) != 1 || show(t, rows[0]) != "a=9000000000000000000 @7" {
		t.Errorf("results %v", rows)
	}
	if letters := w.read("dlq"); len(letters) != 1 || string(letters[0].Key) != "a" {
		t.Errorf("dead letters %v", letters)
	}
}

func TestAdvanceByDecree(t *testing.T) {
	w := single(t, storyJob("{ type: tumbling, size: 10ms }", "count()", "final"))
	w.write("in", 0, parseRecord(t, "k a 3"))
	w.settle()
	w.tasks[0].instance.SetIdle(0)
	w.tasks[0].instance.Advance(10)
	w.settle()
	w.tasks[0].restart()
	w.write("in", 0, parseRecord(t, "k b 9"))
	w.settle()
	if rows := w.read("out"); len(rows) != 1 || len(w.read("late")) != 1 {
		t.Errorf("%d results and %d late records, want one of each: a decree is part of what is committed", len(rows), len(w.read("late")))
	}
}
