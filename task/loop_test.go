package task

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/record"
	"millrace/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// windowJob closes windows of 10 ms.
func windowJob(watermark string) string {
	return `topology:
  sources: { in: { topic: in, format: string, key: key, watermark: { max_out_of_orderness: 0s` + watermark + ` } } }
  steps:
    counts:
      from: in
      group_by: key
      window: { type: tumbling, size: 10ms }
      aggregate: { n: count() }
      emit: final
      late: { policy: drop }
      select: { n: value.n }
      to: out
  sinks: { out: { topic: out } }
`
}

// An input is idle after its timeout without a record, counted from its last one, once its log is read to the end.
func TestSilenceMakesAnInputIdle(t *testing.T) {
	b := newBench(t, windowJob(", idle_timeout: 30s"))
	b.input("a 5")
	h := b.start(nil)
	idle := func() bool { return h.instance.IsIdle(0) }
	tick := func(by time.Duration) {
		b.now = b.now.Add(by)
		if err := h.Tick(); err != nil {
			t.Fatal(err)
		}
	}
	if tick(time.Minute); idle() {
		t.Fatal("idle before the broker has answered")
	}
	h.offer()
	if tick(time.Minute); idle() {
		t.Fatal("idle with a batch waiting")
	}
	h.work()
	if tick(30*time.Second - 1); idle() {
		t.Fatal("idle before the timeout")
	}
	h.epoch()
	if tick(1); !idle() {
		t.Fatal("not idle after the timeout")
	}
	if p, err := h.Freeze(); p == nil || err != nil {
		t.Fatalf("idleness is a decision that must be committed: %v %v", p, err)
	} else {
		h.Committed(h.commit(p))
	}
	b.input("a 6")
	in := h.Readings()[0]
	in.Sink.Offer(record.Batch{From: in.From, Records: b.logs[in.From][1:], Next: 2, End: 2})
	h.work()
	if idle() {
		t.Error("idle although a record came")
	}
}

// An input whose end is known but cannot be read yet, because of an open transaction, is not silent; silence begins when it
// is read.
func TestAnOpenTransactionIsNoSilence(t *testing.T) {
	b := newBench(t, windowJob(", idle_timeout: 30s"))
	b.input("a 5")
	h := b.start(nil)
	h.offer()
	h.work()
	in := h.Readings()[0]
	in.Sink.Offer(record.Batch{From: in.From, Next: 1, End: 4})
	h.work()
	for _, c := range []struct {
		by   time.Duration
		idle bool
	}{{time.Minute, false}, {0, false}, {30*time.Second - 1, false}, {1, true}} {
		b.now = b.now.Add(c.by)
		if err := h.Tick(); err != nil || h.instance.IsIdle(0) != c.idle {
			t.Errorf("after %v: idle %v, %v", c.by, h.instance.IsIdle(0), err)
		}
		if c.by == time.Minute { // it was aborted: offsets without a record
			in.Sink.Offer(record.Batch{From: in.From, Next: 4, End: 4})
			h.work()
		}
	}
}

func TestWithoutATimeoutAnInputIsNeverIdle(t *testing.T) {
	b := newBench(t, windowJob(""))
	b.input("a 5")
	h := b.start(nil)
	h.offer()
	h.work()
	b.now = b.now.Add(1000 * time.Hour)
	if err := h.Tick(); err != nil || h.instance.IsIdle(0) {
		t.Errorf("idle %v, %v", h.instance.IsIdle(0), err)
	}
}

// With advance_on_idle the wall clock closes windows when all is silent, and stays as far behind as events may.
func TestTheWallClockTakesOverWhenAllIsIdle(t *testing.T) {
	job := strings.Replace(windowJob(", idle_timeout: 30s, advance_on_idle: true"), "max_out_of_orderness: 0s", "max_out_of_orderness: 1s", 1)
	b := newBench(t, job)
	b.input("a " + fmt.Sprint(b.now.UnixMilli()))
	h := b.start(nil)
	h.offer()
	h.work()
	b.now = b.now.Add(29 * time.Second)
	if err := h.Tick(); err != nil {
		t.Fatal(err)
	}
	h.work()
	h.epoch()
	if got := b.results("out"); got != "" {
		t.Fatalf("closed before the timeout: %s", got)
	}
	b.now = b.now.Add(time.Second)
	if err := h.Tick(); err != nil {
		t.Fatal(err)
	}
	if want := b.now.Add(-time.Second).UnixMilli(); h.Watermark() != want {
		t.Errorf("time is %d, want %d", h.Watermark(), want)
	}
	h.work()
	h.epoch()
	if got := b.results("out"); got != `a={"n":1}` {
		t.Errorf("results %q", got)
	}
	h = b.start(nil)
	if want := b.now.Add(-time.Second).UnixMilli(); h.Watermark() != want {
		t.Errorf("after a restart time is %d, want %d: windows that were closed would open again", h.Watermark(), want)
	}
}

// A batch that only tells where the log ends must not hide the one behind it.
func TestAnEmptyAnswerHidesNothing(t *testing.T) {
	b := newBench(t, countJob(""))
	b.input("a 1")
	h := b.start(nil)
	in := h.Readings()[0]
	in.Sink.Offer(record.Batch{From: in.From, End: 1})
	h.offer()
	if worked, err := h.Step(); !worked || err != nil {
		t.Fatalf("worked %v, %v: the loop would wait for something else to happen", worked, err)
	}
	if h.records != 1 {
		t.Errorf("%d records", h.records)
	}
}

// Gaps at the end of a log move the position, and that is worth an epoch.
func TestGapsMoveThePosition(t *testing.T) {
	b := newBench(t, countJob(""))
	h := b.start(nil)
	in := h.Readings()[0]
	in.Sink.Offer(record.Batch{From: in.From, Next: 4, End: 4})
	h.work()
	h.epoch()
	if got := b.offsets[in.From].Next; got != 4 {
		t.Errorf("committed %d", got)
	}
}

func TestAFullEpochAsksForItsEndOnce(t *testing.T) {
	b := newBench(t, countJob(""))
	b.options.EpochBytes = 3000
	for i := range 3000 {
		b.input(fmt.Sprintf("key-%d 1", i))
	}
	h := b.start(nil)
	h.offer()
	h.work()
	if h.records == 0 || h.records == 3000 || b.hurried != 1 {
		t.Fatalf("%d records, hurried %d times", h.records, b.hurried)
	}
	if worked, err := h.Step(); worked || err != nil || b.hurried != 1 {
		t.Errorf("a full task works on: %v %v, hurried %d times", worked, err, b.hurried)
	}
	if h.waitsFor() != blocked {
		t.Error("a full task with input does not count as held up")
	}
	for n := 0; n < 100 && b.offsets[tp("in", 0)].Next < 3000; n++ {
		h.epoch()
		h.work()
	}
	if got := b.offsets[tp("in", 0)].Next; got != 3000 || b.hurried < 2 {
		t.Errorf("at %d after its epochs, hurried %d times", got, b.hurried)
	}
	if h.waitsFor() != idle {
		t.Error("a task without input does not count as idle")
	}
}

// Flushes of a process go one behind the other; whoever ends gives its slot back.
func TestFlushesTakeTurns(t *testing.T) {
	b := newBench(t, countJob(""))
	b.input("a 1")
	h := b.start(nil)
	h.round()
	b.now = b.now.Add(b.options.FlushInterval)
	b.options.FlushSlots <- struct{}{} // another task flushes
	if err := h.Tick(); err != nil || h.state.Flushing() {
		t.Fatalf("flushing %v while another does, %v", h.state.Flushing(), err)
	}
	<-b.options.FlushSlots
	if err := h.Tick(); err != nil || !h.state.Flushing() || len(b.options.FlushSlots) != 1 {
		t.Fatalf("flushing %v, %d slots taken, %v", h.state.Flushing(), len(b.options.FlushSlots), err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for h.state.Flushing() && time.Now().Before(deadline) {
		if err := h.Tick(); err != nil {
			t.Fatal(err)
		}
	}
	if h.state.Flushing() || len(b.options.FlushSlots) != 0 || b.flushed != 1 {
		t.Errorf("flushing %v, %d slots taken, %d flushes told", h.state.Flushing(), len(b.options.FlushSlots), b.flushed)
	}
}

// run runs the task as production does; stop ends it and waits for it.
func run(t *testing.T, k *Task) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go k.Run(ctx)
	stop = func() {
		cancel()
		<-k.Done()
	}
	t.Cleanup(stop)
	return stop
}

// await waits for a condition that the task's goroutine brings about, by asking the task.
func await(t *testing.T, k *Task, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for done := false; !done; {
		if err := k.do(func() { done = ok() }); err != nil {
			t.Fatalf("%s: %v, %v", what, err, k.Err())
		}
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestRunWorksAndAnswers(t *testing.T) {
	b := newBench(t, countJob(""))
	b.input("a 1", "a 2")
	h := b.start(nil)
	stop := run(t, h.Task)
	if s, err := h.Status(); err != nil || s.Inputs[0].Lag != 0 || s.Inputs[0].Source != "in" {
		t.Errorf("status %+v, %v", s, err)
	}
	h.offer()
	await(t, h.Task, "two records", func() bool { return h.records == 2 })
	p, records, err := h.Task.Freeze()
	if err != nil || records != 2 || p == nil {
		t.Fatal(p, records, err)
	}
	if err := h.Task.Committed(h.commit(p)); err != nil {
		t.Fatal(err)
	}
	now := b.options.Clock()
	if err := h.do(func() { h.options.Clock = func() time.Time { return now.Add(3 * time.Second) } }); err != nil {
		t.Fatal(err)
	}
	s, err := h.Status()
	if err == nil && (s.Work.Busy+s.Work.Backpressured > 3*time.Second || s.Work.Task != h.id || len(s.Work.Windows) != 0) {
		t.Errorf("work %+v", s.Work)
	}
	if err != nil || len(s.Stores) != 1 || s.Stores[0].Store != "counts" || s.Stores[0].Keys != 1 || s.Stores[0].Bytes == 0 {
		t.Errorf("status %+v, %v", s, err)
	}
	stop()
	if _, _, err := h.Task.Freeze(); !errors.Is(err, ErrEnded) {
		t.Errorf("a stopped task answers %v", err)
	}
	if err := h.Task.Committed(nil); !errors.Is(err, ErrEnded) {
		t.Errorf("a stopped task answers %v", err)
	}
	if h.Task.Err() != nil || h.TakeState() == nil || h.TakeState() != nil {
		t.Errorf("stopped with %v", h.Task.Err())
	}
}

// Whatever fails ends Run, says which task it was, and gives the flush's slot back.
func TestRunEndsWithWhatFails(t *testing.T) {
	gone := errors.New("offset 5 is gone")
	for name, fail := range map[string]func(h *hand){
		"the input": func(h *hand) { h.Readings()[0].Sink.Fail(gone) },
		"a record": func(h *hand) {
			in := h.Readings()[0]
			in.Sink.Offer(record.Batch{From: in.From, Records: []record.Record{{Key: []byte("k"), Value: []byte("v"), Timestamp: -1}}, Next: 1, End: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, strings.Replace(countJob(""), "key: key", "key: key, invalid_timestamp: fail", 1))
			h := b.start(nil)
			run(t, h.Task)
			fail(h)
			<-h.Done()
			if err := h.Task.Err(); err == nil || !strings.Contains(err.Error(), "task 0_0") {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

func TestAFailedFlushEndsTheTask(t *testing.T) {
	b := newBench(t, countJob(""))
	b.engine = &unwritable{closing: closing{Engine: store.NewMemory()}}
	b.input("a 1")
	h := b.start(nil)
	h.round()
	b.now = b.now.Add(b.options.FlushInterval)
	if err := h.Tick(); err != nil {
		t.Fatal(err)
	}
	if err := h.Tick(); err == nil { // the flush has its own goroutine
		deadline := time.Now().Add(10 * time.Second)
		for err == nil && time.Now().Before(deadline) {
			err = h.Tick()
		}
		if !errors.Is(err, errFull) || !strings.Contains(err.Error(), "0_0") {
			t.Fatalf("error %v", err)
		}
	}
	if err := CloseState(b.id, h.TakeState(), b.options); !errors.Is(err, errFull) {
		t.Errorf("closing says %v", err)
	}
}

// A record of a simple count costs no object on the heap, the loop included.
func TestARecordOfACountAllocatesNothing(t *testing.T) {
	b := newBench(t, countJob(""))
	b.options.EpochBytes = 1 << 30
	const records = 10_000
	batch := record.Batch{From: tp("in", 0), Next: records, End: records}
	for i := range records {
		batch.Records = append(batch.Records, record.Record{Key: fmt.Appendf(nil, "key-%d", i%200), Value: []byte("v"), Offset: record.Offset(i), Timestamp: int64(i)})
	}
	h := b.start(nil)
	sink := h.Readings()[0].Sink
	round := func() {
		sink.Offer(batch)
		h.work()
		p, err := h.Freeze()
		if err != nil || p == nil {
			t.Fatal(p, err)
		}
		h.Committed(nil)
	}
	round()
	round()
	if n := testing.AllocsPerRun(5, round) / records; n > 0.01 {
		t.Errorf("%.4f heap objects a record", n)
	}
}
