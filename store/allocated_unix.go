//go:build unix

package store

import (
	"io/fs"
	"syscall"
)

// allocated is the space that a file takes on the disk, which for a sparse file is less than its length.
func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
