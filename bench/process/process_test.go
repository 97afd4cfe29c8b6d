package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestUsageCountsUserAndSystemTime(t *testing.T) {
	stat := []byte("42 (a ) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 7 8 20 0 1 0")
	status := []byte("Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n")
	got, err := parseUsage(stat, status)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Usage{CPU: 2 * time.Second, PeakRSS: 2 << 20, Resident: 1 << 20}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := parseUsage([]byte("42 (x) S 1"), nil); err == nil {
		t.Error("a short line was taken")
	}
}

func TestHostLeavesIdlingOut(t *testing.T) {
	got, err := parseHost([]byte("cpu  100 10 40 9000 500 5 45 30 0 0\ncpu0 1 2 3\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Host{Busy: 2 * time.Second, Steal: 300 * time.Millisecond}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOwnUsageIsReadable(t *testing.T) {
	got, err := UsageOf(os.Getpid())
	if err != nil {
		t.Skip("no /proc here:", err)
	}
	if got.PeakRSS < got.Resident || got.Resident == 0 {
		t.Errorf("%+v", got)
	}
}

func TestProcessLogsAndStops(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := Start(Command{Args: []string{"sh", "-c", `echo "$GREETING"; exec cat /dev/zero >/dev/null`}, Env: []string{"GREETING=hello"}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if ended, err := p.Ended(); ended {
		t.Fatalf("it ended by itself: %v", err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		text, err := os.ReadFile(log)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no greeting in the log: %q, %v", text, err)
		}
		if strings.TrimSpace(string(text)) == "hello" {
			break
		}
	}
	if err := p.Stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	if ended, err := p.Ended(); !ended || err == nil {
		t.Errorf("ended %v with %v, want the signal", ended, err)
	}
}

func TestPrefix(t *testing.T) {
	if Prefix("") != nil || strings.Join(Prefix(cores(2, 3)), " ") != "taskset -c 2-3" || cores(1, 1) != "1" {
		t.Error("wrong command line for taskset")
	}
}
