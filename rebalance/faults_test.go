package rebalance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"millrace/eos"
	"millrace/record"
	"millrace/store"
	"millrace/task"
)

var errSession = errors.New("the session ended")

// patient looks again and again until a condition of several goroutines holds.
func (b *bench) patient(what string, ok func() bool) {
	b.t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-look.C {
		if time.Now().After(deadline) {
			b.events.mu.Lock()
			defer b.events.mu.Unlock()
			b.t.Fatalf("not in time: %s; states %v, aborted %v, failed %v", what, b.states, b.aborted, b.failed)
		}
	}
}

// failOnce makes a step fail one time.
func failOnce(step string, err error) func(context.Context, string) error {
	var fail sync.Once
	return func(_ context.Context, name string) (result error) {
		if name == step {
			fail.Do(func() { result = err })
		}
		return result
	}
}

// However an epoch fails, and whether the brokers had done what they were asked or not, everything recovers from what they
// say, and the results are exact.
func TestAFailedEpochIsRecoveredFrom(t *testing.T) {
	reactions := map[string]error{"failed": errors.New("connection reset"), "fenced": fmt.Errorf("end transaction: %w", eos.ErrFenced),
		"aborted": fmt.Errorf("commit offsets: %w", eos.ErrLost)}
	for _, step := range []string{"begin", "produce", "produced", "offsets", "offset", "commit", "committed"} {
		for result, err := range reactions {
			t.Run(step+" "+result, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, nil)
				b.assign(0, 1)
				b.put(0, "a", "b")
				b.committedUpTo(0)
				b.set(failOnce(step, err))
				b.put(0, "a")
				b.put(1, "c")
				b.committedUpTo(0, 1)
				b.until(t, "aborted "+result, func() bool { return len(b.aborted) == 1 && b.aborted[0] == result })
				b.put(0, "a")
				b.committedUpTo(0)
				b.exact()
				if b.fences != 2 {
					t.Errorf("fenced %d times", b.fences)
				}
			})
		}
	}
}

// Failures one after the other are paused between, more and more; the first success ends that.
func TestFailuresInARowPause(t *testing.T) {
	b := newBench(t, nil)
	b.assign(0)
	var times []time.Time
	var mu sync.Mutex
	b.set(func(_ context.Context, step string) error {
		mu.Lock()
		defer mu.Unlock()
		if step == "begin" && len(times) < 4 {
			times = append(times, time.Now())
			return errors.New("no")
		}
		return nil
	})
	b.put(0, "a")
	b.committedUpTo(0)
	b.exact()
	mu.Lock()
	defer mu.Unlock()
	for i, least := range []time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond} {
		if pause := times[i+1].Sub(times[i]); pause < least {
			t.Errorf("pause %d was %v, want at least %v", i+1, pause, least)
		}
	}
	b.until(t, "four attempts", func() bool { return b.attempts == 4 })
}

func TestAFailedFenceIsTriedAgain(t *testing.T) {
	b := newBench(t, nil)
	b.set(failOnce("fence", errors.New("coordinator not available")))
	b.put(0, "a")
	b.assign(0)
	b.committedUpTo(0)
	b.exact()
}

// gate lets a test hold a step of the producer, and see that it is reached.
type gate struct {
	step    string
	reached chan struct{}
	pass    chan struct{}
	first   sync.Once
}

func newGate(step string) *gate {
	return &gate{step: step, reached: make(chan struct{}), pass: make(chan struct{})}
}

func (g *gate) on(ctx context.Context, step string) (err error) {
	if step == g.step {
		g.first.Do(func() {
			close(g.reached)
			select {
			case <-g.pass:
			case <-ctx.Done():
				err = ctx.Err()
			}
		})
	}
	return err
}

func (g *gate) await(t *testing.T) {
	t.Helper()
	select {
	case <-g.reached:
	case <-time.After(patience):
		t.Fatalf("%s was not reached", g.step)
	}
}

// heldEpoch puts records of task 0 into an epoch that stops before it commits their offsets.
func (b *bench) heldEpoch(t *testing.T, records ...string) *gate {
	t.Helper()
	g := newGate("offsets")
	b.set(g.on)
	b.put(0, records...)
	b.processed(tp("in", 0))
	b.manager.Hurry()
	g.await(t)
	return g
}

// When the last commit of a revoked task does not come in time, the group is not kept waiting, and the epoch can no longer
// commit: the offsets are the next owner's.
func TestARevokedTasksLateEpochIsDropped(t *testing.T) {
	b := newBench(t, func(o *Options) { o.ReleaseTimeout = 50 * time.Millisecond })
	b.assign(0, 1)
	b.put(0, "a")
	b.put(1, "b")
	b.committedUpTo(0, 1)
	g := b.heldEpoch(t, "a")
	b.assign(1)
	close(g.pass)
	b.until(t, "the epoch is dropped", func() bool { return len(b.aborted) == 1 && b.aborted[0] == "aborted" })
	if b.upToDate(tp("in", 0)) {
		t.Error("the offset of a revoked task was committed")
	}
	b.put(1, "b")
	b.committedUpTo(1)
	b.assign(0, 1)
	b.committedUpTo(0)
	b.exact()
}

// The same, but the task is ours again before the epoch comes to its offsets. In between it may have been somebody else's.
func TestAnEpochFromBeforeARevocationIsDropped(t *testing.T) {
	b := newBench(t, func(o *Options) { o.ReleaseTimeout = 50 * time.Millisecond })
	b.assign(0, 1)
	b.put(0, "a")
	b.committedUpTo(0)
	g := b.heldEpoch(t, "a")
	b.assign(1)
	b.assign(0, 1)
	close(g.pass)
	b.until(t, "the epoch is dropped", func() bool { return len(b.aborted) == 1 })
	b.put(0, "a")
	b.committedUpTo(0)
	b.exact()
}

// A task that fails while an epoch of it is undecided starts again only when that is decided: its offsets may still move.
func TestAFailedTaskWaitsForItsEpoch(t *testing.T) {
	b := newBench(t, nil)
	b.assign(0, 1)
	b.put(0, "a")
	b.committedUpTo(0)
	g := b.heldEpoch(t, "a", "b")
	b.fail(0)
	id := record.TaskID{Partition: 0}
	b.until(t, "the task fails", func() bool { return b.failed[id] == 1 })
	b.await("the task may be tried again", func() bool { return time.Now().After(b.manager.retryAt[id]) })
	b.await("the next look", func() bool { b.manager.schedule(); return true })
	b.await("nothing", func() bool {
		if b.manager.starting[id] != nil || b.manager.running[id] != nil {
			t.Error("the task started although its epoch is undecided")
		}
		return true
	})
	close(g.pass)
	b.put(0, "a")
	b.committedUpTo(0)
	b.exact()
}

// fail makes the input of a task fail, as a fetcher does whose partition is gone.
func (b *bench) fail(partition int32) {
	b.brokers.mu.Lock()
	defer b.brokers.mu.Unlock()
	b.sinks[tp("in", partition)].Fail(errors.New("the partition cannot be read"))
}

// A task that fails is started again after a pause that grows; the others work on and are not started again.
func TestAFailedTaskStopsNobodyElse(t *testing.T) {
	b := newBench(t, nil)
	b.assign(0, 1)
	b.put(0, "a")
	b.put(1, "b")
	b.committedUpTo(0, 1)
	b.restored()
	id := record.TaskID{Partition: 0}
	b.fail(0)
	b.until(t, "the task fails", func() bool { return b.failed[id] == 1 })
	b.put(1, "b")
	b.committedUpTo(1)
	b.await("the task comes back", func() bool { return b.manager.running[id] != nil })
	b.fail(0)
	b.until(t, "the task fails again", func() bool { return b.failed[id] == 2 })
	b.await("the task comes back again", func() bool { return b.manager.running[id] != nil })
	pause := time.Since(b.failedAt[id][1])
	if first := b.failedAt[id][1].Sub(b.failedAt[id][0]); first < time.Second || pause < 2*time.Second {
		t.Errorf("pauses of %v and %v", first, pause)
	}
	b.put(0, "a")
	b.committedUpTo(0)
	b.exact()
	if b.failed[record.TaskID{Partition: 1}] != 0 || len(b.aborted) != 0 || b.fences != 1 {
		t.Errorf("failed %v, aborted %v, fenced %d times", b.failed, b.aborted, b.fences)
	}
	b.await("forgiven", func() bool { return b.manager.failures[id] == 0 })
}

// A restore that began before the task was lost must not become a running task when the task is ours again.
func TestAStartFromBeforeARevocationIsVoid(t *testing.T) {
	for name, interrupt := range map[string]func(b *bench){
		"revoked": func(b *bench) { b.assign(1) },
		"lost":    func(b *bench) { b.manager.Lost(errSession) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.assign(0, 1)
			b.put(0, "a", "b")
			b.committedUpTo(0)
			b.assign(1)
			held, pass := make(chan struct{}, 100), make(chan struct{})
			b.hold(func(_ context.Context, _ record.TopicPartition) error { // it does not even hear that it is to end
				held <- struct{}{}
				<-pass
				return nil
			})
			b.mem.forget()
			b.assign(0, 1)
			<-held // restores, with the offsets as of now
			interrupt(b)
			b.other(0, 3) // another member's work
			b.hold(nil)
			b.assign(0, 1)
			close(pass)
			b.put(0, "c")
			b.committedUpTo(0)
			b.exact()
		})
	}
}

// The same for one that was through before it could be told to end.
func TestAVoidStartIsNotRun(t *testing.T) {
	b := newBench(t, nil)
	id := record.TaskID{Partition: 2}
	o := b.manager.options.Task
	o.CacheBytes = 1 << 20
	k, err := task.Start(t.Context(), id, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.await("the start comes back", func() bool {
		m := b.manager
		m.want, m.fenced = map[record.TaskID]bool{id: true}, true
		a := &attempt{cancel: func() {}, void: true}
		m.starting[id] = a
		m.started(id, a, k, nil)
		if m.running[id] != nil || !m.closing[id] {
			t.Errorf("running %v, closing %v", m.running[id] != nil, m.closing[id])
		}
		return true
	})
	b.await("it starts anew", func() bool { return b.manager.running[id] != nil && b.manager.running[id].task != k })
}

func (b *bench) hold(wait func(context.Context, record.TopicPartition) error) {
	b.brokers.mu.Lock()
	defer b.brokers.mu.Unlock()
	b.wait = wait
}

// forget removes all rows, as a new disk does.
func (e *engines) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.held)
}

// other lets another member own a task for a while: it counts records of its own and commits them.
func (b *bench) other(partition int32, n int) {
	b.t.Helper()
	for range n {
		b.put(partition, "a")
	}
	b.brokers.mu.Lock()
	waiting := b.brokers.wait
	b.brokers.wait = nil
	b.brokers.mu.Unlock()
	o := b.manager.options.Task
	o.Hurry, o.FlushSlots, o.CacheBytes = func() {}, make(chan struct{}, 1), 1<<20
	o.OpenEngine = (&engines{held: map[record.TaskID]*store.Memory{}, inUse: map[record.TaskID]bool{}}).open
	k, err := task.Start(context.Background(), record.TaskID{Partition: partition}, o, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	hand := task.Manual{Task: k}
	for _, r := range k.Readings() {
		b.brokers.mu.Lock()
		r.Sink.Offer(b.read(r.From, r.Next))
		b.brokers.mu.Unlock()
	}
	for worked := true; worked; {
		if worked, err = hand.Step(); err != nil {
			b.t.Fatal(err)
		}
	}
	p, err := hand.Freeze()
	if err != nil || p == nil {
		b.t.Fatal(p, err)
	}
	if _, err := eos.Commit(context.Background(), b.brokers, eos.Epoch{Parts: []eos.Part{*p}, Owned: func() bool { return true }}); err != nil {
		b.t.Fatal(err)
	}
	b.hold(waiting)
}
