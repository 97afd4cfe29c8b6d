//go:build !linux

package kafka

import "syscall"

// setUserTimeout does nothing where the system has no such limit; keep-alive alone finds dead peers there.
func setUserTimeout(_, _ string, _ syscall.RawConn) error { return nil }
