package store

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A task's directory holds `meta`, which says whose rows these are and whether Badger may be trusted to open, and `db`,
// which is Badger's. A directory that Badger could not open, or that cost two processes their lives while opening, is moved aside to
// `damaged-…` and the task restores from its changelog: what is on disk is a copy.

// Identity is what a directory's rows belong to. A directory of another application, task or set of stores is refused.
type Identity struct {
	Application string
	Task        string
	Stores      []string // step names, in the order of their numbers in the engine
}

type meta struct {
	Version     int      `json:"version"`
	Application string   `json:"application"`
	Task        string   `json:"task"`
	Stores      []string `json:"stores"`
	StoreID     string   `json:"store_id"` // of this incarnation of the rows
	MemTable    int64    `json:"mem_table"`
	Opening     int      `json:"opening"`           // attempts to open that have not come back
	Clean       bool     `json:"clean"`             // closed after a flush
	Damaged     string   `json:"damaged,omitempty"` // why the rows cannot be read, as found while they were in use
}

const metaVersion = 1

// OpenResult tells how a directory was found.
type OpenResult struct {
	StoreID string // identity of this incarnation of the rows
	Clean   bool   // the last process closed it after a flush
	Damaged string // where the former rows were moved to, if they were damaged
	Cause   error  // why
}

// OpenDir opens the engine of a task's directory, made where it is missing. Badger itself is created with the first
// flush. warn gets what Badger has to say.
func OpenDir(dir string, id Identity, warn func(string)) (Engine, OpenResult, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, OpenResult{}, fmt.Errorf("state directory: %w", err)
	}
	m, err := readMeta(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return freshDir(dir, id, warn, nil)
	case err != nil:
		return freshDir(dir, id, warn, err)
	}
	if m.Application != id.Application || m.Task != id.Task || !slices.Equal(m.Stores, id.Stores) {
		return nil, OpenResult{}, fmt.Errorf("state directory %s belongs to task %s of application %s with stores %s, not to task %s of %s with %s; "+
			"give each application a state.dir of its own, or remove the directory to restore it from the changelog",
			dir, m.Task, m.Application, strings.Join(m.Stores, ","), id.Task, id.Application, strings.Join(id.Stores, ","))
	}
	switch {
	case m.Damaged != "":
		return freshDir(dir, id, warn, errors.New(m.Damaged))
	case m.Opening >= 2:
		return freshDir(dir, id, warn, fmt.Errorf("%d processes have died while opening it", m.Opening))
	}
	db := filepath.Join(dir, "db")
	if _, err := os.Stat(db); errors.Is(err, fs.ErrNotExist) {
		return freshDir(dir, id, warn, nil)
	}
	result := OpenResult{StoreID: m.StoreID, Clean: m.Clean}
	m.Opening++
	m.Clean = false
	if err := m.write(dir); err != nil {
		return nil, OpenResult{}, err
	}
	b, err := openChecked(db, m.MemTable, warn)
	if err != nil {
		return freshDir(dir, id, warn, err)
	}
	m.Opening = 0
	e := &dirEngine{dir: dir, meta: m, warn: warn}
	e.badger.Store(b)
	if err := m.write(dir); err != nil {
		if b != nil {
			err = errors.Join(err, b.Close())
		}
		return nil, OpenResult{}, err
	}
	return e, result, nil
}

// openChecked opens the rows as of their checkpoint; nil if there are none. Rows without a checkpoint are what a first
// flush left that did not come to its end. They are removed: nothing tells how old they are, and so how long the changelog
// keeps the tombstones that would end them.
func openChecked(db string, memTable int64, warn func(string)) (*badgerEngine, error) {
	if err := checkManifest(db); err != nil {
		return nil, err
	}
	b, err := openBadger(db, memTable, warn)
	if err != nil {
		return nil, err
	}
	_, ok, err := b.Checkpoint()
	switch {
	case err != nil:
		return nil, errors.Join(err, b.Close())
	case !ok:
		return nil, errors.Join(b.Close(), os.RemoveAll(db))
	}
	return b, nil
}

// freshDir moves what is there aside, if anything, and starts empty.
func freshDir(dir string, id Identity, warn func(string), cause error) (Engine, OpenResult, error) {
	var result OpenResult
	db := filepath.Join(dir, "db")
	if _, err := os.Stat(db); err == nil {
		if cause == nil {
			cause = errors.New("it has no meta file")
		}
		if result.Damaged, err = quarantine(dir); err != nil {
			return nil, result, err
		}
		result.Cause = cause
	}
	m := meta{Version: metaVersion, Application: id.Application, Task: id.Task, Stores: id.Stores, StoreID: newStoreID(), MemTable: DefaultMemTable}
	if err := m.write(dir); err != nil {
		return nil, result, err
	}
	result.StoreID = m.StoreID
	return &dirEngine{dir: dir, meta: m, warn: warn}, result, nil
}

// quarantine renames the rows' directory and keeps only the newest of its kind.
func quarantine(dir string) (string, error) {
	old, err := filepath.Glob(filepath.Join(dir, "damaged-*"))
	if err != nil {
		return "", err
	}
	for _, o := range old {
		if err := os.RemoveAll(o); err != nil {
			return "", err
		}
	}
	to := filepath.Join(dir, "damaged-"+time.Now().UTC().Format("20060102T150405.000"))
	if err := os.Rename(filepath.Join(dir, "db"), to); err != nil {
		return "", err
	}
	return to, syncDir(dir)
}

// Wipe removes a task's rows and its meta file: the next OpenDir starts empty. A directory without a meta file of ours is
// left alone, so that a mistyped path loses nothing.
func Wipe(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "meta")); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	// The meta file goes first: rows that are half removed must not be opened.
	if err := os.Remove(filepath.Join(dir, "meta")); err != nil {
		return err
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, "db"))
}

func newStoreID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand crashes the program instead
	return hex.EncodeToString(b[:])
}

func readMeta(dir string) (meta, error) {
	b, err := os.ReadFile(filepath.Join(dir, "meta"))
	if err != nil {
		return meta{}, err
	}
	text, sum, ok := strings.Cut(string(b), "\n")
	if !ok || strings.TrimSpace(sum) != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) {
		return meta{}, errors.New("the meta file's checksum does not fit")
	}
	var m meta
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return meta{}, fmt.Errorf("the meta file: %w", err)
	}
	if m.Version != metaVersion {
		return meta{}, fmt.Errorf("the meta file has version %d, this program reads %d", m.Version, metaVersion)
	}
	return m, nil
}

// write replaces the meta file in one step that survives a power cut: written aside, synced, renamed, directory synced.
func (m meta) write(dir string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	content := fmt.Sprintf("%s\n%08x\n", text, crc32.ChecksumIEEE(text))
	aside := filepath.Join(dir, "meta.new")
	f, err := os.OpenFile(aside, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	_, err = f.WriteString(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if err := os.Rename(aside, filepath.Join(dir, "meta")); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
