//go:build unix

package store

import "syscall"

// mapChunk asks the system for a chunk. Where it refuses, the Go heap gives one; unmapChunk cannot tell the difference
// and leaves that one to the collector.
func mapChunk() []byte {
	c, err := syscall.Mmap(-1, 0, chunkBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return make([]byte, chunkBytes)
	}
	return c
}

func unmapChunk(c []byte) {
	_ = syscall.Munmap(c) // an error means that the chunk is the Go heap's
}
