package rebalance

import (
	"context"
	"errors"
	"slices"
	"time"

	"millrace/crash"
	"millrace/eos"
	"millrace/record"
	"millrace/task"
)

// epoch is what is being committed.
type epoch struct {
	eos.Epoch
	workers []*worker // by part
	records int64
	begun   time.Time
}

// endEpoch freezes what the tasks have done and commits it beside them. While one epoch is under way the next one only
// grows; it ends when the first has been decided.
func (m *Manager) endEpoch() {
	if m.committing != nil {
		m.overdue = true
		return
	}
	m.overdue = false
	if !m.fenced || len(m.running) == 0 {
		return
	}
	e := &epoch{begun: m.options.Clock()}
	m.lastEpoch = e.begun
	var ids []record.TaskID
	for _, id := range m.tasks() {
		w := m.running[id]
		p, records, err := w.task.Freeze()
		switch {
		case errors.Is(err, task.ErrEnded):
			continue // its event is on the way
		case err != nil:
			m.ready = false
			m.failed(id, err)
			m.retire(id)
		case p != nil:
			e.Parts = append(e.Parts, *p)
			e.workers = append(e.workers, w)
			e.records += records
			ids = append(ids, id)
		}
	}
	if len(e.Parts) == 0 {
		return
	}
	m.number++
	e.Number = m.number
	claims := m.claims(ids)
	e.Owned = func() bool { return !slices.Contains(claims, 0) && slices.Equal(m.claims(ids), claims) }
	e.ResultsFirst = !m.options.Task.ExactlyOnce
	m.committing = e
	m.work.Go(func() {
		ctx, cancel := context.WithTimeout(m.ctx, m.options.TransactionTimeout)
		defer cancel()
		r, err := eos.Commit(ctx, m.options.Producer, e.Epoch)
		m.send(func() { m.decided(e, r, err) })
	})
}

// decided tells the tasks about a committed epoch, or starts over from what the brokers say.
func (m *Manager) decided(e *epoch, r eos.Result, err error) {
	m.committing = nil
	if err != nil {
		m.recover(err)
		return
	}
	m.attempts = 0
	crash.At("commit.applied")
	for i, w := range e.workers {
		if ended := w.task.Committed(r.ChangelogEnds(e.Parts[i])); ended != nil {
			continue // it was stopped meanwhile; its next start reads the changelog's end
		}
		delete(m.failures, w.task.ID())
	}
	m.note(e)
	m.report(e, r)
	m.forget()
	m.schedule() // tasks may have waited for the decision
	if m.overdue {
		m.endEpoch()
	}
}

// recover drops everything since the last committed epoch and starts all tasks anew, the same way as after a crash. What
// became of the failed epoch does not matter: the brokers' offsets and changelogs tell.
func (m *Manager) recover(cause error) {
	m.attempts++
	result := "failed"
	switch {
	case errors.Is(cause, eos.ErrFenced):
		result = "fenced"
	case errors.Is(cause, eos.ErrLost):
		result = "aborted"
	}
	m.options.Listener.Aborted(result, cause)
	pause := time.Duration(0)
	if m.attempts > 1 {
		pause = min(50*time.Millisecond<<min(m.attempts-2, 7), 5*time.Second)
	}
	again := m.options.Clock().Add(pause)
	for _, id := range m.tasks() {
		m.suspend(id)
		m.retryAt[id] = again
	}
	m.fenced, m.ready = false, false
	if m.draining {
		return
	}
	m.options.Listener.Recovering(cause, m.attempts)
	m.options.Listener.State("restoring")
	if m.assignedAt.IsZero() {
		return
	}
	m.assignedAt = m.options.Clock()
	if pause == 0 {
		m.schedule()
		return
	}
	m.work.Go(func() {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
			m.send(m.schedule)
		case <-m.ctx.Done():
		}
	})
}

// note remembers how far repartition topics have been read by committed epochs.
func (m *Manager) note(e *epoch) {
	for _, p := range e.Parts {
		for _, o := range p.Offsets {
			m.purged[o.TopicPartition] = o.Next
		}
	}
}

// purge deletes what has been read of the repartition topics. The offsets are of committed epochs, so nothing is lost if
// we die at any moment.
func (m *Manager) purge() {
	if m.options.Purge == nil {
		return
	}
	before := map[string]map[int32]record.Offset{}
	for _, r := range m.options.Task.Plan.Repartitions() {
		for tp, next := range m.purged {
			if tp.Topic == r.Topic && next > 0 {
				if before[tp.Topic] == nil {
					before[tp.Topic] = map[int32]record.Offset{}
				}
				before[tp.Topic][tp.Partition] = next
			}
		}
	}
	clear(m.purged)
	if len(before) == 0 {
		return
	}
	m.work.Go(func() {
		for topic, offsets := range before {
			m.options.Purge(topic, offsets)
		}
	})
}

func (m *Manager) report(e *epoch, r eos.Result) {
	s := record.CommitStats{Epoch: e.Number, Records: e.records, Produce: r.Produce, Offsets: r.Offsets, EndTxn: r.End, Total: m.options.Clock().Sub(e.begun)}
	plan := m.options.Task.Plan
	for _, p := range e.Parts {
		s.Tallies = append(s.Tallies, p.Tallies...)
		for _, b := range p.Outputs {
			s.Bytes += int64(b.Bytes())
			if plan.SinkOf(b.To.Topic) != "" {
				s.Outputs += int64(b.Count)
			}
		}
		for i, b := range p.Changelogs {
			s.Bytes += int64(b.Bytes())
			s.Changelog = append(s.Changelog, record.StoreWrites{Store: plan.Subtopologies[p.Task.Subtopology].Stores[i], Records: int64(b.Count), Bytes: int64(b.Bytes())})
		}
	}
	m.options.Listener.Committed(s)
}
