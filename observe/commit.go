package observe

import (
	"slices"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"millrace/record"
)

// The results of a commit, in the order of commitState.results.
var commitResults = []string{"ok", "aborted", "fenced", "failed"}

// commitState is what is known of commits since the start.
type commitState struct {
	results [4]int64 // by commitResults
	at      time.Time
	last    record.CommitStats // without its slices, which belong to the caller
}

// stepTotals are the committed counts of one source, step or sink.
type stepTotals struct {
	In, Out, Late, Filtered, Dropped, DeadLettered int64
}

// Committed counts an epoch that Kafka has committed. This is the only place where records become counts, so that an
// attempt that was rolled back and repeated is counted once.
func (o *Observer) Committed(s record.CommitStats) {
	now := o.opt.Clock()
	m := o.metrics
	for _, t := range s.Tallies {
		m.tally(t)
	}
	for _, w := range s.Changelog {
		m.changelogRecords.WithLabelValues(w.Store).Add(float64(w.Records))
		m.changelogBytes.WithLabelValues(w.Store).Add(float64(w.Bytes))
	}
	m.commitDuration.WithLabelValues("produce").Observe(s.Produce.Seconds())
	m.commitDuration.WithLabelValues("offsets").Observe(s.Offsets.Seconds())
	m.commitDuration.WithLabelValues("end_txn").Observe(s.EndTxn.Seconds())
	m.commitDuration.WithLabelValues("total").Observe(s.Total.Seconds())
	m.commits.WithLabelValues("ok").Inc()
	m.transactionRecords.Observe(float64(s.Records))

	o.mu.Lock()
	for _, t := range s.Tallies {
		o.add(t)
	}
	s.Tallies, s.Changelog = nil, nil
	o.commits.last, o.commits.at = s, now
	o.commits.results[0]++
	o.life.reachable = true // a commit is the best proof that the brokers answer
	o.summary.commits = o.summary.commits.add(s.Total)
	o.mu.Unlock()
}

// add counts t for the status page and the summary line. The caller holds mu.
func (o *Observer) add(t record.Tally) {
	st := o.steps[t.Where]
	if st == nil {
		st = &stepTotals{}
		o.steps[t.Where] = st
	}
	switch t.What {
	case record.Consumed:
		st.Out += t.N
		o.summary.in += t.N
	case record.Produced:
		st.In += t.N
		o.summary.out += t.N
	case record.In:
		st.In += t.N
	case record.Out:
		st.Out += t.N
	case record.Late:
		st.Late += t.N
		o.summary.late += t.N
	case record.Filtered:
		st.Filtered += t.N
	case record.Dropped:
		st.Dropped += t.N
	case record.DeadLettered:
		st.DeadLettered += t.N
		o.summary.deadLettered += t.N
	case record.LateWindow, record.WindowClosed, record.Expired, record.ExpressionError, record.Lateness, record.Latency:
		// These do not count records, so that they stay out of a step's balance; the metrics have them.
	}
}

// Aborted counts an epoch that was not committed. result is aborted, fenced or failed; anything else counts as failed.
func (o *Observer) Aborted(result string, err error) {
	i := slices.Index(commitResults, result)
	if i < 1 {
		result, i = "failed", 3
	}
	o.metrics.commits.WithLabelValues(result).Inc()
	o.mu.Lock()
	o.commits.results[i]++
	o.mu.Unlock()
	code := map[string]string{"aborted": "MR2002", "fenced": "MR2003", "failed": "MR2004"}[result]
	o.warn(zapcore.WarnLevel, codeOf(err, code), "commit "+result, err)
}

// Recovering reports that work goes back to the last committed position after cause; attempt counts from 1.
func (o *Observer) Recovering(cause error, attempt int) {
	o.failing()
	o.warn(zapcore.WarnLevel, codeOf(cause, "MR2005"), "recovering", cause, zap.Int("attempt", attempt))
}

// Flushed reports that a task's dirty rows were written to its engine.
func (o *Observer) Flushed(task record.TaskID, rows int, bytes int64, took time.Duration) {
	o.metrics.flushDuration.Observe(took.Seconds())
	o.metrics.flushedBytes.Add(float64(bytes))
	o.log.Debug("flushed", zap.String("task", task.String()), zap.Int("rows", rows), zap.Int64("bytes", bytes),
		zap.Duration("took", short(took)))
}

// DiskFree reports the free bytes on the disk that holds the state. Warning about it is the caller's, who knows the limit.
func (o *Observer) DiskFree(bytes int64) {
	o.mu.Lock()
	o.disk = bytes
	o.mu.Unlock()
}

// Watermarks reports how far event time has come in all input partitions of this instance. The list replaces the one
// before, so that partitions that moved away disappear.
func (o *Observer) Watermarks(w []record.WatermarkStatus) {
	now := o.opt.Clock()
	own := slices.Clone(w)
	slices.SortFunc(own, compareMarks)
	o.mu.Lock()
	waited := totalLag(o.marks) > 0
	o.marks = own
	if !waited {
		o.life.quiet = now // until now there was nothing to commit
	}
	o.mu.Unlock()
}

func totalLag(marks []record.WatermarkStatus) int64 {
	var n int64
	for _, w := range marks {
		n += max(0, w.Lag)
	}
	return n
}
