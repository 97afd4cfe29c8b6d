package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/record"
	"millrace/store"
)

// A command runs on the task's goroutine between two records. The caller waits for it.
type command struct {
	run  func()
	done chan struct{}
}

// ErrEnded is the answer of a task whose Run has ended.
var ErrEnded = errors.New("the task has ended")

// do runs f on the task's goroutine.
func (t *Task) do(f func()) error {
	c := command{f, make(chan struct{})}
	select {
	case t.commands <- c:
		<-c.done
		return nil
	case <-t.done:
		return ErrEnded
	}
}

const (
	stepRecords = 1024                   // records processed before commands are looked at
	fireRows    = 4096                   // rows of closing windows likewise
	tickEvery   = 250 * time.Millisecond // how often idleness and flushes are looked at
)

// always is ready: a task with work left waits for nothing.
var always = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Run works until ctx ends or something fails. A failure is the task's alone until the caller has decided what it means.
func (t *Task) Run(ctx context.Context) {
	defer close(t.done)
	defer t.freeSlot()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	t.meter.settle(t.options.Clock())
	for wake := always; ; {
		select {
		case <-ctx.Done():
			return
		case c := <-t.commands:
			t.meter.turn(busy, t.options.Clock)
			c.run()
			close(c.done)
		case <-tick.C:
			t.meter.turn(busy, t.options.Clock)
			if t.err = t.tick(); t.err != nil {
				return
			}
		case <-wake:
			t.meter.turn(busy, t.options.Clock)
		}
		worked, err := t.step()
		if err != nil {
			t.err = fmt.Errorf("task %s: %w", t.id, err)
			return
		}
		if worked {
			wake = always
			continue
		}
		wake = t.inbox.ready
		t.meter.turn(t.waitsFor(), t.options.Clock)
		if t.dirty && !t.quiet && t.options.Quiet != nil {
			t.quiet = true
			t.options.Quiet()
		}
	}
}

// Done is closed when Run has ended; Err tells why, and is nil if its context ended.
func (t *Task) Done() <-chan struct{} { return t.done }

// Err is why Run ended.
func (t *Task) Err() error { return t.err }

// step does a bounded piece of work; false means that there is nothing to do, or no room for what it would put out.
func (t *Task) step() (bool, error) {
	if t.full() {
		return false, nil
	}
	if t.instance.Due() {
		t.dirty = true
		return true, t.instance.Fire(fireRows)
	}
	if t.at == len(t.batch.Records) {
		if found, err := t.nextBatch(); !found {
			return false, err
		}
	}
	t.instance.SetNow(t.options.Clock().UnixMilli())
	for n := min(t.at+stepRecords, len(t.batch.Records)); t.at < n; {
		r := &t.batch.Records[t.at]
		if err := t.instance.Process(t.input, t.batch.From, r); err != nil {
			return false, err
		}
		t.at++
		t.records++
		t.inputs[t.input].position = r.Offset + 1
		if t.instance.Due() {
			break
		}
	}
	if t.at == len(t.batch.Records) {
		t.inputs[t.input].position = t.batch.Next
		t.batch.WorkedOff() // nothing has kept what aliases it
		t.batch.Records, t.batch.Free, t.at = nil, nil, 0
	}
	t.dirty = true
	return true, nil
}

// waitsFor tells why step did nothing: with work left, it had no room.
func (t *Task) waitsFor() activity {
	work := t.instance.Due() || t.at < len(t.batch.Records)
	for i := range t.inputs {
		work = work || t.inbox.oldest(i) != record.NoTime
	}
	if work {
		return blocked
	}
	return idle
}

// nextBatch takes the next batch from the inbox that moves anything: an empty answer may only tell where the log ends.
func (t *Task) nextBatch() (found bool, err error) {
	for {
		b, i, ok, err := t.inbox.take()
		if err != nil || !ok {
			return false, err
		}
		if len(b.Records) > 0 {
			t.inputs[i].heard = t.options.Clock()
		} else if b.Next == t.inputs[i].position {
			continue
		}
		t.batch, t.input, t.at = b, i, 0
		return true, nil
	}
}

// full tells whether the epoch holds as much as it may; the caller of Hurry ends it early.
func (t *Task) full() bool {
	if t.state != nil && t.state.Full() {
		return true
	}
	size := t.instance.Outputs().Bytes()
	if t.state != nil {
		size += t.state.OverlayBytes()
	}
	if size < t.options.EpochBytes {
		return false
	}
	if !t.hurried {
		t.hurried = true
		t.options.Hurry()
	}
	return true
}

// tick looks after what depends on the wall clock: idle inputs and flushes.
func (t *Task) tick() error {
	now := t.options.Clock()
	t.instance.SetNow(now.UnixMilli())
	t.findIdle(now)
	return t.flush(now)
}

func (t *Task) findIdle(now time.Time) {
	for i := range t.inputs {
		in := &t.inputs[i]
		if !in.present || in.idle <= 0 {
			continue
		}
		if !t.inbox.quiet(i, in.position) {
			in.heard = now // it has records, or the broker has not answered yet: that is not silence
			continue
		}
		if now.Sub(in.heard) >= in.idle {
			if !t.instance.IsIdle(i) {
				t.instance.SetIdle(i)
				t.dirty = true
			}
		}
	}
	if !t.instance.Clock().AllIdle() {
		return
	}
	for i := range t.inputs {
		if disorder, ok := t.sub.Inputs[i].AdvanceOnIdle(); ok && t.inputs[i].present {
			t.instance.Advance(now.Add(-disorder).UnixMilli())
			t.dirty = true
		}
	}
}

func (t *Task) flush(now time.Time) error {
	if t.state == nil {
		return nil
	}
	stats, done, err := t.state.Flushed(false)
	if err != nil {
		return fmt.Errorf("task %s: flush: %w", t.id, err)
	}
	if done {
		t.freeSlot()
		t.options.Flushed(t.id, stats.Rows, int64(stats.Bytes), stats.Took)
	}
	t.state.Trim()
	if t.state.FlushDue(now) && t.takeSlot() {
		t.state.StartFlush(now)
	}
	return nil
}

// takeSlot keeps the tasks' flushes one behind the other: each copies its dirty rows and feeds Badger, and all of them
// at once would need the memory of all at once.
func (t *Task) takeSlot() bool {
	select {
	case t.options.FlushSlots <- struct{}{}:
		t.flushing = true
		return true
	default:
		return false // the next tick asks again
	}
}

func (t *Task) freeSlot() {
	if t.flushing {
		t.flushing = false
		<-t.options.FlushSlots
	}
}

// TakeState gives the task's state away after Run has ended: for the same task's next start, or to be closed. Nothing else
// of the task may be used afterwards.
func (t *Task) TakeState() *store.State {
	for _, s := range t.scratches {
		s.Release()
	}
	t.scratches = nil
	s := t.state
	t.state = nil
	return s
}

// CloseState flushes what is committed and closes the state. It is called after Run has ended; what is not committed
// is dropped.
func CloseState(id record.TaskID, s *store.State, o Options) error {
	if s == nil {
		return nil
	}
	s.Abort()
	stats, err := s.Flush(o.Clock())
	if err == nil && stats.Rows > 0 {
		o.Flushed(id, stats.Rows, int64(stats.Bytes), stats.Took)
	}
	return errors.Join(err, s.Close())
}
