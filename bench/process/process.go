// Package process starts, watches and kills the processes that are measured.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Command says what to start. The zero Env adds nothing to the benchmark's own environment.
type Command struct {
	Args []string
	Env  []string // NAME=value
	Log  string   // file that its output is appended to
}

// Process is one that runs or has ended.
type Process struct {
	PID     int
	Started time.Time
	cmd     *exec.Cmd
	ended   chan struct{}
	err     error // once ended is closed
}

// Start starts a command in a process group of its own, so that an interrupt of the benchmark does not stop it in the
// middle of what the benchmark still wants to read.
func Start(c Command) (*Process, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", c.Args[0], err)
	}
	defer log.Close() // the child has its own descriptor
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &Process{Started: time.Now(), cmd: cmd, ended: make(chan struct{})}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", strings.Join(c.Args, " "), err)
	}
	p.PID = cmd.Process.Pid
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Ended says whether the process is gone, and how.
func (p *Process) Ended() (bool, error) {
	select {
	case <-p.ended:
		return true, p.err
	default:
		return false, nil
	}
}

// Kill ends the process as kill -9 does, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may be gone already, which is what we want
	<-p.ended
}

// Stop asks the process to end, and kills it when it has not after limit.
func (p *Process) Stop(limit time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop process %d: %w", p.PID, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(limit):
		p.Kill()
		return fmt.Errorf("process %d did not stop within %s of SIGTERM", p.PID, limit)
	}
}
