// Package observe is what a person and a monitoring system see of an instance: log lines, metrics, health and status
// over HTTP, progress bars. Other packages report events to an Observer; nobody else logs. It never decides anything:
// processing does not change when nobody watches.
package observe

import (
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"

	"millrace/record"
)

// Options says who is observed and how it is shown. ApplicationID, Instance and Out must be set.
type Options struct {
	ApplicationID, Instance, Version string
	Revision                         string // of the source; empty: unknown
	Topology                         string // fingerprint of the plan
	Guarantee                        string // exactly_once, at_least_once
	LogLevel                         string // debug, info (default), warn, error
	LogFormat                        string // console (default), json
	Out                              io.Writer
	Terminal                         bool // Out is a terminal: restores are shown as bars
	PartitionLabels                  bool // metrics of single partitions; off keeps the number of series small
	TasksMax                         int  // tasks of the whole application: more replicas than that are idle
	StallTimeout                     time.Duration
	Clock                            func() time.Time // time.Now when nil
}

// DefaultStallTimeout is how long a commit may be missing, with input waiting, before the instance counts as wedged.
const DefaultStallTimeout = 60 * time.Second

// Observer turns events into log lines, metrics and status. All methods may be called from any goroutine; none does
// I/O other than writing a log line, and none is meant to be called per record.
type Observer struct {
	opt     Options
	log     *zap.Logger
	screen  *screen
	metrics *metrics

	mu       sync.Mutex // guards everything below; never held while writing
	level    logLevel
	life     life
	restores map[restoreKey]*restore
	stores   map[restoreKey]record.StoreStats // CacheHits and CacheMisses are totals here
	windows  map[record.TaskID][]record.OpenWindows
	marks    []record.WatermarkStatus
	commits  commitState
	steps    map[string]*stepTotals
	summary  interval
	samples  sampler
	last     lastError
	disk     int64 // free bytes; negative: not known
}

// life is where the instance stands.
type life struct {
	state      string
	since      time.Time // of state
	started    time.Time
	joined     bool
	ready      bool // all assigned stores are restored
	failing    bool // work has failed, and not all of it runs again
	draining   bool
	reachable  bool // a broker answered last
	generation int32
	brokers    int
	cluster    string
	active     map[record.TaskID]bool
	lost       bool      // tasks were lost since the last assignment
	quiet      time.Time // since when a missing commit could be a stall: ready, reachable, input waiting
}

// lastError is the latest warning or error, for the status page.
type lastError struct {
	Code, Message, Error string
	At                   time.Time
}

// New returns an observer for one instance. It fails on options that are not known, naming them.
func New(opt Options) (*Observer, error) {
	if opt.ApplicationID == "" || opt.Out == nil {
		return nil, errors.New("observe: application id and output must be set")
	}
	if opt.LogLevel == "" {
		opt.LogLevel = "info"
	}
	if opt.Clock == nil {
		opt.Clock = time.Now
	}
	if opt.StallTimeout <= 0 {
		opt.StallTimeout = DefaultStallTimeout
	}
	out := &screen{out: opt.Out, bars: opt.Terminal && opt.LogFormat != "json"}
	level, err := parseLevel(opt.LogLevel)
	if err != nil {
		return nil, err
	}
	at := zap.NewAtomicLevelAt(level)
	log, err := newLogger(opt, at, out)
	if err != nil {
		return nil, err
	}
	now := opt.Clock()
	o := &Observer{
		opt: opt, log: log, level: logLevel{AtomicLevel: at, usual: level}, screen: out, disk: -1,
		life:     life{state: created, since: now, started: now, quiet: now, active: map[record.TaskID]bool{}},
		restores: map[restoreKey]*restore{},
		stores:   map[restoreKey]record.StoreStats{},
		windows:  map[record.TaskID][]record.OpenWindows{},
		steps:    map[string]*stepTotals{},
		summary:  interval{since: now},
		samples:  sampler{seen: map[string]*sampled{}},
	}
	o.metrics = newMetrics(o)
	return o, nil
}

// Starting is the first line of a run.
func (o *Observer) Starting() {
	fields := []zap.Field{zap.String("version", o.opt.Version)}
	if o.opt.LogFormat != "json" { // there every line has these two
		fields = append(fields, zap.String("application_id", o.opt.ApplicationID), zap.String("instance", o.opt.Instance))
	}
	o.log.Info("starting", append(fields, zap.String("topology", o.opt.Topology), zap.String("guarantee", o.opt.Guarantee), zap.String("go", runtime.Version()))...)
}
