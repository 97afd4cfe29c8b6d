package topology_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"millrace/record"
	"millrace/topology"
)

// policyJob has a place for every kind of failure: a value that is no JSON, a where, a select, an aggregate's argument and a
// having that divide by zero.
func policyJob(policy string) string {
	return `errors: { deserialization: ` + policy + `, processing: ` + policy + `, production: ` + policy + `, dead_letter_topic: dlq }
topology:
  sources: { in: { topic: in, key: key, fields: { where: long, select: long, sum: long, having: long } } }
  steps:
    filtered: { from: in, where: 1 % value.where == 0, to: passed }
    chosen: { from: in, select: { r: 1 % value.select }, to: selected }
    summed:
      from: in
      group_by: key
      aggregate: { r: sum(1 % value.sum), h: sum(value.having) }
      having: 1 % value.h == 0
      ttl: forever
      to: sums
  sinks: { passed: { topic: passed }, selected: { topic: selected }, sums: { topic: sums } }
`
}

// broken are values that each fail at one place.
var broken = []struct{ kind, where, value string }{
	{"deserialization", "in", `{"where":`},
	{"deserialization", "in", `{"where":"text"}`},
	{"processing", "filtered", `{"where":0,"select":1,"sum":1,"having":1}`},
	{"processing", "chosen", `{"where":1,"select":0,"sum":1,"having":1}`},
	{"processing", "summed", `{"where":1,"select":1,"sum":0,"having":1}`},
}

func header(r record.Record, name string) string {
	for _, h := range r.Headers {
		if string(h.Key) == name {
			return string(h.Value)
		}
	}
	return "(no header)"
}

func TestPolicyFail(t *testing.T) {
	for _, b := range broken {
		w := single(t, policyJob("fail"))
		w.write("in", 0, record.Record{Key: []byte("k"), Value: []byte(b.value), Timestamp: 7})
		err := w.tasks[0].step(0)
		var failure *topology.RecordError
		if !errors.As(err, &failure) || failure.Kind != b.kind || failure.Where != b.where || failure.Origin.Topic != "in" {
			t.Errorf("%s: %v", b.value, err)
			continue
		}
		if !strings.Contains(err.Error(), "in-0@0") || !strings.Contains(err.Error(), "errors."+b.kind+" is fail") {
			t.Errorf("the error does not tell where and what to do: %v", err)
		}
		w.tasks[0].commit()
		if n := len(w.read("dlq")); n != 0 {
			t.Errorf("%s: fail wrote %d dead letters", b.value, n)
		}
	}
}

func TestPolicySkip(t *testing.T) {
	for _, b := range broken {
		w := single(t, policyJob("skip"))
		w.write("in", 0, record.Record{Key: []byte("k"), Value: []byte(b.value), Timestamp: 7})
		w.settle()
		if n := w.tally(record.Dropped, b.where, b.kind+"_error"); n != 1 {
			t.Errorf("%s: counted %d times", b.value, n)
		}
		if n := len(w.read("dlq")); n != 0 {
			t.Errorf("%s: skip wrote %d dead letters", b.value, n)
		}
	}
}

func TestPolicyDeadLetter(t *testing.T) {
	for _, b := range broken {
		w := single(t, policyJob("dead_letter"))
		w.write("in", 0, record.Record{Key: []byte("k"), Value: []byte(`{"where":1,"select":1,"sum":1,"having":1}`), Timestamp: 6})
		w.write("in", 0, record.Record{Key: []byte("k"), Value: []byte(b.value), Timestamp: 7, Headers: []record.Header{{Key: []byte("mine"), Value: []byte("1")}}})
		w.settle()
		letters := w.read("dlq")
		if len(letters) != 1 {
			t.Fatalf("%s: %d dead letters", b.value, len(letters))
		}
		l := letters[0]
		if string(l.Key) != "k" || string(l.Value) != b.value || l.Timestamp != 7 || header(l, "mine") != "1" {
			t.Errorf("%s: the dead letter is not the record as it came: %v", b.value, l)
		}
		for name, want := range map[string]string{"exception": b.kind, "topic": "in", "partition": "0", "offset": "1", "step": b.where} {
			if got := header(l, "__streams.errors."+name); got != want {
				t.Errorf("%s: header %s is %q, want %q", b.value, name, got, want)
			}
		}
		if header(l, "__streams.errors.message") == "" || header(l, "__streams.errors.stacktrace") == "" {
			t.Errorf("%s: the dead letter does not say what is wrong", b.value)
		}
		if n := w.tally(record.DeadLettered, b.where, b.kind); n != 1 {
			t.Errorf("%s: counted %d times", b.value, n)
		}
		steps := 0
		for _, topic := range []string{"passed", "selected"} {
			steps += len(w.read(topic)) - 1
		}
		if want := map[string]int{"in": 0, "filtered": 1, "chosen": 1, "summed": 2}[b.where]; steps != want {
			t.Errorf("%s: %d other steps took the record, want %d", b.value, steps, want)
		}
	}
}

// A result has no single record to blame, so that its dead letter names the group instead of a record's coordinates.
func TestDeadLetterOfAResult(t *testing.T) {
	w := single(t, policyJob("dead_letter"))
	w.write("in", 0, record.Record{Key: []byte("k"), Value: []byte(`{"where":1,"select":1,"sum":1,"having":0}`), Timestamp: 7})
	w.settle()
	letters := w.read("dlq")
	if len(letters) != 1 || string(letters[0].Key) != "k" || letters[0].Timestamp != 7 || header(letters[0], "__streams.errors.step") != "summed" {
		t.Fatalf("dead letters: %v", letters)
	}
	if topic := header(letters[0], "__streams.errors.topic"); topic != "(no header)" {
		t.Errorf("the dead letter blames a record of %s", topic)
	}
}

func TestProductionPolicy(t *testing.T) {
	long := fmt.Sprintf("%01100000d", 1)
	job := `errors: { production: %s, dead_letter_topic: dlq }
topology:
  sources: { in: { topic: in, format: string } }
  steps: { s: { from: in, select: { r: value }, to: out } }
  sinks: { out: { topic: out } }
`
	w := single(t, fmt.Sprintf(job, "dead_letter"))
	w.write("in", 0, record.Record{Value: []byte(long)})
	w.settle()
	letters := w.read("dlq")
	if len(letters) != 1 || len(letters[0].Value) > 1<<20 || header(letters[0], "__streams.errors.truncated") != fmt.Sprint(len(long)) {
		t.Errorf("%d dead letters for a result that is too large", len(letters))
	}
	w = single(t, fmt.Sprintf(job, "fail"))
	w.write("in", 0, record.Record{Value: []byte(long)})
	if err := w.tasks[0].step(0); err == nil || !strings.Contains(err.Error(), "production") {
		t.Errorf("fail: %v", err)
	}
}

func timeJob(policy, extra string) string {
	return `errors: { dead_letter_topic: dlq }
topology:
  sources:
    in:
      topic: in
      key: key
      fields: { at: "long|null" }
      timestamp: value.at
      invalid_timestamp: ` + policy + `
      watermark: { max_out_of_orderness: 0s` + extra + ` }
  steps:
    s:
      from: in
      group_by: key
      window: { type: tumbling, size: 10ms }
      aggregate: { r: count() }
      emit: changes
      late: { policy: drop }
      to: out
  sinks: { out: { topic: out } }
`
}

func timed(value string) record.Record {
	return record.Record{Key: []byte("k"), Value: []byte(`{"at":` + value + `}`), Timestamp: 1}
}

func TestInvalidTimestamps(t *testing.T) { // X1
	for _, bad := range []string{"-1", "null", "9223372036854775807"} {
		w := single(t, timeJob("fail", ""))
		w.write("in", 0, timed(bad))
		if err := w.tasks[0].step(0); err == nil || !strings.Contains(err.Error(), "invalid_timestamp") {
			t.Errorf("fail, at %s: %v", bad, err)
		}
		for _, policy := range []string{"skip", "dead_letter", "partition_time"} {
			w := single(t, timeJob(policy, ""))
			for _, v := range []string{"9", "5", bad, "10"} {
				w.write("in", 0, timed(v))
			}
			w.settle()
			var got []string
			for _, r := range w.read("out") {
				got = append(got, show(t, r))
			}
			want, letters := "k[0,10)=2 @9; k[10,20)=1 @10", 0
			switch {
			case policy == "dead_letter", policy == "partition_time" && len(bad) > 4: // the future never moves time
				letters = 1
			case policy == "partition_time":
				want = "k[0,10)=3 @9; k[10,20)=1 @10"
			}
			if text := strings.Join(got, "; "); text != want || len(w.read("dlq")) != letters {
				t.Errorf("%s, at %s: %s and %d dead letters; want %s and %d", policy, bad, text, len(w.read("dlq")), want, letters)
			}
			if n := w.tally(record.Dropped, "in", "timestamp_error"); policy == "skip" && n != 1 {
				t.Errorf("skip, at %s: counted %d times", bad, n)
			}
		}
	}
}

func TestPartitionTimeNeedsATime(t *testing.T) { // X1
	w := single(t, timeJob("partition_time", ""))
	w.write("in", 0, timed("-1"))
	if err := w.tasks[0].step(0); err == nil || !strings.Contains(err.Error(), "no record of the partition") {
		t.Errorf("got %v", err)
	}
}

func TestMaxFuture(t *testing.T) {
	w := single(t, timeJob("dead_letter", ", max_future: 1s"))
	w.now = 5000
	for _, v := range []string{"5001", "6001", "6000", "5999"} {
		w.write("in", 0, timed(v))
	}
	w.settle()
	if letters := w.read("dlq"); len(letters) != 1 || string(letters[0].Value) != `{"at":6001}` {
		t.Errorf("dead letters: %v", letters)
	}
	if wm := w.tasks[0].instance.Clock().Watermark(); wm != 6000 {
		t.Errorf("the watermark is %d: the record from the future has moved it", wm)
	}
	if late := w.tally(record.Late, "s", ""); late != 1 {
		t.Errorf("%d late, want the last", late)
	}
}

// A record without a value has a time of its own, if it is one that counts.
func TestANullValueFromTheFutureMovesNoTime(t *testing.T) {
	job := strings.Replace(timeJob("skip", ", max_future: 1s"), "timestamp: value.at", "start: earliest", 1)
	w := single(t, job)
	w.now = 5000
	w.write("in", 0, record.Record{Key: []byte("k"), Timestamp: 5500})
	w.write("in", 0, record.Record{Key: []byte("k"), Timestamp: 50_000})
	w.settle()
	if wm := w.tasks[0].instance.Clock().Watermark(); wm != 5500 {
		t.Errorf("the watermark is %d, want 5500", wm)
	}
	if null, future := w.tally(record.Dropped, "in", "null_value"), w.tally(record.DeadLettered, "in", "timestamp"); null != 1 || future != 1 {
		t.Errorf("%d without value, %d from the future; want one of each", null, future)
	}
}
