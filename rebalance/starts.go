package rebalance

import (
	"context"
	"maps"
	"slices"
	"time"

	"millrace/eos"
	"millrace/record"
	"millrace/store"
	"millrace/task"
)

// sorted lists the tasks of a map, so that everything happens in the same order everywhere.
func sorted[V any](of map[record.TaskID]V) []record.TaskID {
	return slices.SortedFunc(maps.Keys(of), record.TaskID.Compare)
}

// maxStarts bounds the restores that run at the same time.
const maxStarts = 4

// schedule starts every task that is ours and does not run, after the producer has been fenced.
func (m *Manager) schedule() {
	if m.draining || m.diskFull || len(m.want) == 0 {
		m.maybeReady()
		return
	}
	if !m.fenced {
		m.fence()
		return
	}
	now := m.options.Clock()
	for _, id := range sorted(m.want) {
		if len(m.starting) >= maxStarts {
			break
		}
		if m.running[id] == nil && m.starting[id] == nil && !m.closing[id] && !m.undecided(id) && !now.Before(m.retryAt[id]) {
			m.start(id)
		}
	}
	m.maybeReady()
}

// undecided tells whether the epoch that is being committed has a part of the task. A start would read the offsets from
// before it, and the epoch could still commit behind its back.
func (m *Manager) undecided(id record.TaskID) bool {
	return m.committing != nil && slices.ContainsFunc(m.committing.Parts, func(p eos.Part) bool { return p.Task == id })
}

// fence takes a new producer epoch, when nobody else uses the producer.
func (m *Manager) fence() {
	if m.fencing || m.committing != nil {
		return // schedule comes again when that has ended
	}
	m.fencing = true
	m.work.Go(func() {
		err := m.options.Producer.Fence(m.ctx)
		m.send(func() {
			m.fencing = false
			if err != nil {
				m.options.Listener.Recovering(err, m.attempts)
				return // the next look tries again
			}
			m.fenced = true
			m.schedule()
		})
	})
}

// attempt is a start that is under way. It is void once the task was not ours in the meantime, if only for a moment: what
// it read of offsets and changelogs may be from before another owner's work.
type attempt struct {
	cancel context.CancelFunc
	void   bool
}

// voidStarts gives up the starts of all tasks but the given ones.
func (m *Manager) voidStarts(but map[record.TaskID]bool) {
	for id, a := range m.starting {
		if !but[id] {
			a.void = true
			a.cancel()
		}
	}
}

func (m *Manager) start(id record.TaskID) {
	ctx, cancel := context.WithCancel(m.ctx)
	a := &attempt{cancel: cancel}
	m.starting[id] = a
	kept := m.kept[id]
	delete(m.kept, id)
	o := m.taskOptions()
	m.work.Go(func() {
		defer cancel()
		t, err := task.Start(ctx, id, o, kept)
		if !m.send(func() { m.started(id, a, t, err) }) && t != nil {
			m.closeNow(id, t.TakeState())
		}
	})
}

func (m *Manager) taskOptions() task.Options {
	o := m.options.Task
	o.CacheBytes = m.options.CacheBytes / max(len(m.want), 1)
	return o
}

func (m *Manager) started(id record.TaskID, a *attempt, t *task.Task, err error) {
	delete(m.starting, id)
	switch {
	case err != nil:
		if m.ctx.Err() == nil && m.want[id] && !m.draining && !a.void {
			m.failed(id, err)
		}
	case a.void || !m.want[id] || m.draining || m.diskFull || !m.fenced:
		m.closeState(id, t.TakeState())
	default:
		m.run(id, t)
	}
	m.schedule()
}

// failed notes a failure and when to try again.
func (m *Manager) failed(id record.TaskID, err error) {
	m.failures[id]++
	pause := min(time.Second<<min(m.failures[id]-1, 5), restartMost)
	m.retryAt[id] = m.options.Clock().Add(pause)
	m.options.Listener.TaskFailed(id, err)
}

func (m *Manager) run(id record.TaskID, t *task.Task) {
	ctx, cancel := context.WithCancel(m.ctx)
	w := &worker{task: t, readings: t.Readings(), cancel: cancel}
	m.running[id] = w
	m.work.Go(func() {
		t.Run(ctx)
		if t.Err() != nil {
			m.send(func() { m.ended(id, w) })
		}
	})
	for _, r := range w.readings {
		m.options.Fetcher.Add(r.From, r.Next, r.Sink)
	}
}

// ended handles a task that failed by itself. Its next start waits until an epoch that it has a part in is decided, and
// reads from the brokers what became of it.
func (m *Manager) ended(id record.TaskID, w *worker) {
	if m.running[id] != w {
		return
	}
	m.failed(id, w.task.Err())
	m.suspend(id)
	m.ready = false
}

// halt stops a task where it is; what it has not handed over is dropped.
func (m *Manager) halt(id record.TaskID) {
	w := m.running[id]
	for _, r := range w.readings {
		m.options.Fetcher.Remove(r.From)
	}
	w.cancel()
	<-w.task.Done()
	delete(m.running, id)
}

// suspend halts a task and keeps its state for its next start. After a failure of its own the task opens it anew: the
// failure may have been the store's.
func (m *Manager) suspend(id record.TaskID) {
	w := m.running[id]
	m.halt(id)
	s := w.task.TakeState()
	if s != nil && w.task.Err() != nil {
		m.closeState(id, s)
	} else if s != nil {
		m.kept[id] = s
	}
}

// retire halts a task and closes its state.
func (m *Manager) retire(id record.TaskID) {
	w := m.running[id]
	m.halt(id)
	m.closeState(id, w.task.TakeState())
}

// closeState flushes and closes a state beside the manager's goroutine; the task cannot start before it is done.
func (m *Manager) closeState(id record.TaskID, s *store.State) {
	delete(m.kept, id)
	if s == nil {
		return
	}
	m.closing[id] = true
	m.work.Go(func() {
		m.closeNow(id, s)
		m.send(func() {
			delete(m.closing, id)
			m.schedule()
		})
	})
}

func (m *Manager) closeNow(id record.TaskID, s *store.State) {
	if err := task.CloseState(id, s, m.options.Task); err != nil {
		m.options.Listener.Warn("MR3006", "a store could not be closed cleanly; its next start repairs it from the changelog", "task", id.String(), "cause", err.Error())
	}
}

// cancelStarts makes starts that are under way end soon, at the end of the process.
func (m *Manager) cancelStarts() {
	if len(m.starting) > 0 || m.fencing {
		m.cancel(errStopped)
	}
}

// maybeReady tells once when everything that is ours runs.
func (m *Manager) maybeReady() {
	if m.ready || len(m.running) < len(m.want) || m.draining || m.assignedAt.IsZero() {
		return
	}
	m.ready = true
	m.options.Listener.Ready(len(m.running), m.options.Clock().Sub(m.assignedAt))
	m.options.Listener.State("running")
}
