package observe

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"millrace/record"
)

const (
	// progressEvery is how often a running restore writes a line where no bars are shown.
	progressEvery = 5 * time.Second
	// rateEvery is how old the older of two points is at least, between which a rate is measured.
	rateEvery = 5 * time.Second
)

// restoreKey names one store of one task.
type restoreKey struct {
	task  record.TaskID
	store string
}

// restore is one store's way to the end of its changelog. Progress is measured in positions, since transactions and
// compaction leave offsets without records and a count of records would never reach its end.
type restore struct {
	restoreKey
	reused              bool // local state was used; only the rest is read
	from, position, end int64
	began               time.Time
	mark, older         point // two points to measure the rate between
	done, told          bool  // told: a ready line has counted it
	replayed            int64 // records applied, once done
	took                time.Duration
}

type point struct {
	at       time.Time
	position int64
}

func (r *restore) remaining() int64 {
	if r.done {
		return 0
	}
	return max(0, r.end-r.position)
}

// percent is 100 where there is nothing to read.
func (r *restore) percent() float64 {
	if r.done || r.end <= r.from {
		return 100
	}
	return float64(min(r.position, r.end)-r.from) * 100 / float64(r.end-r.from)
}

// rate is positions a second lately; 0 until it can be told.
func (r *restore) rate(now time.Time) float64 {
	if dt := now.Sub(r.older.at).Seconds(); dt > 0 && !r.done {
		return float64(r.position-r.older.position) / dt
	}
	return 0
}

func (r *restore) advance(now time.Time, position, end int64) (moved int64) {
	moved = max(0, position-r.position)
	r.position, r.end = max(r.position, position), max(r.end, end)
	if now.Sub(r.mark.at) >= rateEvery {
		r.older, r.mark = r.mark, point{now, r.position}
	}
	return moved
}

// RestoreStarted reports that the store of a task is being brought from position from to position to of its changelog.
// reused says that its local state was found and is kept, so that from is where that state ends.
func (o *Observer) RestoreStarted(task record.TaskID, store string, from, to int64, reused bool) {
	now := o.opt.Clock()
	k := restoreKey{task, store}
	start := point{now, from}
	o.mu.Lock()
	o.restores[k] = &restore{restoreKey: k, reused: reused, from: from, position: from, end: to, began: now, mark: start, older: start}
	if len(o.restores) == 1 {
		o.summary.progress = now
	}
	o.mu.Unlock()
	o.log.Info("restoring", zap.String("task", task.String()), zap.String("store", store), zap.Bool("reused", reused),
		zap.Int64("from", from), zap.Int64("to", to), zap.Int64("remaining", max(0, to-from)))
}

// RestoreProgress reports the position that a restore has reached and the end as it is known now.
func (o *Observer) RestoreProgress(task record.TaskID, store string, position, end int64) {
	now := o.opt.Clock()
	o.mu.Lock()
	r := o.restores[restoreKey{task, store}]
	if r == nil || r.done {
		o.mu.Unlock()
		return
	}
	moved := r.advance(now, position, end)
	done, total := o.storeProgress(store)
	o.mu.Unlock()
	o.metrics.restoreRecords.WithLabelValues(store).Add(float64(moved))
	o.screen.bar(store, done, total)
}

// RestoreGivenUp reports the end of a restore that brought nothing about: it failed and will start anew, or the task has
// gone to another instance while it ran.
func (o *Observer) RestoreGivenUp(task record.TaskID, store string) {
	o.mu.Lock()
	delete(o.restores, restoreKey{task, store})
	busy := o.restoringNow()
	o.mu.Unlock()
	if busy == 0 {
		o.screen.close()
	}
}

// Restored reports the end of a restore: replayed is the number of changelog records that were applied.
func (o *Observer) Restored(task record.TaskID, store string, reused bool, replayed int64, took time.Duration) {
	k := restoreKey{task, store}
	o.mu.Lock()
	r := o.restores[k]
	if r == nil {
		r = &restore{restoreKey: k}
		o.restores[k] = r
	}
	moved := r.remaining()
	r.reused, r.replayed, r.took, r.position, r.done = reused, replayed, took, max(r.position, r.end), true
	done, total := o.storeProgress(store)
	busy := o.restoringNow()
	o.mu.Unlock()
	o.metrics.restoreRecords.WithLabelValues(store).Add(float64(moved))
	o.metrics.restoreDuration.WithLabelValues(store).Observe(took.Seconds())
	o.screen.update(store, done, total)
	if busy == 0 {
		o.screen.close()
	}
	o.log.Info("restored", zap.String("task", task.String()), zap.String("store", store), zap.Bool("reused", reused),
		zap.Int64("replayed", replayed), zap.Duration("took", short(took)))
}

// Ready reports that all assigned tasks are restored and process records.
func (o *Observer) Ready(tasks int, took time.Duration) {
	now := o.opt.Clock()
	o.mu.Lock()
	o.life.ready, o.life.failing, o.life.quiet = true, false, now
	var stores, reused, replayed int64
	for k, r := range o.restores {
		if !o.life.active[k.task] { // it went to another instance and was restored for nothing
			delete(o.restores, k)
			continue
		}
		if !r.done || r.told {
			continue
		}
		r.told = true
		stores++
		replayed += r.replayed
		if r.reused {
			reused++
		}
	}
	o.mu.Unlock()
	o.screen.close()
	o.log.Info("ready", zap.Int("tasks", tasks), zap.Int64("restored", stores), zap.Int64("reused", reused),
		zap.Int64("replayed", replayed), zap.Duration("took", short(took)))
}

// restoringNow is the number of unfinished restores. The caller holds mu.
func (o *Observer) restoringNow() int {
	n := 0
	for _, r := range o.restores {
		if !r.done {
			n++
		}
	}
	return n
}

// storeProgress sums all restores of a store. The caller holds mu.
func (o *Observer) storeProgress(store string) (done, total int64) {
	for k, r := range o.restores {
		if k.store == store {
			done += min(r.position, r.end) - r.from
			total += r.end - r.from
		}
	}
	return done, total
}

// sortedRestores returns copies in the order of task and store. The caller holds mu.
func (o *Observer) sortedRestores() []restore {
	list := make([]restore, 0, len(o.restores))
	for _, r := range o.restores {
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b restore) int {
		return cmp.Or(a.task.Compare(b.task), cmp.Compare(a.store, b.store))
	})
	return list
}

// restoreLine writes one line for all running restores.
func (o *Observer) restoreLine(now time.Time) {
	if o.screen.showing() {
		return
	}
	o.mu.Lock()
	n := o.restoringNow()
	if n == 0 || now.Sub(o.summary.progress) < progressEvery {
		o.mu.Unlock()
		return
	}
	o.summary.progress = now
	var remaining, done, total int64
	var rate float64
	var slowest *restore
	for _, r := range o.restores {
		total += r.end - r.from
		done += r.end - r.from - r.remaining()
		remaining += r.remaining()
		rate += r.rate(now)
		if !r.done && (slowest == nil || r.remaining() > slowest.remaining()) {
			slowest = r
		}
	}
	name := slowest.store + "[" + slowest.task.String() + "]"
	o.mu.Unlock()
	o.log.Info("restore progress", zap.Int("stores", n), zap.String("done", percentText(done, total)),
		zap.Int64("remaining", remaining), zap.String("rate", fmt.Sprintf("%.0f/s", rate)),
		zap.String("eta", etaText(remaining, rate)), zap.String("longest", name))
}

func percentText(done, total int64) string {
	if total <= 0 {
		return "100%"
	}
	return fmt.Sprintf("%d%%", done*100/total)
}

// etaText is the time that remaining takes at rate, or a question mark where nothing moves.
func etaText(remaining int64, rate float64) string {
	if rate < 1 {
		return "?"
	}
	return short(time.Duration(float64(remaining) / rate * float64(time.Second))).String()
}
