package observe

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millrace/record"
)

// ask sends one request to the handler.
func (s *story) ask(method, path string, p Pages) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler(p).ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func (s *story) get(path string) *httptest.ResponseRecorder { return s.ask("GET", path, Pages{}) }

// into decodes an answer.
func into[T any](t *testing.T, w *httptest.ResponseRecorder) (v T) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return v
}

// The three probes along a life: what each says after each event.
func TestProbesAlongALife(t *testing.T) {
	s := newStory(t, nil)
	tasks := []record.TaskID{task(0, 0)}
	for _, step := range []struct {
		name               string
		do                 func()
		startup, live, red int
	}{
		{"created", func() {}, 503, 200, 503},
		{"connected", func() { s.Connected(3, "c") }, 503, 200, 503},
		{"assigned", func() { s.State("rebalancing"); s.Assigned(tasks, 1, 0) }, 200, 200, 503},
		{"restoring", func() { s.RestoreStarted(tasks[0], "seen", 0, 9, false) }, 200, 200, 503},
		{"restoring for an hour", func() { s.Watermarks(s.marks(5)); s.after(time.Hour) }, 200, 200, 503},
		{"restored", func() { s.Restored(tasks[0], "seen", false, 9, time.Hour) }, 200, 200, 503},
		{"ready, nothing committed, input waits", func() { s.Ready(1, 0) }, 200, 200, 503},
		{"ready, nothing to do", func() { s.Watermarks(s.marks(0)) }, 200, 200, 200},
		{"input waits", func() { s.Watermarks(s.marks(5)) }, 200, 200, 503},
		{"committed", func() { s.Committed(commitOne) }, 200, 200, 200},
		{"another task comes", func() { s.Assigned(append(tasks, task(0, 1)), 2, 0) }, 200, 200, 503},
		{"and is restored", func() { s.Ready(2, 0) }, 200, 200, 200},
		{"a third comes", func() { s.Assigned(append(tasks, task(0, 1), task(0, 2)), 2, 0) }, 200, 200, 503},
		{"and goes before its restore begins", func() {
			s.Revoked([]record.TaskID{task(0, 2)}, false)
			s.Assigned(append(tasks, task(0, 1)), 3, 0)
			s.Ready(2, 0)
			s.RestoreStarted(task(0, 2), "seen", 0, 9, false)
		}, 200, 200, 503},
		{"which ends when it is noticed", func() { s.RestoreGivenUp(task(0, 2), "seen") }, 200, 200, 200},
		{"the same tasks again", func() { s.Assigned(append(tasks, task(0, 1)), 3, 0) }, 200, 200, 200},
		{"an epoch fails", func() { s.Recovering(errors.New("not authorized"), 1) }, 200, 200, 503},
		{"and works again", func() { s.Ready(2, 0) }, 200, 200, 200},
		{"a task fails", func() { s.TaskFailed(task(0, 1), errors.New("not authorized")) }, 200, 200, 503},
		{"and works again, too", func() { s.Ready(2, 0) }, 200, 200, 200},
		{"kafka is away", func() { s.Disconnected(errors.New("dial: refused")) }, 200, 200, 503},
		{"for an hour", func() { s.after(time.Hour) }, 200, 200, 503},
		{"a commit proves that it is back", func() { s.Committed(commitOne) }, 200, 200, 200},
		{"kafka is away again", func() { s.Disconnected(errors.New("dial: refused")) }, 200, 200, 503},
		{"kafka is back", func() { s.Connected(3, "c") }, 200, 200, 200},
		{"wedged", func() { s.after(time.Minute) }, 200, 503, 200},
		{"commits again", func() { s.Committed(commitOne) }, 200, 200, 200},
		{"no tasks left", func() { s.Assigned(nil, 4, 0); s.Watermarks(nil) }, 200, 200, 200},
		{"draining", s.Draining, 200, 200, 503},
		{"error", func() { s.Fatal("MR5001", errors.New("x")) }, 200, 503, 503},
	} {
		step.do()
		for path, want := range map[string]int{
			"/startupz": step.startup, "/livez": step.live, "/ping": step.live, "/readyz": step.red, "/ready": step.red,
		} {
			if w := s.get(path); w.Code != want {
				t.Errorf("%s: %s answers %d, want %d: %s", step.name, path, w.Code, want, w.Body)
			}
		}
	}
}

// The border of "wedged": each condition alone keeps an instance alive.
func TestWedgedNeedsAllItsConditions(t *testing.T) {
	wedge := func(change func(*story)) bool {
		s := newStory(t, func(o *Options) { o.StallTimeout = 90 * time.Second })
		s.Connected(1, "c")
		s.Assigned([]record.TaskID{task(0, 0)}, 1, 0)
		s.Ready(1, 0)
		s.Watermarks(s.marks(5))
		s.after(89 * time.Second)
		change(s)
		s.after(time.Second)
		return !s.live().ok()
	}
	if !wedge(func(*story) {}) {
		t.Error("not wedged although nothing commits: the other cases prove nothing")
	}
	for name, change := range map[string]func(*story){
		"commit":      func(s *story) { s.Committed(commitOne) },
		"no input":    func(s *story) { s.Watermarks(s.marks(0)) },
		"new input":   func(s *story) { s.Watermarks(s.marks(0)); s.Watermarks(s.marks(5)) },
		"restore":     func(s *story) { s.RestoreStarted(task(0, 0), "seen", 0, 5, false) },
		"new task":    func(s *story) { s.Assigned([]record.TaskID{task(0, 0), task(0, 1)}, 2, 0) },
		"no task":     func(s *story) { s.Assigned(nil, 2, 0) },
		"broker away": func(s *story) { s.Disconnected(errors.New("x")) },
		"reconnected": func(s *story) { s.Disconnected(errors.New("x")); s.Connected(1, "c") },
		"draining":    func(s *story) { s.Draining() },
		"tasks gone":  func(s *story) { s.Revoked([]record.TaskID{task(0, 0)}, true) },
	} {
		if wedge(change) {
			t.Errorf("%s: wedged", name)
		}
	}
	if !wedge(func(s *story) { s.Watermarks(s.marks(7)); s.Aborted("failed", errors.New("x")) }) {
		t.Error("more input or a failed commit counts as progress")
	}
}

// An instance that got no task has nothing to restore and nothing to commit: a rolling update must not wait for it.
func TestSpareInstanceIsReady(t *testing.T) {
	s := newStory(t, nil)
	s.Connected(3, "c")
	s.Assigned(nil, 1, 0)
	if w := s.get("/readyz"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestVerboseProbe(t *testing.T) {
	s := newStory(t, nil)
	s.run()
	if got, want := s.get("/livez?verbose").Body.String(), "[+]state: running\n[+]progress: 120 records wait, last progress 0s ago, limit 1m0s\nok\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := s.get("/readyz").Body.String(); got != "ok\n" {
		t.Errorf("got %q", got)
	}
}

func TestProblemsFollowTheStandard(t *testing.T) {
	s := newStory(t, nil)
	topology := Pages{Topology: func(f string) (string, error) { return "", codedError{errors.New("plan: boom\n")} }}
	for _, c := range []struct {
		method, path string
		status       int
		code, detail string
	}{
		{"GET", "/v1/nothing", 404, "MR5003", "nothing at this path"},
		{"GET", "/v1/topology", 404, "MR5003", ""},
		{"GET", "/debug/config", 404, "MR5003", ""},
		{"GET", "/debug/pprof/", 404, "MR5003", ""},
		{"GET", "/readyz", 503, "MR5007", "joined; kafka; restored"},
		{"POST", "/v1/status", 405, "MR5004", "POST"},
		{"DELETE", "/", 405, "MR5004", "DELETE"},
	} {
		w := s.ask(c.method, c.path, Pages{})
		p := into[problem](t, w)
		if w.Code != c.status || p.Status != c.status || p.Code != c.code || !strings.Contains(p.Detail, c.detail) || p.Title == "" ||
			w.Header().Get("Content-Type") != "application/problem+json" || p.Type != "urn:millrace:error:"+strings.ToLower(c.code) {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
		if c.status == 405 && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s: no Allow header", c.method, c.path)
		}
	}
	if w := s.ask("GET", "/v1/topology?format=png", topology); w.Code != 400 || into[problem](t, w).Code != "MR5005" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := s.ask("GET", "/v1/topology", topology); w.Code != 500 || into[problem](t, w).Code != "MR2099" || into[problem](t, w).Detail != `plan: boom\n` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestCallerPages(t *testing.T) {
	s := newStory(t, nil)
	p := Pages{
		Topology: func(f string) (string, error) { return "plan as " + f, nil },
		Config:   func() (string, error) { return "password: ***", nil },
	}
	for path, want := range map[string][2]string{
		"/v1/topology":                {"plan as text", plainText},
		"/v1/topology?format=json":    {"plan as json", "application/json"},
		"/v1/topology?format=mermaid": {"plan as mermaid", plainText},
		"/v1/topology?format=dot":     {"plan as dot", "text/vnd.graphviz; charset=utf-8"},
		"/debug/config":               {"password: ***", plainText},
	} {
		w := s.ask("GET", path, p)
		if w.Code != 200 || w.Body.String() != want[0] || w.Header().Get("Content-Type") != want[1] {
			t.Errorf("%s: %d %q %q", path, w.Code, w.Body, w.Header().Get("Content-Type"))
		}
	}
}

func TestStatusDocument(t *testing.T) {
	s := newStory(t, nil)
	s.run()
	s.after(4 * time.Second)
	s.Aborted("aborted", errors.New("<script>alert(1)</script>"))
	d := into[statusDoc](t, s.get("/v1/status"))
	if d.State != "running" || !d.Ready || !d.Live || !d.SafeToStop || d.LagRecords != 120 || d.Commits.OK != 1 || d.Commits.Aborted != 1 {
		t.Errorf("%+v", d)
	}
	if len(d.Tasks) != 4 || d.Tasks[3] != (taskDoc{"1_0", "active", "running"}) {
		t.Errorf("tasks %+v", d.Tasks)
	}
	if got, want := d.Steps["clicks_per_ad_minute"], (stepDoc{In: 5900, Out: 90, Late: 14, Filtered: 60, Dropped: 10}); got != want {
		t.Errorf("steps %+v, want %+v", got, want)
	}
	if d.Commits.LastAgeSeconds == nil || *d.Commits.LastAgeSeconds != 4 || d.Commits.LastEpoch != 17 {
		t.Errorf("commits %+v", d.Commits)
	}
	if d.LastError == nil || d.LastError.Code != "MR2002" || !strings.Contains(d.LastError.Error, "<script>") {
		t.Errorf("last error %+v", d.LastError)
	}
	if body := s.get("/v1/status").Body.String(); strings.Contains(body, "<script>") {
		t.Error("markup is not escaped in JSON")
	}
}

func TestWatermarkDocument(t *testing.T) {
	s := newStory(t, nil)
	s.run()
	got := into[map[string][]watermarkDoc](t, s.get("/v1/watermarks"))["watermarks"]
	if len(got) != 3 || got[0].Partition != 0 || !got[0].Holding || got[0].LagRecords != 120 || *got[0].DelaySeconds != 15.4 {
		t.Fatalf("%+v", got)
	}
	if got[2].Watermark != "" || got[2].DelaySeconds != nil || !got[2].Idle {
		t.Errorf("a partition without records shows a time: %+v", got[2])
	}
}

func TestRestoreDocument(t *testing.T) {
	s := newStory(t, nil)
	s.RestoreStarted(task(0, 4), "visits", 1000, 11000, true)
	s.after(10 * time.Second)
	s.RestoreProgress(task(0, 4), "visits", 6000, 11000)
	s.RestoreProgress(task(9, 9), "unknown", 1, 2)
	type doc struct {
		Restoring int
		Restores  []restoreDoc
	}
	d := into[doc](t, s.get("/v1/restore"))
	if d.Restoring != 1 || len(d.Restores) != 1 {
		t.Fatalf("%+v", d)
	}
	r := d.Restores[0]
	if r.Percent != 50 || r.RatePerSecond != 500 || r.ETASeconds == nil || *r.ETASeconds != 10 || r.Remaining != 5000 || r.State != "running" || !r.Reused {
		t.Errorf("half way: %+v", r)
	}
	s.after(30 * time.Second)
	if r = into[doc](t, s.get("/v1/restore")).Restores[0]; r.RatePerSecond >= 500 {
		t.Errorf("a restore that stands still keeps its rate: %+v", r)
	}
	s.Restored(task(0, 4), "visits", true, 4000, 40*time.Second)
	if d = into[doc](t, s.get("/v1/restore")); d.Restoring != 0 || d.Restores[0].State != "done" || d.Restores[0].Percent != 100 || d.Restores[0].Position != 11000 || d.Restores[0].Replayed != 4000 {
		t.Errorf("done: %+v", d)
	}
}

// Every answer carries the headers that keep a browser from guessing and from running anything.
func TestHeaders(t *testing.T) {
	s := newStory(t, nil)
	for _, path := range []string{
		"/", "/ui/app.js", "/ui/style.css", "/nothing", "/livez", "/readyz", "/startupz", "/ping", "/ready", "/metrics",
		"/version", "/v1/status", "/v1/watermarks", "/v1/restore", "/v1/topology", "/debug/config",
	} {
		h := s.get(path).Header()
		if h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Content-Type") == "" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

// The page needs nothing but this server and runs no script of its own markup.
func TestPageIsSelfContained(t *testing.T) {
	s := newStory(t, nil)
	for path, kind := range map[string]string{"/": "text/html", "/ui/app.js": "javascript", "/ui/style.css": "text/css"} {
		w := s.get(path)
		if w.Code != 200 || !strings.Contains(w.Header().Get("Content-Type"), kind) || w.Body.Len() < 200 {
			t.Errorf("%s: %d %s", path, w.Code, w.Header())
		}
		for _, bad := range []string{"http://", "https://", "innerHTML", "insertAdjacentHTML", "eval(", "onclick=", "style=", "<script>"} {
			if strings.Contains(w.Body.String(), bad) {
				t.Errorf("%s contains %s", path, bad)
			}
		}
	}
}

func TestMetricsAndVersion(t *testing.T) {
	s := newStory(t, nil)
	s.run()
	if body := s.get("/metrics").Body.String(); !strings.Contains(body, `millrace_commits_total{application_id="ad-clicks",result="ok"} 1`) {
		t.Error(body)
	}
	if v := into[map[string]string](t, s.get("/version")); v["version"] != "0.3.0" || v["revision"] != "abc123" || v["go_version"] != goVersion {
		t.Errorf("%v", v)
	}
}
