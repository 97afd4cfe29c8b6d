package topology_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"millrace/record"
)

// counted adds up the records that the last results of all windows have taken in.
func counted(t fataler, w *world) (n int64) {
	t.Helper()
	last := map[string]int64{}
	for _, r := range rowsOf(t, w, "out") {
		text := r[strings.Index(r, "=")+1 : strings.Index(r, " @")]
		k, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			k = int64(strings.Count(text, "+")) + 1
		}
		last[window(r)] = k
	}
	for _, k := range last {
		n += k
	}
	return n
}

// Tasks that fall silent and come back make records late, and which ones depends on who is first. What does not: each
// record is in its windows' results or was refused by them, and what was refused can be read in the late topic, which
// would be wrong for one that was combined with others on its way.
func TestIdleWritersLoseNothing(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		c := drawWindowing(t, "final", "final_with_corrections", "changes")
		c.fold = c.fold && rapid.Bool().Draw(t, "fold indeed")
		future, watermark := int64(0), ""
		if rapid.Bool().Draw(t, "guarded") {
			future = rapid.Int64Range(1, 30).Draw(t, "max_future")
			watermark = fmt.Sprintf(", max_future: %dms", future)
		}
		upstream := rapid.Int32Range(1, 3).Draw(t, "writers")
		w := newWorld(t, compile(t, dir, shuffleJob(c, watermark)), map[string]int32{"in": upstream, shuffleTopic: rapid.Int32Range(1, 2).Draw(t, "readers")})
		o := newOracle(c)
		for i, e := range drawEvents(t, 60) {
			if e.Value == nil || e.Key == nil {
				continue
			}
			r, plain := event(string(e.Key), fmt.Sprint("v", i), e.Timestamp)
			w.write("in", rapid.Int32Range(0, upstream-1).Draw(t, "partition"), r)
			o.add(plain)
		}
		interleave(t, w, func(k *worker) {
			if k.id.Subtopology == 0 && rapid.IntRange(0, 4).Draw(t, "idle") == 0 {
				k.instance.SetIdle(0)
			}
		}, func(k *worker) {
			if k.id.Subtopology == 0 { // the least time at which the record is not from the future
				w.now = max(w.now, w.topics[k.inputs[0]][k.next[0]].Timestamp-future)
			}
		})
		w.now = 200_000
		for p := range upstream {
			r, _ := event("z", "filtered", 100_000)
			w.write("in", p, r)
		}
		w.settle()
		n, refused, late := counted(t, w), w.tally(record.LateWindow, "s", ""), w.tally(record.Late, "s", "")
		if n+refused != o.entered {
			t.Fatalf("%d counted and %d refused of %d", n, refused, o.entered)
		}
		if seen := len(w.read("late")); int64(seen) != late {
			t.Fatalf("%d records were late, %d are in the late topic", late, seen)
		}
	})
}

func idleWorld(t *testing.T, watermark string) *world {
	t.Helper()
	c := windowing{size: 10, advance: 10, emit: "final"}
	return newWorld(t, compile(t, t.TempDir(), shuffleJob(c, watermark)), map[string]int32{"in": 2})
}

func put(w *world, partition int32, group, value string, at int64) {
	r, _ := event(group, value, at)
	w.write("in", partition, r)
}

func TestASilentWriterHoldsTimeBackUntilItIsIdle(t *testing.T) {
	w := idleWorld(t, "")
	put(w, 0, "a", "v1", 5)
	put(w, 0, "a", "v2", 25)
	put(w, 1, "b", "v3", 6)
	w.settle()
	if rows := rowsOf(t, w, "out"); len(rows) != 0 {
		t.Fatalf("windows closed although partition 1 is at 6: %v", rows)
	}
	w.tasks[1].instance.SetIdle(0)
	w.settle()
	if rows := fmt.Sprint(rowsOf(t, w, "out")); rows != "[a[0,10)=1 @5 b[0,10)=1 @6]" {
		t.Fatalf("after partition 1 is idle: %s", rows)
	}
	put(w, 1, "b", "v4", 7) // it comes back behind
	put(w, 1, "b", "v5", 22)
	w.settle()
	if late := w.read("late"); len(late) != 1 || string(late[0].Key) != "v4" {
		t.Fatalf("late records: %v", late)
	}
	put(w, 0, "a", "v6", 45)
	w.settle()
	if rows := w.read("out")[2:]; len(rows) != 0 {
		t.Fatalf("windows closed although partition 1 is back and at 22: %v", rows)
	}
	put(w, 1, "b", "v7", 45)
	w.settle()
	if rows := fmt.Sprint(rowsOf(t, w, "out")[2:]); rows != "[a[20,30)=1 @25 b[20,30)=1 @22]" {
		t.Fatalf("after both are at 45: %s", rows)
	}
}

// partials counts the records of the repartition topic that were combined.
func partials(w *world) (n int) {
	for _, r := range w.read(shuffleTopic) {
		if len(r.Value) > 1 && r.Value[1] == 1 {
			n++
		}
	}
	return n
}

// A task that was idle combines rows again once it is as far as the others can have come meanwhile.
func TestAWriterThatWakesSendsRowsAlone(t *testing.T) {
	w := idleWorld(t, ", max_future: 100ms")
	w.now = 1000
	put(w, 1, "b", "v1", 1000)
	w.settle()
	if n := partials(w); n != 1 {
		t.Fatalf("%d combined records before the idleness, want 1", n)
	}
	w.tasks[1].instance.SetIdle(0)
	w.settle()
	for _, at := range []int64{1010, 1030, 1090} {
		w.now = at
		put(w, 1, "b", "v2", at)
		w.tasks[1].restart() // the guard outlives it
		w.settle()
	}
	if n := partials(w); n != 1 {
		t.Fatalf("rows were combined although the others may be further on: %d", n)
	}
	w.now = 1400
	put(w, 1, "b", "v3", 1400)
	put(w, 1, "b", "v4", 1401)
	w.settle()
	if n := partials(w); n < 2 {
		t.Fatalf("rows are never combined again")
	}
}

// The others go on until the epoch that tells them of the waking is committed, and not only until it ends.
func TestAWakingWriterIsLateUntilItsEpochIsCommitted(t *testing.T) {
	w := idleWorld(t, ", max_future: 100ms")
	w.now = 1000
	put(w, 1, "b", "v1", 1000)
	w.settle()
	other, waking := w.tasks[0], w.tasks[1]
	waking.instance.SetIdle(0)
	w.settle()
	put(w, 1, "b", "v2", 1000)
	waking.drain()
	waking.freeze()
	w.now = 1300
	put(w, 0, "a", "v3", 1300)
	other.drain()
	other.commit()
	for _, at := range []int64{1150, 1250} { // beyond what was accepted when the epoch ended
		put(w, 1, "b", fmt.Sprint(at), at)
		waking.drain()
		waking.commit()
	}
	w.settle()
	if late := w.tally(record.Late, "s", ""); late != 3 || len(w.read("late")) != 3 {
		t.Errorf("%d records were late, and the late topic has %v", late, w.read("late"))
	}
}

// A task that falls silent in the epoch of its last record still tells how far it has come.
func TestTheLastTimeBeforeIdlenessCounts(t *testing.T) {
	w := newWorld(t, compile(t, t.TempDir(), shuffleJob(windowing{size: 10, advance: 10, emit: "final"}, "")), nil)
	put(w, 0, "a", "v1", 5)
	put(w, 0, "a", "v2", 25)
	w.tasks[0].drain()
	w.tasks[0].instance.SetIdle(0)
	w.settle()
	if rows := fmt.Sprint(rowsOf(t, w, "out")); rows != "[a[0,10)=1 @5]" {
		t.Errorf("got %s", rows)
	}
}

func TestIdlenessOutlivesARestart(t *testing.T) {
	w := idleWorld(t, ", max_future: 100ms")
	w.tasks[1].instance.SetIdle(0) // before it ever had a record
	w.settle()
	w.tasks[1].restart()
	if !w.tasks[1].instance.Clock().AllIdle() {
		t.Error("the clock has forgotten that its input is idle, which the tasks behind have been told")
	}
}
