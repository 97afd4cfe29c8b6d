package rebalance

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/record"
)

// A drain commits what has been done, flushes and closes every state.
func TestADrainLeavesNothingUndone(t *testing.T) {
	b := newBench(t, nil)
	b.assign(0, 1, 2, 3)
	for p := range int32(partitions) {
		b.put(p, "a"+string('0'+p))
	}
	for p := range int32(partitions) {
		b.processed(tp("in", p))
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	for p := range int32(partitions) {
		if !b.upToDate(tp("in", p)) {
			t.Errorf("partition %d was not committed", p)
		}
		id := record.TaskID{Partition: p}
		c, ok, err := b.mem.held[id].Checkpoint()
		if err != nil || !ok || c.Positions[0] != record.Offset(len(b.logs[tp("app-counts-changelog", p)])-1) { // but for the marker
			t.Errorf("the state of %s is at %v %v %v", id, c.Positions, ok, err)
		}
		if b.mem.inUse[id] {
			t.Errorf("the state of %s is still open", id)
		}
	}
	b.exact()
}

// Whoever calls after the end is not kept waiting.
func TestAnEndedManagerAnswers(t *testing.T) {
	b := newBench(t, nil)
	b.assign(0)
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	b.assign(0, 1)
	b.manager.Lost(errSession)
	b.manager.Hurry()
}

func TestADrainWithoutTasksIsQuick(t *testing.T) {
	b := newBench(t, nil)
	begin := time.Now()
	if err := b.stop(); err != nil || time.Since(begin) > patience/4 {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// A drain that cannot commit ends with its deadline and says so; what was not committed is done again.
func TestADrainEndsWithItsDeadline(t *testing.T) {
	b := newBench(t, nil)
	b.manager.options.ReleaseTimeout = 10 * patience
	b.assign(0)
	b.put(0, "a")
	b.processed(tp("in", 0))
	g := newGate("produce")
	b.set(g.on)
	err := b.stopWithin(100 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "shutdown_timeout") {
		t.Errorf("ended with %v", err)
	}
	if b.upToDate(tp("in", 0)) {
		t.Error("the epoch was committed")
	}
}

// stopWithin drains a manager with another deadline than its bench has: it hands it the end as an event.
func (b *bench) stopWithin(deadline time.Duration) error {
	result := make(chan error, 1)
	b.manager.send(func() { result <- b.manager.drain(deadline) })
	return <-result
}

// A drain does not wait for restores: they begin again at the next start.
func TestADrainBreaksStartsOff(t *testing.T) {
	b := newBench(t, nil)
	b.assign(0)
	b.put(0, "a")
	b.committedUpTo(0)
	b.assign()
	b.mem.forget()
	held := make(chan struct{}, 1)
	b.hold(func(ctx context.Context, _ record.TopicPartition) error {
		held <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	b.assign(0)
	<-held
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	if b.mem.inUse[record.TaskID{}] {
		t.Error("the state is still open")
	}
	if len(b.failed) != 0 {
		t.Errorf("failed %v: a start that was broken off is no failure", b.failed)
	}
}

// When a task goes to another member while the last epoch is under way, that epoch must not commit its offsets.
func TestADrainGivesWayToARebalance(t *testing.T) {
	b := newBench(t, nil)
	b.assign(0, 1)
	b.put(0, "a")
	b.committedUpTo(0)
	g := newGate("offsets")
	b.set(g.on)
	b.put(0, "a")
	b.processed(tp("in", 0))
	ended := make(chan error, 1)
	go func() { ended <- b.stop() }()
	g.await(t)
	b.assign(1) // returns at once: the group goes on, and gives the task to somebody else
	close(g.pass)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if b.upToDate(tp("in", 0)) {
		t.Error("the offset of a task that is somebody else's was committed")
	}
}

// While the disk is nearly full nothing works; with room again everything goes on.
func TestAFullDiskStopsTheWork(t *testing.T) {
	var free atomic.Int64
	free.Store(1000)
	b := newBench(t, func(o *Options) {
		o.FreeBytes = func() (int64, error) { return free.Load(), nil }
		o.MinFree = 100
	})
	b.assign(0, 1)
	b.put(0, "a")
	b.committedUpTo(0)
	free.Store(99)
	b.until(t, "warned", func() bool { return len(b.warned) == 1 && b.warned[0] == "MR3001" })
	b.await("stopped", func() bool { return len(b.manager.running) == 0 && len(b.manager.closing) == 0 })
	b.put(0, "a")
	free.Store(110) // not above the margin
	b.await("a look", func() bool { b.manager.look(); return true })
	if got := b.tasksNow(); len(got) != 0 {
		t.Errorf("%v work with hardly more room", got)
	}
	free.Store(111)
	b.committedUpTo(0)
	b.exact()
}
