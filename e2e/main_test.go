// Package e2e proves the promise from outside: real processes, a real client library, real files, a broker, and an oracle
// that knows the exact result without any of them.
//
// A replica is this test binary, started again: TestMain turns it into the millrace command when childMark is set. The
// broker is the one of package devbroker, or the real Kafka that MILLRACE_TEST_BROKERS names.
//
// Every test draws from MILLRACE_E2E_SEED (default 1) and says how to run it alone again. A schedule is determined by its
// name and the seed; what the operating system does between two processes is not.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"millrace/cli"
	"millrace/crash"
)

// The environment of a replica.
const (
	childMark = "MILLRACE_E2E_CHILD" // set: be the millrace command
	faultMark = "MILLRACE_E2E_FAULT" // SIGNAL:PLACE:COUNT, see fault
)

func TestMain(m *testing.M) {
	if os.Getenv(childMark) != "" {
		if err := listen(os.Getenv(faultMark)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(64)
		}
		os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr))
	}
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))) // replicas mostly wait; the flag exists and takes numbers
	}
	os.Exit(m.Run())
}

// fault is a signal that a replica sends to itself when it passes a place of package crash for the count-th time.
type fault struct {
	signal syscall.Signal // SIGKILL, SIGSTOP
	place  string
	count  int
}

func (f fault) String() string {
	if f.place == "" {
		return ""
	}
	return fmt.Sprintf("%d:%s:%d", int(f.signal), f.place, f.count)
}

// listen makes the process obey the fault that the text describes; an empty text describes none.
func listen(text string) error {
	if text == "" {
		return nil
	}
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return fmt.Errorf("%s=%q: want SIGNAL:PLACE:COUNT", faultMark, text)
	}
	signal, errSignal := strconv.Atoi(parts[0])
	count, errCount := strconv.ParseInt(parts[2], 10, 64)
	if errSignal != nil || errCount != nil {
		return fmt.Errorf("%s=%q: want SIGNAL:PLACE:COUNT with numbers", faultMark, text)
	}
	var passed atomic.Int64
	crash.Listen(func(place string) {
		if place != parts[1] || passed.Add(1) != count {
			return
		}
		_ = syscall.Kill(syscall.Getpid(), syscall.Signal(signal)) // we may always signal ourselves
		if syscall.Signal(signal) == syscall.SIGKILL {
			select {} // the signal is on its way: nothing may happen behind this place
		}
	})
	return nil
}
