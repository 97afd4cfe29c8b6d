//go:build !unix

package store

func mapMemory(size int) []byte { return make([]byte, size) }

func unmapMemory([]byte) {}
