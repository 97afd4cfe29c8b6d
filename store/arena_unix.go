//go:build unix

package store

import "syscall"

// mapMemory asks the system for cleared memory. Where it refuses, the Go heap gives it; unmapMemory cannot tell the
// difference and leaves that to the collector.
func mapMemory(size int) []byte {
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return make([]byte, size)
	}
	mapped.Add(int64(size))
	return b
}

// unmapMemory takes what mapMemory returned, whole.
func unmapMemory(b []byte) {
	size := int64(len(b))
	if syscall.Munmap(b) == nil { // an error means that the memory is the Go heap's
		mapped.Add(-size)
	}
}
