//go:build !unix

package store

func mapChunk() []byte { return make([]byte, chunkBytes) }

func unmapChunk([]byte) {}
