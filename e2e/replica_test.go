package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"millrace/record"
)

// replica is one process of a job, and the processes that had its state directory before.
type replica struct {
	t     *testing.T
	name  string
	job   string   // path of its YAML
	dir   string   // state.dir
	extra []string // further arguments, as in --set x=y
	env   []string // further environment, NAME=value

	life int // processes so far
	cmd  *exec.Cmd
	log  *logs
	done chan struct{} // closed when the process has ended
}

// logs collects what a process writes, and is read while it goes on writing.
type logs struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// line is one line of a replica's log; fields are those of its JSON.
type line map[string]any

func (l line) text(field string) string {
	s, _ := l[field].(string)
	return s
}

func (l line) number(field string) int64 {
	n, ok := l[field].(float64)
	if !ok {
		return -1
	}
	return int64(n)
}

// lines returns the complete log lines with this message.
func (l *logs) lines(message string) []line { return l.linesWith("msg", message) }

// linesWith returns the complete log lines that have this text in a field.
func (l *logs) linesWith(field, value string) []line {
	var found []line
	for text := range strings.SplitSeq(l.String(), "\n") {
		var parsed line
		if json.Unmarshal([]byte(text), &parsed) == nil && parsed.text(field) == value {
			found = append(found, parsed)
		}
	}
	return found
}

// start runs the process with a fault, or without one.
func (r *replica) start(f fault) {
	r.t.Helper()
	r.life++
	r.log = &logs{changed: make(chan struct{})}
	args := append([]string{"run", "-c", r.job, "--set", "state.dir=" + r.dir}, r.extra...)
	r.cmd = exec.Command(os.Args[0], args...)
	r.cmd.Env = append(os.Environ(), childMark+"=1", faultMark+"="+f.String())
	r.cmd.Env = append(r.cmd.Env, r.env...)
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(done)
	}(r.cmd, r.done)
}

// running tells whether the process has not ended.
func (r *replica) running() bool {
	select {
	case <-r.done:
		return false
	default:
		return r.cmd != nil
	}
}

func (r *replica) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		r.t.Fatal(err)
	}
}

// kill ends the process like a power cut.
func (r *replica) kill() {
	r.t.Helper()
	r.signal(syscall.SIGKILL)
	<-r.done
}

// stop asks the process to end and returns its exit code. Before it answers HTTP it has not got to listening to signals.
func (r *replica) stop() int {
	r.t.Helper()
	poll(r.t, 40*time.Second, r.name+" has started", func() bool { return !r.running() || r.address() != "" })
	r.signal(syscall.SIGTERM)
	return r.wait(40 * time.Second)
}

// wait waits for the end of the process and returns its exit code; -1 stands for a signal.
func (r *replica) wait(limit time.Duration) int {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(limit):
		r.signal(syscall.SIGQUIT) // its goroutines belong into the report
		<-r.done
		r.report()
		r.t.Fatalf("replica %s did not end within %s", r.name, limit)
	}
	return r.cmd.ProcessState.ExitCode()
}

// frozen tells whether the process is stopped by SIGSTOP, as the kernel sees it.
func (r *replica) frozen() bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(after, "T")
}

// loseDisk removes everything that the replica has on its disk.
func (r *replica) loseDisk() {
	r.t.Helper()
	if err := os.RemoveAll(r.dir); err != nil {
		r.t.Fatal(err)
	}
}

// assigned lists the tasks that the replica was given last, and says in which generation of the group.
func (r *replica) assigned() (tasks []string, generation int64) {
	said := r.log.lines("assigned")
	if len(said) == 0 {
		return nil, -1
	}
	last := said[len(said)-1]
	generation = last.number("generation")
	for part := range strings.SplitSeq(last.text("active"), ",") {
		first, end, isRange := strings.Cut(part, "..")
		if !isRange {
			end = first
		}
		from, err := record.ParseTaskID(first)
		if err != nil {
			return tasks, generation // nothing is assigned
		}
		to, err := record.ParseTaskID(end)
		if err != nil {
			r.t.Fatalf("assigned says %q", part)
		}
		for ; from.Partition <= to.Partition; from.Partition++ {
			tasks = append(tasks, from.String())
		}
	}
	return tasks, generation
}

// taskDirs lists the directories of the replica's tasks that hold rows.
func (r *replica) taskDirs() []string {
	dirs, err := filepath.Glob(filepath.Join(r.dir, "*", "*", "db"))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	return dirs
}

// address is where the replica answers HTTP; empty until it has said so.
func (r *replica) address() string {
	said := r.log.lines("http listening")
	if len(said) == 0 {
		return ""
	}
	return said[0].text("address")
}

// get asks the replica over HTTP. The status is 0 when it does not answer.
func (r *replica) get(path string) (status int, body string) {
	address := r.address()
	if address == "" {
		return 0, ""
	}
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get("http://" + address + path)
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, ""
	}
	return answer.StatusCode, string(b)
}

// report puts the end of the replica's log into the test's output.
func (r *replica) report() {
	if r.log == nil {
		return
	}
	r.t.Helper()
	const most = 8 << 10
	text := r.log.String()
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	r.t.Logf("replica %s, process %d (%v):\n%s", r.name, r.life, r.cmd.ProcessState, text)
}
