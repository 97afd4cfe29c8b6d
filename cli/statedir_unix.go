//go:build unix

package cli

import (
	"os"
	"syscall"
)

// lockFile locks a file for the life of the process: the kernel gives the lock back when it dies, however it dies.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // the lock's error is the one that matters
		return nil, err
	}
	return f, nil
}

// free tells the room on the disk of the folder.
func (d *stateDir) free() (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
