package rebalance

import (
	"context"
	"errors"
	"sync"
	"time"

	"millrace/crash"
	"millrace/eos"
	"millrace/record"
	"millrace/store"
	"millrace/task"
)

// Producer is the transactional producer of the process. Only one goroutine at a time uses it: the one that commits, or
// the one that fences.
type Producer interface {
	eos.Producer
	// Fence takes a new producer epoch and thereby decides what an earlier process or epoch left open.
	Fence(ctx context.Context) error
}

// Fetcher feeds tasks.
type Fetcher interface {
	Add(tp record.TopicPartition, next record.Offset, sink task.Sink)
	Remove(tp record.TopicPartition)
}

// Listener hears what the manager does.
type Listener interface {
	Assigned(active []record.TaskID, generation int32, took time.Duration)
	Revoked(tasks []record.TaskID, lost bool)
	State(state string)
	Ready(tasks int, took time.Duration)
	Committed(record.CommitStats)
	Aborted(result string, err error)
	Recovering(cause error, attempt int)
	TaskFailed(task record.TaskID, err error)
	Watermarks([]record.WatermarkStatus)
	StoreStats(record.StoreStats)
	TaskStats(record.TaskStats)
	DiskFree(bytes int64)
	Warn(code, message string, fields ...any)
	Draining()
}

// Options of a Manager.
type Options struct {
	Layout   *Layout
	Task     task.Options
	Producer Producer
	Fetcher  Fetcher
	Listener Listener
	// Purge deletes records of a repartition topic that all of us have committed; nil: nothing is purged.
	Purge func(topic string, before map[int32]record.Offset)
	// FreeBytes tells the room on the state's disk; nil: it is not watched.
	FreeBytes func() (int64, error)
	MinFree   int64

	CommitInterval     time.Duration
	LingerInterval     time.Duration // 0: epochs end by CommitInterval alone
	TransactionTimeout time.Duration
	ReleaseTimeout     time.Duration // how long a rebalance may wait for the last commit of revoked tasks
	CacheBytes         int           // of all tasks together
	Clock              func() time.Time
}

// Manager runs the tasks that the group gives us. Everything happens on the goroutine of Run; other goroutines send it
// events. Starting a task, committing and fencing take long, so they run beside it and come back as events.
type Manager struct {
	options Options
	events  chan func()
	hurry   chan struct{}
	quiet   chan struct{}
	ctx     context.Context // of starts, tasks and commits: ends when everything is to be dropped
	cancel  context.CancelCauseFunc
	work    sync.WaitGroup

	mu    sync.Mutex
	owned map[record.TaskID]int64 // what may be committed, with the number of our claim; see eos.Epoch.Owned
	claim int64                   // the last number

	want       map[record.TaskID]bool // assigned to us
	generation int32
	running    map[record.TaskID]*worker
	starting   map[record.TaskID]*attempt
	kept       map[record.TaskID]*store.State // of tasks that will start again
	closing    map[record.TaskID]bool         // states that are being closed
	failures   map[record.TaskID]int
	retryAt    map[record.TaskID]time.Time
	assignedAt time.Time
	ready      bool

	fenced     bool
	fencing    bool
	committing *epoch
	overdue    bool // the next epoch should have ended while this one is under way
	attempts   int  // failed epochs in a row
	number     int64
	lastEpoch  time.Time // when the last one began to be committed
	diskFull   bool
	draining   bool
	purged     map[record.TopicPartition]record.Offset
}

// worker is a running task.
type worker struct {
	task     *task.Task
	readings []task.Reading // what it is fed, as of its start
	cancel   context.CancelFunc
}

// New returns a manager without tasks.
func New(o Options) *Manager {
	m := &Manager{options: o, events: make(chan func()), hurry: make(chan struct{}, 1), quiet: make(chan struct{}, 1), owned: map[record.TaskID]int64{}, want: map[record.TaskID]bool{},
		running: map[record.TaskID]*worker{}, starting: map[record.TaskID]*attempt{}, kept: map[record.TaskID]*store.State{}, closing: map[record.TaskID]bool{},
		failures: map[record.TaskID]int{}, retryAt: map[record.TaskID]time.Time{}, purged: map[record.TopicPartition]record.Offset{}}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.options.Task.Hurry = m.Hurry
	if o.LingerInterval > 0 {
		m.options.Task.Quiet = m.nudge
	}
	m.options.Task.FlushSlots = make(chan struct{}, 1)
	return m
}

// Hurry asks for the epoch to end as soon as it can.
func (m *Manager) Hurry() { signal(m.hurry) }

// nudge says that a task has done all that has arrived.
func (m *Manager) nudge() { signal(m.quiet) }

// signal leaves a token unless one waits already.
func signal(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// send runs f on the manager's goroutine; false when the manager has ended.
func (m *Manager) send(f func()) bool {
	select {
	case m.events <- f:
		return true
	case <-m.ctx.Done():
		return false
	}
}

var errStopped = errors.New("the manager has stopped")

const (
	lookEvery   = time.Second
	purgeEvery  = 10 * time.Second
	restartMost = 30 * time.Second
)

// Run works until ctx ends, then commits what is done, closes all states and returns. deadline bounds that: when it is
// over everything is dropped, which is always safe, since nothing uncommitted is on disk.
func (m *Manager) Run(ctx context.Context, deadline time.Duration) error {
	commit := time.NewTimer(m.options.CommitInterval)
	look := time.NewTicker(lookEvery)
	purge := time.NewTicker(purgeEvery)
	early := time.NewTimer(time.Hour) // fires when an epoch may end early
	early.Stop()
	defer early.Stop()
	defer commit.Stop()
	defer look.Stop()
	defer purge.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case f := <-m.events:
			f()
		case <-commit.C:
			m.endEpoch()
			commit.Reset(m.options.CommitInterval)
		case <-m.hurry:
			m.endEpoch()
		case <-m.quiet:
			early.Reset(max(m.options.LingerInterval-m.options.Clock().Sub(m.lastEpoch), 0))
		case <-early.C:
			m.endEpoch()
		case <-look.C:
			m.look()
		case <-purge.C:
			m.purge()
		}
	}
	return m.drain(deadline)
}

// look does what is due once a second: starts that failed before, the disk, and the tasks' own reports.
func (m *Manager) look() {
	m.watchDisk()
	m.schedule()
	var marks []record.WatermarkStatus
	for _, w := range m.running {
		s, err := w.task.Status()
		if err != nil {
			continue // it has ended; its event is on the way
		}
		marks = append(marks, s.Inputs...)
		m.options.Listener.TaskStats(s.Work)
		for _, st := range s.Stores {
			m.options.Listener.StoreStats(st)
		}
	}
	m.options.Listener.Watermarks(marks)
}

// watchDisk stops all work while the state's disk is nearly full: Badger dies of a full one, and takes the process along.
func (m *Manager) watchDisk() {
	if m.options.FreeBytes == nil || m.options.MinFree <= 0 {
		return
	}
	free, err := m.options.FreeBytes()
	if err != nil {
		return // the directory will tell when it is used
	}
	m.options.Listener.DiskFree(free)
	switch {
	case !m.diskFull && free < m.options.MinFree:
		m.diskFull = true
		m.options.Listener.Warn("MR3001", "the disk of state.dir is nearly full; work stops until there is room again", "free_bytes", free, "min_free_bytes", m.options.MinFree)
		m.release(m.tasks())
	case m.diskFull && free > m.options.MinFree+m.options.MinFree/10:
		m.diskFull = false
	}
}

// tasks lists what runs.
func (m *Manager) tasks() []record.TaskID { return sorted(m.running) }

// drain ends everything in order: no more input, one last epoch, states flushed and closed.
func (m *Manager) drain(deadline time.Duration) error {
	m.draining = true
	m.options.Listener.Draining()
	m.options.Listener.State("draining")
	timer := time.AfterFunc(deadline, func() { m.cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	m.release(m.tasks())
	crash.At("drain.committed")
	for len(m.starting) > 0 || len(m.closing) > 0 || m.fencing {
		if m.ctx.Err() != nil {
			break
		}
		m.cancelStarts()
		select {
		case f := <-m.events:
			f()
		case <-m.ctx.Done():
		}
	}
	for id, s := range m.kept {
		m.closeState(id, s)
	}
	for len(m.closing) > 0 && m.ctx.Err() == nil {
		select {
		case f := <-m.events:
			f()
		case <-m.ctx.Done():
		}
	}
	crash.At("drain.closed")
	late := context.Cause(m.ctx)
	m.cancel(errStopped)
	m.work.Wait()
	if errors.Is(late, context.DeadlineExceeded) {
		return errors.New("the shutdown took longer than shutdown_timeout; what was not committed is dropped and will be done again")
	}
	return nil
}
