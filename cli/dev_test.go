package cli

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/config"
	"millrace/devbroker"
	"millrace/observe"
	"millrace/record"
)

const devJob = `version: 1
application_id: dev-test
http: { listen: "" }
topology:
  sources:
    clicks:
      topic: clicks
      key: value.user_id
      fields: { ad_id: string, user_id: string, clicked_at: timestamp_ms }
      timestamp: value.clicked_at
      watermark: { max_out_of_orderness: 1s, idle_timeout: 1s }
  steps:
    per_second:
      from: clicks
      group_by: value.ad_id
      window: { type: tumbling, size: 1s }
      aggregate: { clicks: count() }
      emit: final
      late: { to: late }
      to: counts
  sinks:
    counts: { topic: counts }
    late: { topic: late }
tests:
  - name: a second is counted
    input:
      - { source: clicks, key: u, value: { ad_id: a, user_id: u, clicked_at: 1000 } }
      - { source: clicks, key: u, value: { ad_id: a, user_id: u, clicked_at: 5000 } }
    expect:
      counts: [{ key: a, value: { ad_id: a, window_start: 1000, window_end: 2000, clicks: 1 } }]
  - name: wrong on purpose
    input: [{ source: clicks, key: u, value: { ad_id: a, user_id: u, clicked_at: 1000 } }]
    expect:
      counts: [{ key: a, value: { ad_id: a, window_start: 1000, window_end: 2000, clicks: 1 } }]
`

// screen is an output that a test waits for.
type screen struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{}
}

func newScreen() *screen { return &screen{grown: make(chan struct{}, 1)} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.grown <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until the text after what was seen before holds a word.
func (s *screen) await(t *testing.T, from int, word string) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for !strings.Contains(s.String()[from:], word) {
		select {
		case <-s.grown:
		case <-deadline.C:
			t.Fatalf("no %q on the screen:\n%s", word, s)
		}
	}
}

// startDev runs dev until stop, which returns its error.
func startDev(t *testing.T, o devOptions, file string) (out *screen, stop func() error) {
	t.Helper()
	out = newScreen()
	ctx, cancel := context.WithCancel(context.Background())
	end := make(chan error, 1)
	a := &app{stdout: out, stderr: out, check: checkTopology, files: []string{file}, format: "text"}
	go func() { end <- newDev(a, o).run(ctx) }()
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() { cancel(); err = <-end })
		return err
	}
	t.Cleanup(func() { _ = stop() }) // the test has looked at it, or failed before
	return out, stop
}

func writeJob(t *testing.T, dir, text string) string {
	t.Helper()
	file := filepath.Join(dir, "job.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDevShowsResultsAndGoesOnAfterARestart(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker and a job twice")
	}
	dir := t.TempDir()
	file := writeJob(t, dir, devJob)
	o := devOptions{dataDir: filepath.Join(dir, "data"), history: 30 * time.Second, lines: 2,
		load: devbroker.LoadFlags{Generate: []string{"clicks=100/s"}, Late: "10%:5s"}}
	out, stop := startDev(t, o, file)
	out.await(t, 0, "clicks(4) counts(4) late(1)  created")
	out.await(t, 0, "tests      1 passed, 1 FAILED")
	out.await(t, 0, `"clicks":`)
	out.await(t, 0, "late by ")
	out.await(t, 0, "more\n")
	if err := stop(); err != nil {
		t.Fatalf("stop: %v\n%s", err, out)
	}

	out, stop = startDev(t, o, file)
	out.await(t, 0, "all there since an earlier start")
	out.await(t, 0, `"clicks":`)
	if err := stop(); err != nil {
		t.Fatalf("second stop: %v\n%s", err, out)
	}
	if strings.Contains(out.String(), anew) {
		t.Errorf("an unchanged job was built anew:\n%s", out)
	}
}

func TestDevFollowsItsFile(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker and restarts a job")
	}
	dir := t.TempDir()
	file := writeJob(t, dir, devJob)
	out, stop := startDev(t, devOptions{dataDir: filepath.Join(dir, "data"), history: 10 * time.Second, lines: 2, watch: true}, file)
	out.await(t, 0, `"clicks":`)

	seen := len(out.String())
	writeJob(t, dir, strings.Replace(devJob, "value.ad_id", "value.add_id", 1))
	out.await(t, seen, `did you mean "ad_id"?`)
	out.await(t, seen, "the job goes on as it was\n")
	out.await(t, seen, `"clicks":`)

	// Another aggregate gives the rows of the state another meaning, which a job in production would refuse.
	seen = len(out.String())
	writeJob(t, dir, strings.Replace(devJob, "clicks: count()", "clicks: count(), users: approx_distinct(value.user_id)", 1))
	out.await(t, seen, "1 step changed (per_second)")
	out.await(t, seen, anew)
	out.await(t, seen, `"users":`)
	if err := stop(); err != nil {
		t.Fatalf("stop: %v\n%s", err, out)
	}
}

func TestDevRefusesALoadThatFitsNoSource(t *testing.T) {
	dir := t.TempDir()
	file := writeJob(t, dir, devJob)
	for load, want := range map[string]string{"views=5/s": "the job has no such source; it has clicks", "clicks=5": "has no unit"} {
		_, stop := startDev(t, devOptions{dataDir: filepath.Join(dir, "data"), load: devbroker.LoadFlags{Generate: []string{load}}}, file)
		if err := stop(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--generate %s: %v, want %q", load, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Errorf("a refused start left a data folder: %v", err)
	}
}

func TestWatchSeesReplacedFilesAndSwappedLinks(t *testing.T) {
	dir := t.TempDir()
	write := func(version, text string) {
		if err := os.MkdirAll(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		writeJob(t, filepath.Join(dir, version), text)
	}
	link := func(target, name string) {
		// As Kubernetes does: a new link replaces the old one.
		if err := os.Symlink(target, filepath.Join(dir, name+"_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, name+"_tmp"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("..v1", "a")
	link("..v1", "..data")
	link(filepath.Join("..data", "job.yaml"), "job.yaml")
	changed, err := watchFiles(t.Context(), []string{filepath.Join(dir, "job.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	await := func(what string) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not seen", what)
		}
	}
	write("..v2", "b")
	link("..v2", "..data")
	await("a swapped link")
	write("..v2", "c")
	await("a write to the file that the new link leads to")
}

func TestResultsOfOneSecondAreLimitedAndCounted(t *testing.T) {
	var out bytes.Buffer
	r := newResults(&out, 2)
	now := time.Date(2026, 5, 4, 12, 0, 31, 0, time.Local)
	r.clock = func() time.Time { return now }
	rec := func(key, value string, headers ...record.Header) *record.Record {
		return &record.Record{Key: []byte(key), Value: []byte(value), Headers: headers}
	}
	for range 5 {
		r.record("counts", rec("a", `{"n":1}`))
	}
	r.record("late", rec("b", `{}`, record.Header{Key: []byte(headerLateBy), Value: []byte("27140")}))
	r.record("dead_letter", rec("c", "not json", record.Header{Key: []byte(headerError), Value: []byte("no JSON")}))
	now = now.Add(time.Second)
	r.quiet("counts")
	r.quiet("counts")
	start := time.Date(2026, 5, 4, 12, 1, 0, 0, time.Local).UnixMilli()
	r.record("counts", &record.Record{Value: []byte(`{"window_start":` + strconv.FormatInt(start, 10) + `,"n":2}`)})
	r.record("counts", &record.Record{Key: []byte("\x1b[2J")})
	want := `12:00:31  counts  a  {"n":1}
12:00:31  counts  a  {"n":1}
12:00:31  late  b  late by 27.1s  {}
12:00:31  dead_letter  c  no JSON  not json
12:00:31  counts  … and 3 more
12:00:32  counts  -  {"window_start":"12:01:00","n":2}
12:00:32  counts  "\x1b[2J"  (tombstone)
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestColoursTellResultsFromTrouble(t *testing.T) {
	var out bytes.Buffer
	r := newResults(&out, 0)
	if r.colour {
		t.Error("a buffer is taken for a terminal")
	}
	r.colour = true
	for name, c := range map[string]struct{ header, want string }{
		"result": {"other", "\x1b[36ms\x1b[0m"}, "late": {headerLateBy, "\x1b[33ms\x1b[0m"}, "dead letter": {headerError, "\x1b[31ms\x1b[0m"},
	} {
		out.Reset()
		r.record("s", &record.Record{Headers: []record.Header{{Key: []byte(c.header), Value: []byte("1")}}})
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %q, want %q in it", name, out.String(), c.want)
		}
	}
}

func TestAnEmptyAddressSwitchesHTTPOff(t *testing.T) {
	// The default address is in use, by us or by somebody else: whoever listened there anyway would fail.
	if l, err := net.Listen("tcp", observe.DefaultListen); err == nil {
		defer l.Close()
	}
	job, _ := config.Load(config.LoadOptions{Files: []string{writeJob(t, t.TempDir(), devJob)}})
	r := &replica{app: &app{stdout: io.Discard, stderr: io.Discard}, job: job}
	var err error
	if r.plan, err = r.compile(nil); err == nil {
		err = r.observe("test")
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped, err := r.serve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-stopped
}

func TestChangesAreToldByName(t *testing.T) {
	load := func(text string) *config.Config {
		job, list := config.Load(config.LoadOptions{Files: []string{writeJob(t, t.TempDir(), text)}, Sets: []string{"kafka.bootstrap_servers=b:1", "state.dir=x"}})
		if config.HasErrors(list) {
			t.Fatalf("%v", list)
		}
		return job
	}
	before := load(devJob)
	for name, c := range map[string]struct{ old, new, want string }{
		"a comment":   {"topology:", "# what it does\ntopology:", "nothing that the job does"},
		"a step":      {"size: 1s", "size: 2s", "1 step changed (per_second)"},
		"a new sink":  {"    late: { topic", "    more: { topic: more }\n    late: { topic", "1 sink added (more)"},
		"another one": {"sources:\n    clicks:", "sources:\n    taps:", "1 source added (taps), 1 source removed (clicks)"},
		"a setting":   {"version: 1", "version: 1\nshutdown_timeout: 9s", "settings changed"},
	} {
		if got := describeChanges(before, load(strings.Replace(devJob, c.old, c.new, 1))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestSinksOfLateRecordsAloneAreNarrow(t *testing.T) {
	job, _ := config.Load(config.LoadOptions{Files: []string{writeJob(t, t.TempDir(), devJob)}})
	got := ""
	for _, topic := range devTopics(job.Spec) {
		got += topic.name + "=" + strconv.Itoa(int(topic.partitions)) + " "
	}
	if want := "clicks=4 counts=4 late=1 "; got != want {
		t.Errorf("topics %s, want %s", got, want)
	}
}
