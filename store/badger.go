package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"

	"millrace/crash"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/pb"
)

// badgerEngine is an Engine on Badger in managed mode: every row of a flush gets one new version, the checkpoint's row is
// written last at the same version, and SyncWrites makes "checkpoint visible" mean "everything before it is present",
// also after a power cut. What a crash left of an unfinished flush is overwritten by the replay from the checkpoint,
// because changelog values are absolute.
type badgerEngine struct {
	db      *badger.DB
	read    *badger.Txn // sees the newest version; lives as long as the engine
	version uint64      // of the last flush
	path    string
}

// DefaultMemTable is the size of Badger's memtable for a task: larger ones are no faster and cost memory.
const DefaultMemTable = 8 << 20

// openBadger opens or creates a Badger in dir. The first Open after a kill can fail on a half-made file, which it
// completes, so a second attempt is part of opening.
func openBadger(dir string, memTable int64, log func(string)) (*badgerEngine, error) {
	o := badger.DefaultOptions(dir)
	o.Logger = badgerLog(log)
	o.SyncWrites = true
	o.MemTableSize = memTable
	o.NumMemtables, o.NumLevelZeroTables, o.NumLevelZeroTablesStall = 2, 4, 12
	o.NumCompactors = 2
	o.BaseTableSize, o.TableSizeMultiplier = 8<<20, 1
	o.ValueThreshold = min(1<<20, memTable*15/100)
	o.ValueLogFileSize = 16 << 20
	o.Compression, o.BlockCacheSize, o.IndexCacheSize = options.None, 0, 0
	o.ChecksumVerificationMode, o.VerifyValueChecksum = options.OnTableRead, true
	o.DetectConflicts, o.MetricsEnabled, o.NumVersionsToKeep = false, false, 1
	db, err := badger.OpenManaged(o)
	if err != nil {
		if db, err = badger.OpenManaged(o); err != nil {
			return nil, err
		}
	}
	e := &badgerEngine{db: db, path: dir, version: db.MaxVersion()}
	db.SetDiscardTs(e.version)
	e.read = db.NewTransactionAt(math.MaxUint64, false)
	return e, nil
}

func (e *badgerEngine) Get(key []byte) ([]byte, bool, error) {
	item, err := e.read.Get(shortKey(key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the store in %s: %w", e.path, err)
	}
	value, err := item.ValueCopy(nil)
	if err == nil {
		err = whole(item, value)
	}
	if err != nil {
		return nil, false, fmt.Errorf("read the store in %s: %w", e.path, err)
	}
	if len(key) < longKey {
		return value, true, nil
	}
	_, value, err = unpackRow(item.Key(), value)
	return value, err == nil, err
}

// whole finds out what Badger only logs: a large value that it cannot read of its value log comes back empty.
func whole(item *badger.Item, value []byte) error {
	if len(value) == 0 && item.ValueSize() > 0 {
		return errors.New("a value cannot be read of Badger's value log")
	}
	return nil
}

func (e *badgerEngine) Range(prefix []byte, visit func(key, value []byte) bool) error {
	it, done := e.iterate(prefix)
	defer done()
	for it.Rewind(); it.Valid(); it.Next() {
		more := true
		err := it.Item().Value(func(value []byte) error {
			if err := whole(it.Item(), value); err != nil {
				return err
			}
			key, value, err := unpackRow(it.Item().Key(), value)
			if err == nil {
				more = visit(key, value)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("read the store in %s: %w", e.path, err)
		}
		if !more {
			return nil
		}
	}
	return nil
}

// iterate returns an iterator over the rows whose keys start with prefix; done ends it.
func (e *badgerEngine) iterate(prefix []byte) (it *badger.Iterator, done func()) {
	o := badger.DefaultIteratorOptions
	o.Prefix, o.PrefetchValues = prefix, false
	txn := e.db.NewTransactionAt(math.MaxUint64, false)
	it = txn.NewIterator(o)
	return it, func() {
		it.Close()
		txn.Discard()
	}
}

func (e *badgerEngine) Heads(prefix []byte, n int, visit func(head []byte)) error {
	it, done := e.iterate(prefix)
	defer done()
	for it.Rewind(); it.Valid(); {
		key := it.Item().Key()
		if len(key) < n {
			it.Next()
			continue
		}
		head := bytes.Clone(key[:n])
		visit(head)
		next := successor(head)
		if next == nil {
			return nil
		}
		it.Seek(next)
	}
	return nil
}

// successor is the least key that does not start with head; nil if there is none.
func successor(head []byte) []byte {
	next := bytes.Clone(head)
	for i := len(next) - 1; i >= 0; i-- {
		if next[i]++; next[i] != 0 {
			return next[:i+1]
		}
	}
	return nil
}

// deleteMark is Badger's internal mark of a deleted row, which KVLoader passes through; a test holds it.
const deleteMark = 1

func (e *badgerEngine) Flush(rows []Row, drop [][]byte, c Checkpoint) error {
	crash.At("flush.begin")
	if len(drop) > 0 {
		if err := e.db.DropPrefix(drop...); err != nil {
			return fmt.Errorf("drop ended windows in %s: %w", e.path, err)
		}
	}
	version := e.version + 1
	if err := e.write(rows, version); err != nil {
		return fmt.Errorf("write the store in %s: %w", e.path, err)
	}
	crash.At("flush.rows")
	// A write of its own: rows are written beside each other in batches, and one of those may fail after a later one is in.
	if err := e.write([]Row{{Key: checkpointKey, Value: c.encode()}}, version); err != nil {
		return fmt.Errorf("write the store in %s: %w", e.path, err)
	}
	crash.At("flush.checkpoint")
	e.version = version
	e.db.SetDiscardTs(version)
	return nil
}

// write returns when all rows are durable. After an error of Set the loader must not be waited for: it would wait for ever.
func (e *badgerEngine) write(rows []Row, version uint64) error {
	loader := e.db.NewKVLoader(16)
	for _, r := range rows {
		kv := &pb.KV{Key: shortKey(r.Key), Version: version}
		if r.Value == nil {
			kv.Meta = []byte{deleteMark}
		} else {
			kv.Value = packValue(r.Key, r.Value)
		}
		if err := loader.Set(kv); err != nil {
			return err
		}
	}
	return loader.Finish()
}

func (e *badgerEngine) Checkpoint() (Checkpoint, bool, error) {
	value, ok, err := e.Get(checkpointKey)
	if err != nil || !ok {
		return Checkpoint{}, false, err
	}
	c, err := decodeCheckpoint(value)
	return c, err == nil, err
}

// DiskBytes sums what the files really take: Badger's logs are sparse.
func (e *badgerEngine) DiskBytes() (all, valueLog int64) {
	// A file that a compaction removes while we look is not there to count.
	_ = filepath.WalkDir(e.path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				all += allocated(info)
				if filepath.Ext(d.Name()) == ".vlog" {
					valueLog += allocated(info)
				}
			}
		}
		return nil
	})
	return all, valueLog
}

func (e *badgerEngine) Close() error {
	e.read.Discard()
	return e.db.Close()
}

// badgerLog passes Badger's warnings and errors on; its info is about its own business.
type badgerLog func(string)

func (l badgerLog) Errorf(format string, args ...any)   { l("badger: " + fmt.Sprintf(format, args...)) }
func (l badgerLog) Warningf(format string, args ...any) { l("badger: " + fmt.Sprintf(format, args...)) }
func (l badgerLog) Infof(string, ...any)                {}
func (l badgerLog) Debugf(string, ...any)               {}
