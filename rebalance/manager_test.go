package rebalance

import (
	"slices"
	"strings"
	"testing"

	"millrace/record"
)

func TestAssignedTasksWorkAndCommit(t *testing.T) {
	b := newBench(t, nil)
	b.put(0, "a", "b", "a")
	b.put(3, "c")
	b.assign(0, 1, 2, 3)
	b.until(t, "ready", func() bool { return b.ready == 1 })
	b.committedUpTo(0, 3)
	b.put(1, "d", "d")
	b.put(0, "a")
	b.committedUpTo(0, 1)
	b.exact()
	b.until(t, "counted", func() bool { return b.records == 7 })
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	b.until(t, "drained", func() bool { return b.draining })
	if got := b.states[len(b.states)-1]; got != "draining" || !slices.Contains(b.states, "running") {
		t.Errorf("states %v", b.states)
	}
	if b.fences != 1 || len(b.aborted) != 0 {
		t.Errorf("fenced %d times, aborted %v", b.fences, b.aborted)
	}
}

// What an epoch reports is what it did.
func TestAnEpochIsReported(t *testing.T) {
	b := newBench(t, nil)
	b.assign(0, 1)
	b.until(t, "ready", func() bool { return b.ready == 1 })
	b.put(0, "a", "b")
	b.committedUpTo(0)
	b.until(t, "reported", func() bool { return b.records == 2 })
	var outputs, rows int64
	for _, s := range b.epochs {
		outputs += s.Outputs
		for _, w := range s.Changelog {
			if w.Store != "counts" {
				t.Errorf("store %s", w.Store)
			}
			rows += w.Records
		}
		if s.Epoch == 0 || s.Bytes == 0 || len(s.Tallies) == 0 || s.Total < s.Produce {
			t.Errorf("report %+v", s)
		}
	}
	if outputs != 2 || rows < 3 {
		t.Errorf("%d outputs, %d rows", outputs, rows)
	}
}

// No start is forgotten when there are more tasks than may start at a time, and revoked ones do not come back.
func TestEveryTaskStartsInItsTurn(t *testing.T) {
	b := newBench(t, nil)
	for p := range int32(partitions) {
		b.put(p, "x"+string('0'+p))
	}
	b.assign(0, 1, 2, 3)
	b.committedUpTo(0, 1, 2, 3)
	b.assign()
	if got := b.tasksNow(); len(got) != 0 {
		t.Errorf("tasks %v run that are not ours", got)
	}
	b.until(t, "ready without a task", func() bool { return b.ready == 2 })
	b.assign(2)
	b.until(t, "ready with one", func() bool { return b.ready == 3 })
	b.put(2, "x2")
	b.committedUpTo(2)
	b.exact()
}

// tasksNow lists the running tasks.
func (b *bench) tasksNow() (ids []string) {
	done := make(chan struct{})
	if b.manager.send(func() {
		for _, id := range b.manager.tasks() {
			ids = append(ids, id.String())
		}
		close(done)
	}) {
		<-done
	}
	return ids
}

// A task that is given up commits what it has done first; the next owner finds it.
func TestRevokedTasksCommitFirst(t *testing.T) {
	b := newBench(t, nil)
	b.assign(0, 1)
	b.until(t, "ready", func() bool { return b.ready == 1 })
	b.put(0, "a", "a")
	b.put(1, "b")
	b.processed(tp("in", 0))
	b.assign(1)
	if !b.upToDate(tp("in", 0)) {
		t.Fatal("the revoked task's work was not committed when the group went on")
	}
	b.until(t, "revoked", func() bool { return slices.Equal(b.revoked, []string{"0_0"}) })
	b.committedUpTo(1)
	b.assign(0, 1)
	b.put(0, "a")
	b.committedUpTo(0)
	b.exact()
	if len(b.aborted) != 0 {
		t.Errorf("aborted %v", b.aborted)
	}
}

// processed waits until the task of an input has done all that is in its log.
func (b *bench) processed(p record.TopicPartition) {
	b.t.Helper()
	b.await("processed "+p.String(), func() bool {
		for _, w := range b.manager.running {
			s, err := w.task.Status()
			if err != nil {
				return false
			}
			for _, in := range s.Inputs {
				if in.Topic == p.Topic && in.Partition == p.Partition {
					b.brokers.mu.Lock()
					f := b.sinks[p]
					given := f != nil && f.next == record.Offset(len(b.logs[p]))
					b.brokers.mu.Unlock()
					return given && in.Lag == 0
				}
			}
		}
		return false
	})
}

// await asks on the manager's goroutine until a condition holds.
func (b *bench) await(what string, ok func() bool) {
	b.t.Helper()
	b.patient(what, func() bool {
		answer := make(chan bool, 1)
		return b.manager.send(func() { answer <- ok() }) && <-answer
	})
}

// When the group no longer counts us in, everything uncommitted is dropped, and the states wait for their tasks to come back.
func TestLostTasksKeepTheirStates(t *testing.T) {
	b := newBench(t, nil)
	b.assign(0, 1)
	b.put(0, "a", "b")
	b.put(1, "c")
	b.committedUpTo(0, 1)
	b.put(0, "a")
	b.processed(tp("in", 0))
	b.manager.Lost(errSession)
	if b.upToDate(tp("in", 0)) {
		t.Fatal("something was committed that is not ours any more")
	}
	b.until(t, "lost", func() bool { return slices.Equal(b.revoked, []string{"0_0", "0_1", "lost"}) })
	b.await("both states are kept", func() bool { return len(b.manager.kept) == 2 && len(b.manager.closing) == 0 })
	b.await("a look", func() bool { b.manager.look(); return true })
	b.note(func() {
		if last := b.states[len(b.states)-1]; last != "rebalancing" {
			t.Errorf("state %s without an assignment", last)
		}
	})
	b.restored()
	b.assign(0)
	b.committedUpTo(0)
	b.exact()
	for _, restore := range b.restored() { // the tail only: the states were kept
		if strings.HasSuffix(restore, "@0") {
			t.Errorf("restored from the beginning: %s", restore)
		}
	}
	b.await("the states that did not come back are closed", func() bool { return len(b.manager.kept) == 0 && len(b.manager.closing) == 0 })
	b.mem.mu.Lock()
	defer b.mem.mu.Unlock()
	if b.mem.inUse[record.TaskID{Partition: 1}] {
		t.Error("the state of a task that did not come back is still open")
	}
}
