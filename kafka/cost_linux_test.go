package kafka

import (
	"syscall"
	"time"
)

// cpuTime is what the process has used of the processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // Linux always answers for the process itself.
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
