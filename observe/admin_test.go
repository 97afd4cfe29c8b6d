package observe

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const token = "0123456789abcdef"

// admin sends one request with a body to a handler that has a token.
func (s *story) admin(method, path, authorization, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	s.Handler(Pages{AdminToken: token}).ServeHTTP(w, r)
	return w
}

// Nobody gets in without the token, and without one in the configuration there is nothing to get into.
func TestAdministrationAsksForItsToken(t *testing.T) {
	s := newStory(t, nil)
	for _, route := range [][2]string{{"GET", "/v1/log-level"}, {"PUT", "/v1/log-level"}, {"GET", "/debug/pprof/"}, {"GET", "/debug/pprof/heap"},
		{"GET", "/debug/pprof/profile"}, {"GET", "/debug/pprof/trace"}, {"GET", "/debug/pprof/symbol"}, {"GET", "/debug/pprof/cmdline"}} {
		for _, wrong := range []string{"", "Bearer ", "Bearer " + token[1:], "Bearer " + token + "0", "Basic " + token, token} {
			w := s.admin(route[0], route[1], wrong, `{"level":"debug"}`)
			if p := into[problem](t, w); w.Code != http.StatusUnauthorized || p.Code != "MR5008" || w.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s %s with %q: %d %s", route[0], route[1], wrong, w.Code, w.Body)
			}
		}
		if w := s.ask(route[0], route[1], Pages{}); w.Code != http.StatusNotFound {
			t.Errorf("%s %s without a token in the configuration: %d", route[0], route[1], w.Code)
		}
	}
	if got := s.level.String(); got != "info" {
		t.Errorf("the log level is %s", got)
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=1", "/debug/pprof/trace?seconds=1"} {
		if w := s.admin("GET", path, "Bearer "+token, ""); w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
	}
	if w := s.admin("POST", "/v1/log-level", "Bearer "+token, ""); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD, PUT" {
		t.Errorf("%d, allowed are %q", w.Code, w.Header().Get("Allow"))
	}
}

func TestTheLogLevelChangesForAWhile(t *testing.T) {
	s := newStory(t, nil)
	put := func(body string) *httptest.ResponseRecorder {
		return s.admin("PUT", "/v1/log-level", "Bearer "+token, body)
	}
	shows := func(level, lasts string) {
		t.Helper()
		got := into[logLevelDoc](t, s.admin("GET", "/v1/log-level", "Bearer "+token, ""))
		if got.Level != level || got.For != lasts {
			t.Errorf("level %+v, want %s for %q", got, level, lasts)
		}
	}
	debugged := func() bool {
		s.out.take()
		s.Flushed(task(0, 0), 1, 1, time.Second)
		return strings.Contains(s.out.take(), "flushed")
	}
	shows("info", "")
	if w := put(`{"level":"debug","for":"5m"}`); w.Code != http.StatusOK || !debugged() {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.after(2 * time.Minute)
	shows("debug", "3m0s")
	s.after(3 * time.Minute)
	shows("info", "")
	if debugged() {
		t.Error("the level stays when its time is over")
	}
	put(`{"level":"warn"}`)
	put(`{"level":"debug","for":"1s"}`)
	s.after(time.Second)
	shows("warn", "")
	for _, bad := range []string{"", "{}", `{"level":"loud"}`, `{"level":"fatal"}`, `{"level":"debug","for":"-1s"}`, `{"level":"debug","for":"long"}`, `{"level":"debug","fro":"1s"}`} {
		if w := put(bad); w.Code != http.StatusBadRequest || into[problem](t, w).Code != "MR5005" {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
	shows("warn", "")
}

func TestProfilesAreBounded(t *testing.T) {
	for asked, want := range map[string]string{"": "10", "seconds=3": "3", "seconds=9999": "25", "seconds=-1": "10", "seconds=x": "10"} {
		var got string
		h := bounded(func(_ http.ResponseWriter, r *http.Request) { got = r.FormValue("seconds") })
		if h(nil, httptest.NewRequest("GET", "/debug/pprof/profile?"+asked, nil)); got != want {
			t.Errorf("%q becomes %s seconds, want %s", asked, got, want)
		}
	}
}
