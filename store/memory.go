package store

import (
	"bytes"
	"maps"
	"slices"
	"sync"
)

// Memory is an Engine without a disk, for the test command and for models. What it holds survives Close, as a disk would.
type Memory struct {
	mu         sync.Mutex // a flush writes beside the task's reads
	rows       map[string][]byte
	checkpoint *Checkpoint
}

// NewMemory returns an empty engine.
func NewMemory() *Memory { return &Memory{rows: map[string][]byte{}} }

func (m *Memory) Get(key []byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.rows[string(key)]
	return v, ok, nil
}

func (m *Memory) Range(prefix []byte, visit func(key, value []byte) bool) error {
	m.mu.Lock()
	rows := maps.Clone(m.rows)
	m.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		if bytes.HasPrefix([]byte(k), prefix) && !visit([]byte(k), rows[k]) {
			return nil
		}
	}
	return nil
}

func (m *Memory) Heads(prefix []byte, n int, visit func(head []byte)) error {
	var last []byte
	return m.Range(prefix, func(key, _ []byte) bool {
		if len(key) >= n && !bytes.Equal(key[:n], last) {
			last = key[:n]
			visit(last)
		}
		return true
	})
}

func (m *Memory) Flush(rows []Row, drop [][]byte, c Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range drop {
		maps.DeleteFunc(m.rows, func(k string, _ []byte) bool { return bytes.HasPrefix([]byte(k), p) })
	}
	for _, r := range rows {
		if r.Value == nil {
			delete(m.rows, string(r.Key))
		} else {
			m.rows[string(r.Key)] = bytes.Clone(r.Value)
		}
	}
	m.checkpoint = &c
	return nil
}

func (m *Memory) Checkpoint() (Checkpoint, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.checkpoint == nil {
		return Checkpoint{}, false, nil
	}
	return *m.checkpoint, true, nil
}

func (m *Memory) DiskBytes() (all, valueLog int64) { return 0, 0 }
func (m *Memory) Close() error                     { return nil }
