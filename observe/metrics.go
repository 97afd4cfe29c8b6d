package observe

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"millrace/record"
)

// metrics holds what events count. No label ever comes from a record: names are the plan's, reasons are constants of
// the code, so that the number of series is bounded by the job.
type metrics struct {
	*catalogue

	rebalances                              *prometheus.CounterVec
	rebalanceDuration                       prometheus.Observer
	recordsConsumed, bytesConsumed          *prometheus.CounterVec
	recordsProduced, bytesProduced          *prometheus.CounterVec
	stepRecords, dropped, expressionErrors  *prometheus.CounterVec
	deadLetters, windowsClosed, lateWindows *prometheus.CounterVec
	expiredRows                             *prometheus.CounterVec
	commits                                 *prometheus.CounterVec
	commitDuration                          *prometheus.HistogramVec
	transactionRecords                      prometheus.Observer
	cacheRequests                           *prometheus.CounterVec
	flushDuration                           prometheus.Observer
	flushedBytes                            prometheus.Counter
	changelogRecords, changelogBytes        *prometheus.CounterVec
	restoreRecords                          *prometheus.CounterVec
	restoreDuration                         *prometheus.HistogramVec
	lateness, latency, storeOperations      *spreadVec
	busy, backpressure                      *prometheus.CounterVec
	kafkaRequests                           *prometheus.CounterVec
	kafkaDuration                           *prometheus.HistogramVec
}

// commitBuckets reach from a local broker to beyond the transaction timeout; longBuckets to a restore of hours.
var (
	commitBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	longBuckets   = []float64{.01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600}
	countBuckets  = prometheus.ExponentialBuckets(1, 4, 11)
)

func newMetrics(o *Observer) *metrics {
	c := newCatalogue(o.opt.ApplicationID)
	m := &metrics{catalogue: c}
	m.rebalances = c.counter("millrace_rebalances_total", "Finished rebalances, by what led to them: joined, changed, lost.", "reason")
	m.rebalanceDuration = c.histogram("millrace_rebalance_duration_seconds", "How long rebalances took.", longBuckets).WithLabelValues()
	m.recordsConsumed = c.counter("millrace_records_consumed_total", "Input records in committed transactions.", "source", "topic")
	m.bytesConsumed = c.counter("millrace_bytes_consumed_total", "Bytes of input records in committed transactions.", "source", "topic")
	m.recordsProduced = c.counter("millrace_records_produced_total", "Output records in committed transactions.", "sink", "topic")
	m.bytesProduced = c.counter("millrace_bytes_produced_total", "Bytes of output records in committed transactions.", "sink", "topic")
	m.stepRecords = c.counter("millrace_step_records_total", "Records at a step: in, out, late, filtered.", "step", "port")
	m.dropped = c.counter("millrace_records_dropped_total", "Records that a policy dropped, by reason.", "step", "reason")
	m.expressionErrors = c.counter("millrace_expression_errors_total", "Expressions that failed on a record.", "step", "field")
	m.deadLetters = c.counter("millrace_dead_letter_records_total", "Records sent to the dead-letter topic.", "origin", "kind")
	m.windowsClosed = c.counter("millrace_windows_closed_total", "Windows that closed.", "step")
	m.lateWindows = c.counter("millrace_late_windows_total", "Windows that refused a late record: one record may be late for several.", "step")
	m.expiredRows = c.counter("millrace_state_expired_rows_total", "Rows of state that their ttl ended.", "step")
	m.commits = c.counter("millrace_commits_total", "Transactions by result: ok, aborted, fenced, failed.", "result")
	m.commitDuration = c.histogram("millrace_commit_duration_seconds", "Duration of a commit, by phase: produce, offsets, end_txn, total.", commitBuckets, "phase")
	m.transactionRecords = c.histogram("millrace_transaction_records", "Input records in one transaction.", countBuckets).WithLabelValues()
	m.cacheRequests = c.counter("millrace_state_cache_requests_total", "Reads of state by result: hit (answered from memory), miss.", "store", "result")
	m.flushDuration = c.histogram("millrace_state_flush_duration_seconds", "How long writing dirty rows to disk took.", commitBuckets).WithLabelValues()
	m.flushedBytes = c.counter("millrace_state_flushed_bytes_total", "Bytes of dirty rows written to disk.").WithLabelValues()
	m.changelogRecords = c.counter("millrace_changelog_records_total", "Changelog records in committed transactions.", "store")
	m.changelogBytes = c.counter("millrace_changelog_bytes_total", "Changelog bytes in committed transactions.", "store")
	m.restoreRecords = c.counter("millrace_restore_records_total", "Changelog positions that restores have passed.", "store")
	m.restoreDuration = c.histogram("millrace_restore_duration_seconds", "How long the restore of one store of one task took.", longBuckets, "store")
	m.lateness = c.spread(&spreadVec{unit: 1e-3, first: 0, last: 28}, "millrace_record_lateness_seconds", "How far behind the newest event time of their partition records came; what max_out_of_orderness must cover.", "source")
	m.latency = c.spread(&spreadVec{unit: 1e-3, first: 0, last: 28}, "millrace_end_to_end_latency_seconds", "From a result's event time to the making of the result; until it is committed commit_duration comes in addition.", "sink")
	m.storeOperations = c.spread(&spreadVec{unit: 1e-9, first: 7, last: 33}, "millrace_state_operation_duration_seconds", "Durations of reading and writing rows, by operation: get, put, delete (one of 128 is timed), scan.", "store", "op")
	m.busy = c.counter("millrace_task_busy_seconds_total", "Time that tasks worked; its rate over the number of tasks is how busy they are.", "subtopology")
	m.backpressure = c.counter("millrace_task_backpressure_seconds_total", "Time that tasks had input and no room for results, because the commit before was not finished.", "subtopology")
	m.kafkaRequests = c.counter("millrace_kafka_requests_total", "Requests of fetching, producing, restoring and committing, by result: ok, error, unanswered.", "api", "result")
	m.kafkaDuration = c.histogram("millrace_kafka_request_duration_seconds", "How long these requests took; a fetch waits for data up to kafka.consumer.fetch_max_wait.", commitBuckets, "api")
	for _, r := range commitResults {
		m.commits.WithLabelValues(r) // alerts on a ratio need the zeros
	}
	newGauges(c, o)
	return m
}

// tally adds one committed count to the metric that its outcome belongs to.
func (m *metrics) tally(t record.Tally) {
	where, detail := strings.ToValidUTF8(t.Where, "?"), strings.ToValidUTF8(t.Detail, "?")
	n, bytes := float64(max(0, t.N)), float64(max(0, t.Bytes))
	switch t.What {
	case record.Consumed:
		m.recordsConsumed.WithLabelValues(where, detail).Add(n)
		m.bytesConsumed.WithLabelValues(where, detail).Add(bytes)
	case record.Produced:
		m.recordsProduced.WithLabelValues(where, detail).Add(n)
		m.bytesProduced.WithLabelValues(where, detail).Add(bytes)
	case record.In:
		m.stepRecords.WithLabelValues(where, "in").Add(n)
	case record.Out:
		m.stepRecords.WithLabelValues(where, "out").Add(n)
	case record.Late:
		m.stepRecords.WithLabelValues(where, "late").Add(n)
	case record.Filtered:
		m.stepRecords.WithLabelValues(where, "filtered").Add(n)
	case record.Dropped:
		m.dropped.WithLabelValues(where, detail).Add(n)
	case record.DeadLettered:
		m.deadLetters.WithLabelValues(where, detail).Add(n)
	case record.LateWindow:
		m.lateWindows.WithLabelValues(where).Add(n)
	case record.WindowClosed:
		m.windowsClosed.WithLabelValues(where).Add(n)
	case record.Expired:
		m.expiredRows.WithLabelValues(where).Add(n)
	case record.ExpressionError:
		m.expressionErrors.WithLabelValues(where, detail).Add(n)
	case record.Lateness:
		m.lateness.add(t.Spread, where)
	case record.Latency:
		m.latency.add(t.Spread, where)
	}
}
