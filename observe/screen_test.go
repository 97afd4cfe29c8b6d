package observe

import (
	"strings"
	"testing"
	"time"

	"millrace/record"
)

// barStory has bars that are drawn when draw is called, which returns after the drawing.
func barStory(t *testing.T, format string) (s *story, draw func()) {
	s = newStory(t, func(o *Options) { o.Terminal, o.LogFormat = true, format })
	ticks := make(chan any)
	s.screen.refresh = ticks
	return s, func() {
		// The bars' goroutines hand a tick on: the third is taken when the first is drawn.
		for range 3 {
			ticks <- s.clock()
		}
	}
}

// On a terminal a restore is a bar, lines go above it, and it is gone when the restore has ended.
func TestRestoreBars(t *testing.T) {
	s, draw := barStory(t, "console")
	s.RestoreStarted(task(0, 0), "seen", 0, 200, true)
	if s.screen.showing() {
		t.Fatal("a bar before there is progress: most restores end at once and would only flicker")
	}
	s.RestoreProgress(task(0, 0), "seen", 50, 200)
	draw()
	if out := s.out.take(); !strings.Contains(out, "restoring seen") || !strings.Contains(out, "25 %") {
		t.Errorf("no bar in %q", out)
	}
	s.Warn("MR3001", "state disk is nearly full")
	if out := s.out.take(); strings.Contains(out, "state disk") {
		t.Errorf("a line was written into the bar: %q", out)
	}
	draw()
	if out := s.out.take(); !strings.Contains(out, "state disk is nearly full") {
		t.Errorf("the line is lost: %q", out)
	}
	s.RestoreStarted(task(0, 1), "seen", 0, 200, true)
	s.RestoreProgress(task(0, 1), "seen", 170, 200)
	draw()
	frames := strings.Split(strings.TrimSpace(s.out.take()), "\n")
	if last := frames[len(frames)-1]; !strings.Contains(last, "55 %") || !strings.Contains(last, "eta") {
		t.Errorf("the bar is not the sum of both tasks, 220 of 400: %q", frames)
	}
	s.after(time.Minute)
	if out := s.out.take(); strings.Contains(out, "restore progress") {
		t.Errorf("progress is told twice: %q", out)
	}
	s.Restored(task(0, 0), "seen", true, 150, time.Second)
	if !s.screen.showing() {
		t.Error("the bar is gone while a task of the store restores")
	}
	s.Restored(task(0, 1), "seen", true, 150, time.Second)
	if s.screen.showing() {
		t.Error("the bar stays after the last restore")
	}
	if out := s.out.take(); strings.Count(out, "restored ") != 2 {
		t.Errorf("lines were lost: %q", out)
	}
}

// A run that ends within a restore leaves no bar and no goroutine (goleak looks).
func TestStopWithinARestore(t *testing.T) {
	s, _ := barStory(t, "console")
	s.RestoreStarted(task(0, 0), "seen", 0, 200, false)
	s.RestoreProgress(task(0, 0), "seen", 50, 200)
	s.Stopped(nil)
	if s.screen.showing() {
		t.Error("the bar stays")
	}
	if out := s.out.take(); !strings.Contains(out, "stopped") {
		t.Errorf("%q", out)
	}
}

// Ready and a revocation end bars that nothing will move any more.
func TestBarsEndWithTheirTasks(t *testing.T) {
	for name, end := range map[string]func(*story){
		"ready":   func(s *story) { s.Ready(1, 0) },
		"revoked": func(s *story) { s.Revoked([]record.TaskID{task(0, 0)}, false) },
	} {
		s, _ := barStory(t, "console")
		s.RestoreStarted(task(0, 0), "seen", 0, 200, false)
		s.RestoreProgress(task(0, 0), "seen", 50, 200)
		end(s)
		if s.screen.showing() {
			t.Errorf("%s: the bar stays", name)
			s.screen.close()
		}
	}
}

func TestJSONNeverGetsBars(t *testing.T) {
	s, _ := barStory(t, "json")
	s.RestoreStarted(task(0, 0), "seen", 0, 200, false)
	s.RestoreProgress(task(0, 0), "seen", 50, 200)
	if s.screen.showing() {
		t.Error("bars between JSON lines")
	}
}
