package observe

import (
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"millrace/record"
)

// The states of an instance. Restoring and running are told apart although both have tasks: only the second has results.
//
//	created -> rebalancing <-> restoring -> running -> draining
//	                 any of them -> error
const (
	created     = "created"
	rebalancing = "rebalancing"
	restoring   = "restoring"
	running     = "running"
	draining    = "draining"
	failed      = "error"
)

var states = []string{created, rebalancing, restoring, running, draining, failed}

// State reports a change of the instance's state: created, rebalancing, restoring, running, draining or error.
func (o *Observer) State(state string) {
	if !slices.Contains(states, state) {
		o.warn(zapcore.WarnLevel, "MR4003", "unknown state", nil, zap.String("state", state))
		return
	}
	now := o.opt.Clock()
	o.mu.Lock()
	from := o.life.state
	if from != state {
		o.life.state, o.life.since = state, now
	}
	if state == draining {
		o.life.draining = true
	}
	o.mu.Unlock()
	if from != state {
		o.log.Info("state", zap.String("from", from), zap.String("to", state))
	}
}

// Connected reports that the cluster answered, at the start or after Disconnected.
func (o *Observer) Connected(brokers int, cluster string) {
	now := o.opt.Clock()
	o.mu.Lock()
	o.life.reachable, o.life.brokers, o.life.cluster, o.life.quiet = true, brokers, cluster, now
	o.mu.Unlock()
	o.log.Info("kafka connected", zap.Int("brokers", brokers), zap.String("cluster", cluster),
		zap.String("guarantee", o.opt.Guarantee))
}

// Disconnected reports that no broker answers. It ends with the next Connected or commit. The instance stays alive
// meanwhile, because restarting it would not bring the brokers back.
func (o *Observer) Disconnected(err error) {
	o.mu.Lock()
	o.life.reachable = false
	o.mu.Unlock()
	o.warn(zapcore.WarnLevel, codeOf(err, "MR2001"), "kafka unreachable", err)
}

// Assigned reports a finished rebalance. active is all active tasks that this instance now has, took is how long the
// rebalance lasted.
func (o *Observer) Assigned(active []record.TaskID, generation int32, took time.Duration) {
	now := o.opt.Clock()
	o.mu.Lock()
	reason := "changed"
	switch {
	case !o.life.joined:
		reason = "joined"
	case o.life.lost:
		reason = "lost"
	}
	next := make(map[record.TaskID]bool, len(active))
	for _, t := range active {
		next[t] = true
		if !o.life.active[t] {
			o.life.ready = false
		}
	}
	for t := range o.life.active {
		if !next[t] {
			o.forget(t)
		}
	}
	o.life.active, o.life.generation, o.life.joined, o.life.lost = next, generation, true, false
	if len(next) == 0 {
		o.life.ready, o.life.failing = true, false // there is nothing to do
	}
	o.life.quiet = now
	o.mu.Unlock()
	o.metrics.rebalances.WithLabelValues(reason).Inc()
	o.metrics.rebalanceDuration.Observe(took.Seconds())
	o.log.Info("assigned", zap.String("active", taskList(active)), zap.Int32("generation", generation),
		zap.String("reason", reason), zap.Duration("took", short(took)))
}

// Revoked reports tasks that this instance no longer has. lost says that the group took them without asking, so that
// their last epoch could not be committed.
func (o *Observer) Revoked(tasks []record.TaskID, lost bool) {
	o.mu.Lock()
	for _, t := range tasks {
		delete(o.life.active, t)
		o.forget(t)
	}
	o.life.lost = o.life.lost || lost
	idle := len(o.restores) == 0
	o.mu.Unlock()
	if idle {
		o.screen.close()
	}
	if lost {
		o.log.Warn("lost", o.trouble("MR2006", "tasks lost", nil, []zap.Field{zap.String("tasks", taskList(tasks))})...)
		return
	}
	o.log.Info("revoked", zap.String("tasks", taskList(tasks)))
}

// forget drops what is known of a task's stores. The caller holds mu.
func (o *Observer) forget(t record.TaskID) {
	for k := range o.restores {
		if k.task == t {
			delete(o.restores, k)
		}
	}
	for k := range o.stores {
		if k.task == t {
			delete(o.stores, k)
		}
	}
	delete(o.windows, t)
}

// Draining reports that the instance is asked to stop: it finishes what it has, commits and leaves.
func (o *Observer) Draining() { o.State(draining) }

// Stopped is the last line of a run; err is nil after a clean stop.
func (o *Observer) Stopped(err error) {
	o.screen.close()
	o.mu.Lock()
	up := o.opt.Clock().Sub(o.life.started)
	commits := o.commits.results[0]
	o.mu.Unlock()
	fields := []zap.Field{zap.Int64("commits", commits), zap.Duration("uptime", short(up))}
	if err != nil {
		o.log.Error("stopped", o.trouble(codeOf(err, "MR5001"), "stopped", err, fields)...)
		return
	}
	o.log.Info("stopped", fields...)
}

// Fatal reports what ends the run. It sets the state error and returns: the caller stops.
func (o *Observer) Fatal(code string, err error) {
	if code == "" {
		code = codeOf(err, "MR5001")
	}
	o.State(failed)
	o.log.Error("fatal", o.trouble(code, "fatal", err, nil)...)
}

// Warn reports anything that a person should know and that has no method of its own. code is one of the MR codes,
// message is the same text each time; fields are names and values in turn. Parts of records go under the names key,
// value, record_key, record_value, headers or payload, which are shown at debug level only.
func (o *Observer) Warn(code, message string, fields ...any) {
	o.warn(zapcore.WarnLevel, code, message, nil, o.pairs(fields)...)
}

// failing notes that something does not work any more. Ready tells when all of it works again.
func (o *Observer) failing() {
	o.mu.Lock()
	o.life.failing = true
	o.mu.Unlock()
}

// TaskFailed reports a task that cannot go on.
func (o *Observer) TaskFailed(task record.TaskID, err error) {
	o.failing()
	o.warn(zapcore.ErrorLevel, codeOf(err, "MR4002"), "task failed", err, zap.String("task", task.String()))
}

// taskList writes tasks as 0_0..0_3,1_2: long assignments stay one short field.
func taskList(tasks []record.TaskID) string {
	sorted := slices.Clone(tasks)
	slices.SortFunc(sorted, record.TaskID.Compare)
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == (record.TaskID{Subtopology: sorted[j].Subtopology, Partition: sorted[j].Partition + 1}) {
			j++
		}
		switch {
		case j > i+1:
			parts = append(parts, sorted[i].String()+".."+sorted[j].String())
		case j == i+1:
			parts = append(parts, sorted[i].String(), sorted[j].String())
		default:
			parts = append(parts, sorted[i].String())
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
