package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc; Linux shows it as a hundredth of a second on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// Usage is what a process has used so far.
type Usage struct {
	CPU      time.Duration // user and system
	PeakRSS  int64         // bytes
	Resident int64         // bytes
}

// UsageOf reads a process's usage.
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("usage of process %d: %w", pid, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("usage of process %d: %w", pid, err)
	}
	return parseUsage(stat, status)
}

func parseUsage(stat, status []byte) (Usage, error) {
	// The command's name may hold anything, also blanks and brackets: the fields are counted behind its last bracket.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return Usage{}, fmt.Errorf("unknown form of /proc/PID/stat: %q", stat)
	}
	user, errUser := strconv.ParseInt(fields[11], 10, 64)
	system, errSystem := strconv.ParseInt(fields[12], 10, 64)
	if err := errors.Join(errUser, errSystem); err != nil {
		return Usage{}, fmt.Errorf("unknown form of /proc/PID/stat: %w", err)
	}
	return Usage{CPU: time.Duration(user+system) * tick, PeakRSS: kilobytes(status, "VmHWM:"), Resident: kilobytes(status, "VmRSS:")}, nil
}

// kilobytes returns a line of /proc/PID/status in bytes; a process that is ending has no such lines any more.
func kilobytes(status []byte, name string) int64 {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err == nil {
				return n << 10
			}
		}
	}
	return 0
}

// Host is what all processors of the machine have done so far.
type Host struct {
	Busy  time.Duration // everything but idling, waiting for disks, and steal
	Steal time.Duration // what the hypervisor gave to others
}

// HostNow reads the machine's times.
func HostNow() (Host, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Host{}, err
	}
	return parseHost(stat)
}

func parseHost(stat []byte) (Host, error) {
	first, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 || fields[0] != "cpu" {
		return Host{}, fmt.Errorf("unknown form of /proc/stat: %q", first)
	}
	var ticks [8]int64 // user nice system idle iowait irq softirq steal
	for i := range ticks {
		n, err := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil {
			return Host{}, fmt.Errorf("unknown form of /proc/stat: %w", err)
		}
		ticks[i] = n
	}
	busy := ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]
	return Host{Busy: time.Duration(busy) * tick, Steal: time.Duration(ticks[7]) * tick}, nil
}
