package task

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"millrace/changelog"
	"millrace/record"
	"millrace/store"
)

func TestAnEpochCarriesRowsProgressAndOffsets(t *testing.T) {
	b := newBench(t, countJob(""))
	b.id.Partition = 2
	b.input("a 5", "b 7", "a 9")
	h := b.start(nil)
	h.offer()
	h.work()
	p, err := h.Freeze()
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	if p.Task != b.id || len(p.Offsets) != 1 || p.Offsets[0].TopicPartition != tp("in", 2) || p.Offsets[0].Next != 3 || p.Offsets[0].Metadata != "" {
		t.Errorf("part of %v with offsets %+v", p.Task, p.Offsets)
	}
	if len(p.Changelogs) != 1 || p.Changelogs[0].To != tp("app-counts-changelog", 2) || p.Changelogs[0].Count != 3 {
		t.Fatalf("changelogs %+v", p.Changelogs)
	}
	ends := h.commit(p)
	h.Committed(ends)
	written := b.logs[tp("app-counts-changelog", 2)]
	last, err := changelog.ParseProgress(written[len(written)-1].Value)
	if err != nil {
		t.Fatalf("the last record of an epoch is no progress record: %v", err)
	}
	if last.Task != "0_2" || last.StoreID != "first" || last.Epoch != 1 || last.TransactionalID != "app-1" || last.Fingerprints["counts"] != b.plan.Fingerprint("counts") ||
		len(last.Inputs) != 1 || last.Inputs[0] != (changelog.InputOffset{Topic: "in", Partition: 2, Next: 3}) || len(last.Clock) == 0 {
		t.Errorf("progress %+v", last)
	}
	for _, r := range written {
		if r.Timestamp != b.now.UnixMilli() {
			t.Errorf("a changelog record at %d, written at %d", r.Timestamp, b.now.UnixMilli())
		}
	}
	if got := b.results("out"); got != `a={"n":2} b={"n":1}` {
		t.Errorf("results %s", got)
	}
}

func TestNothingDoneIsNoEpoch(t *testing.T) {
	b := newBench(t, countJob(""))
	b.input("a 5")
	h := b.start(nil)
	if p, err := h.Freeze(); p != nil || err != nil {
		t.Errorf("an epoch of nothing: %+v %v", p, err)
	}
	h.round()
	if p, err := h.Freeze(); p != nil || err != nil {
		t.Errorf("an epoch after everything was committed: %+v %v", p, err)
	}
}

// While one epoch is undecided the next one grows, and sees the rows of the first.
func TestAnEpochGrowsWhileTheOneBeforeIsUndecided(t *testing.T) {
	b := newBench(t, countJob(""))
	b.input("a 1", "a 2")
	h := b.start(nil)
	h.offer()
	h.work()
	first, err := h.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	b.input("a 3", "b 4")
	in := h.Readings()[0]
	in.Sink.Offer(record.Batch{From: in.From, Records: b.logs[in.From][2:], Next: 4, End: 4})
	h.work()
	h.Committed(h.commit(first))
	if got := b.results("out"); got != `a={"n":2}` {
		t.Errorf("the first epoch wrote %s", got)
	}
	h.epoch()
	if got := b.results("out"); got != `a={"n":3} b={"n":1}` {
		t.Errorf("the second one made it %s", got)
	}
	b.input("c 5")
	in.Sink.Offer(record.Batch{From: in.From, Records: b.logs[in.From][4:], Next: 5, End: 5})
	h.work()
	h.epoch()
	n := 0
	for p := range int32(4) {
		n += len(b.logs[tp("out", p)])
	}
	if n != 4 {
		t.Errorf("%d results of three epochs, want 4: outputs are written once", n)
	}
	if b.offsets[tp("in", 0)].Next != 5 {
		t.Errorf("offset %d", b.offsets[tp("in", 0)].Next)
	}
}

// An epoch whose outcome is a failure is dropped with everything behind it; a start on the kept state goes on from what the
// brokers say, whichever way it was.
func TestAKeptStateGoesOnFromWhatTheBrokersSay(t *testing.T) {
	for _, committed := range []bool{false, true} {
		b := newBench(t, countJob(""))
		b.input("a 1", "b 2")
		h := b.start(nil)
		h.round()
		b.input("a 3")
		h = b.restart(h)
		h.offer()
		h.work()
		p, err := h.Freeze()
		if err != nil {
			t.Fatal(err)
		}
		if committed { // and the answer was lost on its way
			h.commit(p)
		}
		b.told = nil
		h = b.restart(h)
		if want := "counts 3-3 reused true"; !committed && b.told[0] != want {
			t.Errorf("restored %q, want %q", b.told[0], want)
		}
		if want := "counts 3-5 reused true"; committed && b.told[0] != want {
			t.Errorf("restored %q, want %q", b.told[0], want)
		}
		h.round()
		if got := b.results("out"); got != `a={"n":2} b={"n":1}` {
			t.Errorf("committed %v: %s", committed, got)
		}
	}
}

// restart starts the task again on the state that it had in this process.
func (b *bench) restart(h *hand) *hand {
	b.Helper()
	return b.start(h.TakeState())
}

// A crash forgets everything that was not flushed; the changelog brings it back.
func TestACrashForgetsNothing(t *testing.T) {
	b := newBench(t, countJob(""))
	for round := range 3 {
		b.input("a 1", "b 2")
		h := b.start(nil)
		h.round()
		if round == 1 {
			if err := CloseState(b.id, h.TakeState(), b.options); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := b.results("out"); got != `a={"n":3} b={"n":3}` {
		t.Error(got)
	}
	if b.flushed != 1 {
		t.Errorf("%d flushes told", b.flushed)
	}
	if b.opened != 0 {
		t.Errorf("%d changelog readers stay open", b.opened)
	}
}

// A task without a store keeps its time beside its offsets, where the tasks behind its repartition topic depend on it.
func TestATaskWithoutStoresKeepsItsTimeInTheOffsets(t *testing.T) {
	b := newBench(t, `topology:
  sources: { in: { topic: in, format: string, key: key } }
  steps:
    counts: { from: in, group_by: value, window: { type: tumbling, size: 10ms }, aggregate: { n: count() }, emit: final, late: { policy: drop }, to: out }
  sinks: { out: { topic: out } }
`)
	if len(b.plan.Subtopologies[0].Stores) != 0 {
		t.Fatal("the plan has its store in the first subtopology")
	}
	b.input("a 500")
	h := b.start(nil)
	h.round()
	note := b.offsets[tp("in", 0)].Metadata
	if clock, err := base64.RawStdEncoding.DecodeString(note); note == "" || err != nil || len(clock) == 0 {
		t.Fatalf("metadata %q: %v", note, err)
	}
	h = b.start(nil)
	if w := h.Watermark(); w != 500 {
		t.Errorf("time is %d after a restart, was 500", w)
	}
	if p, err := h.Freeze(); p != nil || err != nil {
		t.Errorf("an epoch of nothing after a restart: %+v %v", p, err)
	}
	b.offsets[tp("in", 0)] = record.Committed{Next: 1, Metadata: "AAAA"}
	if _, err := Start(t.Context(), b.id, b.options, nil); err == nil || !strings.Contains(err.Error(), "in-0") {
		t.Errorf("a clock of nonsense: %v", err)
	}
	b.offsets[tp("in", 0)] = record.Committed{Next: 1, Metadata: "written by another tool"}
	if h = b.start(nil); h.Watermark() != record.NoTime {
		t.Error("another tool's metadata was read as time")
	}
}

// A start that fails closes what it had opened; the state that it was handed as well.
func TestAFailedStartClosesTheState(t *testing.T) {
	b := newBench(t, countJob(""))
	closed := &closing{Engine: store.NewMemory()}
	b.engine = closed
	b.fail = errors.New("coordinator not available")
	if _, err := Start(t.Context(), b.id, b.options, nil); !errors.Is(err, b.fail) || closed.times != 0 {
		t.Errorf("%v, closed %d times before it was opened", err, closed.times)
	}
	b.fail = nil
	h := b.start(nil)
	b.fail = errors.New("coordinator not available")
	if _, err := Start(t.Context(), b.id, b.options, h.TakeState()); !errors.Is(err, b.fail) || closed.times != 1 {
		t.Errorf("%v, closed %d times", err, closed.times)
	}
	b.fail = nil
	closed.bad = errors.New("bad block")
	if _, err := Start(t.Context(), b.id, b.options, nil); !errors.Is(err, closed.bad) || closed.times != 2 {
		t.Errorf("%v, closed %d times: its lock would keep the next start out", err, closed.times)
	}
	closed.bad = nil
	b.logs[tp("app-counts-changelog", 0)] = []record.Record{{Key: []byte{77}}}
	if _, err := Start(t.Context(), b.id, b.options, nil); !errors.Is(err, changelog.ErrFormat) || closed.times != 3 || !strings.Contains(err.Error(), "0_0") {
		t.Errorf("%v, closed %d times", err, closed.times)
	}
}

// closing counts how often it is closed.
type closing struct {
	store.Engine
	times int
	bad   error
}

func (c *closing) Close() error { c.times++; return nil }
func (c *closing) Checkpoint() (store.Checkpoint, bool, error) {
	return store.Checkpoint{}, false, c.bad
}

func TestAStateThatCannotBeFlushedIsClosedAllTheSame(t *testing.T) {
	b := newBench(t, countJob(""))
	broken := &unwritable{closing: closing{Engine: store.NewMemory()}}
	b.engine = broken
	b.input("a 1")
	h := b.start(nil)
	h.round()
	if err := CloseState(b.id, h.TakeState(), b.options); !errors.Is(err, errFull) || broken.times != 1 {
		t.Errorf("%v, closed %d times", err, broken.times)
	}
	if err := CloseState(b.id, nil, b.options); err != nil {
		t.Error(err)
	}
}

var errFull = errors.New("no space left on device")

type unwritable struct{ closing }

func (*unwritable) Flush([]store.Row, [][]byte, store.Checkpoint) error { return errFull }
