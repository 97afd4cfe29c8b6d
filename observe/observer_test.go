package observe

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"millrace/record"
)

var update = flag.Bool("update", false, "write golden files and docs anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// story is an observer with a clock that the test moves and an output that it reads.
type story struct {
	*Observer
	t   *testing.T
	out output
	mu  sync.Mutex
	now time.Time
}

type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

// take returns what was written since the last take.
func (o *output) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.buf.String()
	o.buf.Reset()
	return s
}

func newStory(t *testing.T, change func(*Options)) *story {
	t.Helper()
	s := &story{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	opt := Options{
		ApplicationID: "ad-clicks", Instance: "ad-clicks-0", Version: "0.3.0", Revision: "abc123", Topology: "7c1f0a2e",
		Guarantee: "exactly_once", Out: &s.out, PartitionLabels: true, TasksMax: 8, Clock: s.clock,
	}
	if change != nil {
		change(&opt)
	}
	o, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	s.Observer = o
	return s
}

func (s *story) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// after moves the clock and lets the observer do what is due.
func (s *story) after(d time.Duration) {
	s.mu.Lock()
	s.now = s.now.Add(d)
	s.mu.Unlock()
	s.Tick(s.clock())
}

func task(sub int, partition int32) record.TaskID {
	return record.TaskID{Subtopology: sub, Partition: partition}
}

// run lets the observer see the life of an instance with one source, one windowed step and one sink, up to the point
// where it processes records and input waits.
func (s *story) run() {
	s.Starting()
	s.after(138 * time.Millisecond)
	s.Connected(3, "lkc-9x")
	s.State("rebalancing")
	s.after(415 * time.Millisecond)
	s.Assigned([]record.TaskID{task(0, 1), task(0, 0), task(0, 2), task(1, 0)}, 4, 412*time.Millisecond)
	s.State("restoring")
	s.RestoreStarted(task(1, 0), "clicks_per_ad_minute", 1000, 5000, true)
	s.RestoreStarted(task(0, 0), "seen", 0, 20000, false)
	s.after(2 * time.Second)
	s.RestoreProgress(task(1, 0), "clicks_per_ad_minute", 3000, 5200)
	s.Restored(task(1, 0), "clicks_per_ad_minute", true, 812, 2041*time.Millisecond)
	s.after(4 * time.Second)
	s.RestoreProgress(task(0, 0), "seen", 12000, 20000)
	s.after(4 * time.Second)
	s.RestoreProgress(task(0, 0), "seen", 16000, 20000)
	s.after(time.Second)
	s.Restored(task(0, 0), "seen", false, 19000, 11*time.Second)
	s.Ready(4, 11041*time.Millisecond)
	s.State("running")
	s.Committed(commitOne)
	s.Watermarks(s.marks(120))
	s.StoreStats(record.StoreStats{Task: task(1, 0), Store: "clicks_per_ad_minute", Keys: 1900, Bytes: 212 << 20, CacheHits: 94, CacheMisses: 6,
		ValueLogBytes: 4096, Operations: [record.StoreOperations]*record.Spread{record.StoreGet: spread(300, 900), record.StoreScan: spread(5e6)}})
	s.TaskStats(record.TaskStats{Task: task(1, 0), Busy: 1500 * time.Millisecond, Backpressured: 250 * time.Millisecond, Windows: []record.OpenWindows{{Step: "clicks_per_ad_minute", N: 3}}})
	s.KafkaRequest("fetch", "ok", 20*time.Millisecond)
	s.DiskFree(5 << 30)
	s.Flushed(task(1, 0), 1900, 1<<20, 80*time.Millisecond)
}

func spread(values ...int64) *record.Spread {
	s := &record.Spread{}
	for _, v := range values {
		s.Add(v)
	}
	return s
}

var commitOne = record.CommitStats{
	Epoch: 17, Records: 6000, Outputs: 90, Bytes: 64000,
	Produce: 20 * time.Millisecond, Offsets: 3 * time.Millisecond, EndTxn: 12 * time.Millisecond, Total: 38 * time.Millisecond,
	Changelog: []record.StoreWrites{{Store: "clicks_per_ad_minute", Records: 75, Bytes: 9000}},
	Tallies: []record.Tally{
		{What: record.Consumed, Where: "clicks", Detail: "ad.clicks", N: 6000, Bytes: 480000},
		{What: record.In, Where: "clicks_per_ad_minute", N: 5900},
		{What: record.Out, Where: "clicks_per_ad_minute", N: 90},
		{What: record.Late, Where: "clicks_per_ad_minute", N: 14},
		{What: record.LateWindow, Where: "clicks_per_ad_minute", N: 28},
		{What: record.Filtered, Where: "clicks_per_ad_minute", N: 60},
		{What: record.Dropped, Where: "clicks_per_ad_minute", Detail: "null_key", N: 10},
		{What: record.DeadLettered, Where: "clicks", Detail: "deserialization", N: 30},
		{What: record.Produced, Where: "per_minute", Detail: "ad.clicks.per-minute", N: 90, Bytes: 7000},
		{What: record.WindowClosed, Where: "clicks_per_ad_minute", N: 44},
		{What: record.Expired, Where: "clicks_per_ad_minute", N: 5},
		{What: record.ExpressionError, Where: "clicks_per_ad_minute", Detail: "spend", N: 2},
		{What: record.Lateness, Where: "clicks", Spread: spread(0, 0, 3, 5000)},
		{What: record.Latency, Where: "per_minute", Spread: spread(61_000)},
	},
}

// marks are three partitions: one holds time back, one is ahead, one is idle and had no record yet.
func (s *story) marks(lag int64) []record.WatermarkStatus {
	now := s.clock().UnixMilli()
	return []record.WatermarkStatus{
		{Source: "clicks", Topic: "ad.clicks", Partition: 1, MaxEventTime: now - 200, Watermark: now - 15200},
		{Source: "clicks", Topic: "ad.clicks", Partition: 0, MaxEventTime: now - 400, Watermark: now - 15400, Holding: true, Lag: lag, Oldest: now - 2500},
		{Source: "clicks", Topic: "ad.clicks", Partition: 2, MaxEventTime: record.NoTime, Watermark: record.NoTime, Idle: true},
	}
}

// golden compares got with a file of the repository, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Errorf("%s differs; if that is meant, run the test with -update\n%s", path, d)
	}
}

// A whole run, as a person reads it.
func TestRunOnTheConsole(t *testing.T) {
	s := newStory(t, nil)
	s.run()
	s.after(2 * time.Minute)
	s.Aborted("aborted", errors.New("produce ad.clicks.per-minute-3: request timed out"))
	s.Recovering(errors.New("produce ad.clicks.per-minute-3: request timed out"), 1)
	s.Revoked([]record.TaskID{task(0, 2)}, false)
	s.Revoked([]record.TaskID{task(0, 1)}, true)
	s.TaskFailed(task(0, 0), errors.New("step clicks: expression spend: division by zero at ad.clicks-0@42"))
	s.Draining()
	s.Stopped(nil)
	got := strings.ReplaceAll(s.out.take(), "go="+goVersion, "go=GO")
	golden(t, "testdata/run.log", got)
}

// The ready line of a later rebalance tells of its own restores only.
func TestReadyCountsEachRestoreOnce(t *testing.T) {
	s := newStory(t, nil)
	s.run()
	s.out.take()
	s.Assigned([]record.TaskID{task(0, 0), task(0, 1), task(0, 2), task(0, 5), task(1, 0)}, 5, 0)
	s.RestoreStarted(task(0, 5), "seen", 0, 7, true)
	s.Restored(task(0, 5), "seen", true, 7, time.Second)
	s.Ready(5, time.Second)
	if out := s.out.take(); !strings.Contains(out, "tasks=5 restored=1 reused=1 replayed=7") {
		t.Errorf("%s", out)
	}
}

func TestNewRefusesUnknownOptions(t *testing.T) {
	for _, c := range []struct {
		opt  Options
		want string
	}{
		{Options{}, "application id"},
		{Options{ApplicationID: "a", Out: &output{}, LogLevel: "loud"}, `log level "loud": want debug`},
		{Options{ApplicationID: "a", Out: &output{}, LogLevel: "fatal"}, `log level "fatal": want debug`},
		{Options{ApplicationID: "a", Out: &output{}, LogFormat: "xml"}, `log format "xml": want console or json`},
	} {
		if _, err := New(c.opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%+v): %v, want %q", c.opt, err, c.want)
		}
	}
}

// All methods may be called from any goroutine, scrapes and ticks included; the race detector judges.
func TestConcurrentUse(t *testing.T) {
	s := newStory(t, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			id := task(0, int32(i))
			for range 20 {
				s.RestoreStarted(id, "seen", 0, 10, false)
				s.RestoreProgress(id, "seen", 5, 10)
				s.Restored(id, "seen", false, 10, time.Second)
				s.Committed(commitOne)
				s.Watermarks(s.marks(1))
				s.Warn("MR3001", "state disk is nearly full", "free", 10)
				s.Revoked([]record.TaskID{id}, false)
				s.after(time.Second)
				s.status()
				if _, err := s.metrics.registry.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := s.status().Commits.OK; got != 160 {
		t.Errorf("commits %d, want 160", got)
	}
}

func TestTaskList(t *testing.T) {
	for _, c := range []struct {
		in   []record.TaskID
		want string
	}{
		{nil, ""},
		{[]record.TaskID{task(0, 3)}, "0_3"},
		{[]record.TaskID{task(0, 4), task(0, 3)}, "0_3,0_4"},
		{[]record.TaskID{task(1, 0), task(0, 2), task(0, 1), task(0, 0), task(1, 2)}, "0_0..0_2,1_0,1_2"},
	} {
		if got := taskList(c.in); got != c.want {
			t.Errorf("taskList(%v) = %q, want %q", c.in, got, c.want)
		}
	}
}
