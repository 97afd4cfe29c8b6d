package rebalance

import (
	"context"
	"maps"
	"slices"
	"time"

	"millrace/record"
)

// Assigned is called by the membership with everything that is ours from now on. It returns when revoked tasks have had
// their last commit, or cannot have it in time: the group waits, and gives them to others afterwards.
func (m *Manager) Assigned(partitions []record.TopicPartition, generation int32) {
	done := make(chan struct{})
	if m.send(func() { m.assign(m.options.Layout.TasksOf(partitions), generation); close(done) }) {
		<-done
	}
}

// Lost is called by the membership when the group no longer counts us in.
func (m *Manager) Lost(cause error) {
	done := make(chan struct{})
	if m.send(func() { m.lose(cause); close(done) }) {
		<-done
	}
}

func (m *Manager) assign(tasks []record.TaskID, generation int32) {
	want := map[record.TaskID]bool{}
	for _, id := range tasks {
		want[id] = true
	}
	if m.draining { // the last epoch must not commit for a task that goes to another member while it is under way
		m.setOwned(intersect(m.want, want))
		return
	}
	begin := m.options.Clock()
	m.assignedAt, m.generation = begin, generation
	revoked := slices.DeleteFunc(sorted(m.want), func(id record.TaskID) bool { return want[id] })
	m.setOwned(unite(m.want, want)) // until the revoked ones have had their last commit
	m.want = want
	m.voidStarts(want)
	if len(revoked) > 0 {
		m.options.Listener.State("rebalancing")
		m.release(revoked)
		m.options.Listener.Revoked(revoked, false)
	}
	m.setOwned(want)
	m.forget()
	m.ready = false
	for id := range m.failures {
		if !want[id] {
			delete(m.failures, id)
			delete(m.retryAt, id)
		}
	}
	m.options.Listener.Assigned(tasks, generation, m.options.Clock().Sub(begin))
	m.schedule()
	if !m.ready {
		m.options.Listener.State("restoring")
	}
}

// setOwned says which tasks are ours. One that was before keeps its claim; one that comes back gets a new one, so that an
// epoch from before it went is not taken for ours.
func (m *Manager) setOwned(ids map[record.TaskID]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	owned := make(map[record.TaskID]int64, len(ids))
	for id := range ids {
		if claim, ok := m.owned[id]; ok {
			owned[id] = claim
			continue
		}
		m.claim++
		owned[id] = m.claim
	}
	m.owned = owned
}

// claims returns the present claims to the tasks; 0 for one that is not ours.
func (m *Manager) claims(ids []record.TaskID) []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	claims := make([]int64, len(ids))
	for i, id := range ids {
		claims[i] = m.owned[id]
	}
	return claims
}

func unite(a, b map[record.TaskID]bool) map[record.TaskID]bool {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func intersect(a, b map[record.TaskID]bool) map[record.TaskID]bool {
	both := maps.Clone(a)
	maps.DeleteFunc(both, func(id record.TaskID, _ bool) bool { return !b[id] })
	return both
}

// release commits what the given tasks have done, stops them and closes their states. If the commit does not come in
// time, what it holds is dropped: the next owner does it again. A commit that is still under way then meets a changed
// set of owned tasks and gives up before it names any offset.
func (m *Manager) release(ids []record.TaskID) {
	running := ids[:0:0]
	for _, id := range ids {
		if m.running[id] != nil {
			running = append(running, id)
		}
	}
	if len(running) > 0 {
		for _, id := range running { // no more input; what has arrived and is not processed is the next owner's
			for _, r := range m.running[id].readings {
				m.options.Fetcher.Remove(r.From)
			}
		}
		ctx, cancel := context.WithTimeout(m.ctx, m.options.ReleaseTimeout)
		m.finish(ctx)
		if m.committing == nil {
			m.endEpoch()
			m.finish(ctx)
		}
		cancel()
	}
	for _, id := range ids {
		if m.running[id] != nil {
			m.retire(id)
		}
		if s := m.kept[id]; s != nil {
			m.closeState(id, s)
		}
	}
}

// finish waits for the epoch that is being committed, while other events go on.
func (m *Manager) finish(ctx context.Context) {
	for m.committing != nil {
		select {
		case f := <-m.events:
			f()
		case <-ctx.Done():
			return
		}
	}
}

// lose drops everything that is not committed. The states stay: if the tasks come back, only the changelogs' tails are
// read.
func (m *Manager) lose(cause error) {
	m.setOwned(nil)
	lost := sorted(m.want)
	m.want = map[record.TaskID]bool{}
	m.voidStarts(nil)
	for _, id := range m.tasks() {
		m.suspend(id)
	}
	m.fenced, m.ready, m.assignedAt = false, false, time.Time{} // nothing to do is no readiness as long as nobody says so
	if len(lost) > 0 {
		m.options.Listener.Revoked(lost, true)
	}
	m.options.Listener.Recovering(cause, m.attempts)
	m.options.Listener.State("rebalancing")
}

// forget closes the states of tasks that did not come back.
func (m *Manager) forget() {
	for id, s := range m.kept {
		if !m.want[id] {
			m.closeState(id, s)
		}
	}
}
