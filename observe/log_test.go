package observe

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var goVersion = runtime.Version()

func TestCleanValues(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain ünïcode 東京", "plain ünïcode 東京"},
		{"a\r\nINFO forged", `a\r\nINFO forged`},
		{"\x1b[2J\x1b[31mred", `\x1b[2J\x1b[31mred`},
		{"bad\xffutf8", `bad\xffutf8`},
		{"left\u202eright", `left\u202eright`},
		{"nul\x00", `nul\x00`},
	} {
		if got := clean(c.in); got != c.want {
			t.Errorf("clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	long := clean(strings.Repeat("é", 2000))
	if !strings.HasSuffix(long, "...(2976 more bytes)") || !utf8.ValidString(long) || len(long) > maxValue+40 {
		t.Errorf("long value: %d bytes, ends in %q", len(long), long[len(long)-30:])
	}
}

func TestNothingUnprintableGetsThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		got := clean(in)
		if !printable(got) {
			t.Fatalf("clean(%q) = %q is not printable", in, got)
		}
		if printable(in) && len(in) <= maxValue && got != in {
			t.Fatalf("clean(%q) = %q changed a harmless value", in, got)
		}
	})
}

// One event is one line, whatever its values hold.
func TestOneEventOneLine(t *testing.T) {
	for _, format := range []string{"console", "json"} {
		s := newStory(t, func(o *Options) { o.LogFormat = format })
		s.Connected(1, "evil\n12:00:00 ERROR forged\x1b[2J")
		s.Warn("MR3001", "state disk\nforged", "path", "/x\ny", "odd")
		s.Recovering(fmt.Errorf("wrapped: %w", errors.New("broker\r\nsays\x1b[2J no")), 1)
		out := s.out.take()
		if n := strings.Count(out, "\n"); n != 3 {
			t.Errorf("%s: %d lines, want 3:\n%s", format, n, out)
		}
		if strings.ContainsAny(out, "\x1b\r") {
			t.Errorf("%s: a control character got through: %q", format, out)
		}
	}
}

func TestJSONLinesCarryTheirOrigin(t *testing.T) {
	s := newStory(t, func(o *Options) { o.LogFormat = "json" })
	s.Aborted("fenced", errors.New("end transaction: producer fenced"))
	var line map[string]any
	if err := json.Unmarshal([]byte(s.out.take()), &line); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]string{
		"time": "2026-03-01T12:00:00.000Z", "level": "warn", "msg": "commit fenced", "application_id": "ad-clicks",
		"instance": "ad-clicks-0", "code": "MR2003", "error": "end transaction: producer fenced",
	} {
		if line[k] != want {
			t.Errorf("%s = %v, want %q", k, line[k], want)
		}
	}
}

type hidden struct{ secret string }

func (hidden) String() string { return "***" }

// Neither secrets nor parts of records are in the log, unless somebody asks for the latter with debug.
func TestLogHidesSecretsAndPayloads(t *testing.T) {
	const canary = "canary-5b1e"
	warn := func(level string) string {
		s := newStory(t, func(o *Options) { o.LogLevel = level })
		s.Warn("MR4002", "record skipped", "key", []byte(canary), "value", canary, "topic", "ad.clicks", "offset", int64(7))
		return s.out.take()
	}
	if out := warn("info"); strings.Contains(out, canary) || !strings.Contains(out, `key="(11 bytes)"`) || !strings.Contains(out, "offset=7") {
		t.Errorf("info: %s", out)
	}
	if out := warn("debug"); !strings.Contains(out, "value="+canary) {
		t.Errorf("debug: %s", out)
	}
	for _, format := range []string{"console", "json"} {
		s := newStory(t, func(o *Options) { o.LogFormat, o.LogLevel = format, "debug" })
		s.Warn("MR2001", "login failed", "password", hidden{canary}, "settings", map[string]hidden{"a": {canary}})
		if out := s.out.take(); strings.Contains(out, canary) || !strings.Contains(out, "***") {
			t.Errorf("%s: %s", format, out)
		}
	}
}

func TestLevels(t *testing.T) {
	s := newStory(t, func(o *Options) { o.LogLevel = "warn" })
	s.run()
	if out := s.out.take(); out != "" {
		t.Errorf("an undisturbed run warns:\n%s", out)
	}
	s.Aborted("failed", errors.New("x"))
	if out := s.out.take(); !strings.Contains(out, "WARN") {
		t.Errorf("no warning in %q", out)
	}
	s = newStory(t, func(o *Options) { o.LogLevel = "debug" })
	s.run()
	if out := s.out.take(); !strings.Contains(out, "flushed") {
		t.Errorf("debug does not show flushes:\n%s", out)
	}
}

// The first of equal warnings is written at once, the others come as a count; another error is news.
func TestEqualWarningsAreSampled(t *testing.T) {
	s := newStory(t, nil)
	for i := range 100 {
		s.Recovering(fmt.Errorf("produce out-3: timed out at offset %d", i), i+1)
	}
	s.Recovering(errors.New("disk full"), 1)
	if out := s.out.take(); strings.Count(out, "timed out") != 1 || strings.Count(out, "disk full") != 1 {
		t.Errorf("not sampled:\n%s", out)
	}
	s.after(sampleEvery - time.Second)
	if out := s.out.take(); out != "" {
		t.Errorf("too early: %s", out)
	}
	s.after(time.Second)
	if out := s.out.take(); !strings.Contains(out, "attempt=100") || !strings.Contains(out, "repeated=98") {
		t.Errorf("held lines are not counted: %q", out)
	}
	s.after(time.Hour)
	if len(s.Observer.samples.seen) != 0 {
		t.Errorf("%d kinds are remembered for ever", len(s.Observer.samples.seen))
	}
}

// The same error in another task must not hide behind the first, and what ends a run is always written.
func TestSamplingHidesNoNews(t *testing.T) {
	s := newStory(t, nil)
	s.TaskFailed(task(0, 0), errors.New("x"))
	s.TaskFailed(task(0, 1), errors.New("x"))
	s.Fatal("", errors.New("x"))
	s.Fatal("", errors.New("x"))
	if out := s.out.take(); strings.Count(out, "task failed") != 2 || strings.Count(out, "fatal") != 2 {
		t.Errorf("a line is missing:\n%s", out)
	}
}

func TestSamplerIsBounded(t *testing.T) {
	s := newStory(t, nil)
	for i := range 10 * sampleKinds {
		s.Warn("MR3001", strings.Repeat("x", i))
	}
	if n := len(s.Observer.samples.seen); n > sampleKinds {
		t.Errorf("%d kinds, want at most %d", n, sampleKinds)
	}
}

type codedError struct{ error }

func (codedError) Code() string { return "MR2099" }

func TestErrorsBringTheirCode(t *testing.T) {
	s := newStory(t, nil)
	s.Aborted("failed", fmt.Errorf("commit epoch 3: %w", codedError{errors.New("boom")}))
	if out := s.out.take(); !strings.Contains(out, "code=MR2099") {
		t.Errorf("%s", out)
	}
}

// An error text of any length stays one line of bounded length.
func TestErrorTextIsCut(t *testing.T) {
	for _, format := range []string{"console", "json"} {
		s := newStory(t, func(o *Options) { o.LogFormat = format })
		s.Recovering(errors.New(strings.Repeat("x", 1<<20)), 1)
		if out := s.out.take(); len(out) > 2*maxValue || !strings.Contains(out, "more bytes") {
			t.Errorf("%s: %d bytes", format, len(out))
		}
	}
}

func TestUnknownStateIsRefused(t *testing.T) {
	s := newStory(t, nil)
	s.State("happy")
	if got := s.status().State; got != "created" {
		t.Errorf("state %q", got)
	}
	if out := s.out.take(); !strings.Contains(out, "MR4003") {
		t.Errorf("%s", out)
	}
}

// Every code in the source of this package is in the table, so that none reaches a log without a page.
func TestEveryCodeIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, c := range Codes {
		listed[c.ID] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no source: %v", err)
	}
	pattern := regexp.MustCompile(`"(MR\d{4})"`)
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pattern.FindAllStringSubmatch(string(b), -1) {
			if !listed[m[1]] {
				t.Errorf("%s uses %s, which codes.go does not list", f, m[1])
			}
		}
	}
}
