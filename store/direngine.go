package store

import (
	"errors"
	"path/filepath"
	"sync/atomic"
)

// dirEngine is the engine of a task's directory. Badger costs memory, files and goroutines, so it is created with the
// first flush: a short job, or a task whose windows close before they are flushed, never has one.
type dirEngine struct {
	badger atomic.Pointer[badgerEngine] // nil until the first flush, which runs beside the task's reads
	dir    string
	meta   meta
	warn   func(string)
}

func (e *dirEngine) Get(key []byte) ([]byte, bool, error) {
	if b := e.badger.Load(); b != nil {
		value, found, err := b.Get(key)
		return value, found, e.suspect(err)
	}
	return nil, false, nil
}

func (e *dirEngine) Range(prefix []byte, visit func(key, value []byte) bool) error {
	if b := e.badger.Load(); b != nil {
		return e.suspect(b.Range(prefix, visit))
	}
	return nil
}

func (e *dirEngine) Heads(prefix []byte, n int, visit func(head []byte)) error {
	if b := e.badger.Load(); b != nil {
		return b.Heads(prefix, n, visit)
	}
	return nil
}

// suspect notes rows that cannot be read: the next OpenDir moves them aside, since every start would fail of them again.
func (e *dirEngine) suspect(err error) error {
	if err == nil || e.meta.Damaged != "" {
		return err
	}
	e.meta.Damaged = err.Error()
	return errors.Join(err, e.meta.write(e.dir))
}

func (e *dirEngine) Checkpoint() (Checkpoint, bool, error) {
	if b := e.badger.Load(); b != nil {
		return b.Checkpoint()
	}
	return Checkpoint{}, false, nil
}

func (e *dirEngine) Flush(rows []Row, drop [][]byte, c Checkpoint) error {
	b := e.badger.Load()
	if b == nil {
		var err error
		if b, err = openBadger(filepath.Join(e.dir, "db"), e.meta.MemTable, e.warn); err != nil {
			return err
		}
		e.badger.Store(b)
	}
	return b.Flush(rows, drop, c)
}

func (e *dirEngine) DiskBytes() (all, valueLog int64) {
	if b := e.badger.Load(); b != nil {
		return b.DiskBytes()
	}
	return 0, 0
}

// Close marks the directory as clean only after Badger has closed without an error. Whether what was closed is up to
// date is the checkpoint's business.
func (e *dirEngine) Close() error {
	b := e.badger.Load()
	if b == nil {
		return nil
	}
	if err := b.Close(); err != nil {
		return errors.Join(err, errors.New("the store was not closed cleanly; the next start checks it"))
	}
	e.meta.Clean = true
	return e.meta.write(e.dir)
}
