package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/record"
)

func openDir(t *testing.T, dir string) (Engine, OpenResult) {
	t.Helper()
	e, r, err := OpenDir(dir, testIdentity, func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	return e, r
}

func closeEngine(t *testing.T, e Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

// filledDir returns a task's directory with one row, closed cleanly.
func filledDir(t *testing.T) (dir, storeID string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "0_0")
	e, r := openDir(t, dir)
	mustFlush(t, e, []Row{row(1, "a", "1")})
	closeEngine(t, e)
	return dir, r.StoreID
}

func editMeta(t *testing.T, dir string, edit func(*meta)) {
	t.Helper()
	m, err := readMeta(dir)
	if err != nil {
		t.Fatal(err)
	}
	edit(&m)
	if err := m.write(dir); err != nil {
		t.Fatal(err)
	}
}

func TestADirectoryIsFoundAsItWasLeft(t *testing.T) {
	dir, id := filledDir(t)
	e, r := openDir(t, dir)
	if !r.Clean || r.StoreID != id || r.Damaged != "" || r.Cause != nil {
		t.Errorf("found %+v, made as %s", r, id)
	}
	if m, err := readMeta(dir); err != nil || m.Opening != 0 || m.Clean {
		t.Errorf("meta while it is open: %+v %v", m, err)
	}
	if all, valueLog := e.DiskBytes(); all <= 0 || valueLog >= all {
		t.Errorf("it takes %d bytes, %d of them for large values", all, valueLog)
	}
	closeEngine(t, e)
	for _, name := range []string{dir, filepath.Join(dir, "meta")} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v: state is nobody else's business", name, info.Mode(), err)
		}
	}
}

// A directory that never had a flush has no Badger, and that is no damage.
func TestADirectoryWithoutAFlushHasNoBadger(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0_0")
	for range 2 {
		e, r := openDir(t, dir)
		if bytes, _ := e.DiskBytes(); r.Damaged != "" || r.StoreID == "" || bytes != 0 {
			t.Errorf("found %+v with %d bytes", r, bytes)
		}
		closeEngine(t, e)
		if _, err := os.Stat(filepath.Join(dir, "db")); !os.IsNotExist(err) {
			t.Errorf("db: %v", err)
		}
	}
}

func TestADirectoryOfAnotherOwnerIsRefused(t *testing.T) {
	dir, _ := filledDir(t)
	for _, other := range []Identity{{"other", "0_0", []string{"s"}}, {"app", "0_1", []string{"s"}}, {"app", "0_0", []string{"s", "t"}}, {"app", "0_0", nil}} {
		_, _, err := OpenDir(dir, other, func(s string) { t.Log(s) })
		if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "restore") {
			t.Errorf("%+v: %v", other, err)
		}
	}
	e, r := openDir(t, dir)
	defer closeEngine(t, e)
	if got := dump(t, e); got != "1/a=1" || !r.Clean {
		t.Errorf("after the refusals it holds %q, clean %v", got, r.Clean)
	}
}

// What cannot be trusted is moved aside, and an empty store of a new identity takes its place.
func TestDamagedDirectoriesAreMovedAside(t *testing.T) {
	cases := map[string]func(t *testing.T, dir string){
		"two died while opening it": func(t *testing.T, dir string) { editMeta(t, dir, func(m *meta) { m.Opening = 2 }) },
		"no meta file":              func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "meta")) },
		"an empty meta file":        func(t *testing.T, dir string) { write(t, filepath.Join(dir, "meta"), nil) },
		"a meta file cut short": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "meta"), read(t, filepath.Join(dir, "meta"))[:20])
		},
		"a flipped bit in it":       func(t *testing.T, dir string) { flip(t, filepath.Join(dir, "meta"), 15) },
		"a meta file of the future": func(t *testing.T, dir string) { editMeta(t, dir, func(m *meta) { m.Version++ }) },
		"rows that were unreadable": func(t *testing.T, dir string) { editMeta(t, dir, func(m *meta) { m.Damaged = "bad block" }) },
		"no manifest":               func(t *testing.T, dir string) { write(t, filepath.Join(dir, "db", "MANIFEST"), []byte("nonsense")) },
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			dir, id := filledDir(t)
			damage(t, dir)
			e, r := openDir(t, dir)
			if r.Damaged == "" || r.Cause == nil || r.StoreID == id || r.StoreID == "" || r.Clean {
				t.Errorf("found %+v", r)
			}
			if _, err := os.Stat(filepath.Join(r.Damaged, "MANIFEST")); err != nil {
				t.Errorf("the rows are not at %s: %v", r.Damaged, err)
			}
			if got := dump(t, e); got != "" {
				t.Errorf("holds %s", got)
			}
			mustFlush(t, e, []Row{row(1, "b", "2")})
			closeEngine(t, e)
			e, r = openDir(t, dir)
			defer closeEngine(t, e)
			if got := dump(t, e); got != "1/b=2" || r.Damaged != "" {
				t.Errorf("the next start finds %q and %+v", got, r)
			}
		})
	}
}

func TestOnlyTheNewestDamageIsKept(t *testing.T) {
	dir, _ := filledDir(t)
	var last string
	for i := range 3 {
		editMeta(t, dir, func(m *meta) { m.Opening = 2 })
		e, r := openDir(t, dir)
		last = r.Damaged
		mustFlush(t, e, []Row{row(1, "a", fmt.Sprint(i))})
		closeEngine(t, e)
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "damaged-*")); err != nil || len(kept) != 1 || kept[0] != last {
		t.Errorf("kept %v, the last is %s, %v", kept, last, err)
	}
}

// One process that dies while it opens is no reason: the first Open after a kill can fail.
func TestOneDeathWhileOpeningIsForgiven(t *testing.T) {
	dir, id := filledDir(t)
	editMeta(t, dir, func(m *meta) { m.Opening = 1 })
	e, r := openDir(t, dir)
	defer closeEngine(t, e)
	if r.Damaged != "" || r.StoreID != id || dump(t, e) != "1/a=1" {
		t.Errorf("found %+v", r)
	}
}

// The rows of a first flush that did not come to its checkpoint have no age: they must not be there when the changelog has
// forgotten that they ended.
func TestRowsWithoutACheckpointAreRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "0_0")
	e, _ := openDir(t, dir)
	closeEngine(t, e)
	b, err := openBadger(filepath.Join(dir, "db"), DefaultMemTable, func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	if err := b.write([]Row{row(1, "stale", "1")}, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	e, r := openDir(t, dir)
	if got := dump(t, e); got != "" || r.Damaged != "" {
		t.Errorf("holds %s, %+v", got, r)
	}
	mustFlush(t, e, []Row{row(1, "a", "1")})
	closeEngine(t, e)
	e, _ = openDir(t, dir)
	defer closeEngine(t, e)
	if got := dump(t, e); got != "1/a=1" {
		t.Errorf("holds %s", got)
	}
}

func TestWipeRemovesOurRowsOnly(t *testing.T) {
	dir, _ := filledDir(t)
	if err := Wipe(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"meta", "db"} {
		if _, err := os.Stat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Wipe(dir); err != nil {
		t.Errorf("a second time: %v", err)
	}
	strange := filepath.Join(t.TempDir(), "home")
	write(t, filepath.Join(strange, "db", "precious"), []byte("x"))
	if err := Wipe(strange); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(strange, "db", "precious")); err != nil {
		t.Errorf("a directory that is not ours was emptied: %v", err)
	}
}

// broken is what Badger says of a block that it cannot read.
var errBroken = errors.New("bad block")

// An engine that found its rows unreadable while in use must not be opened with them again: every start would fail.
func TestUnreadableRowsAreMovedAsideAtTheNextStart(t *testing.T) {
	dir, _ := filledDir(t)
	e, _ := openDir(t, dir)
	if err := e.(*dirEngine).suspect(nil); err != nil {
		t.Fatal(err)
	}
	if err := e.(*dirEngine).suspect(errBroken); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	closeEngine(t, e)
	e, r := openDir(t, dir)
	defer closeEngine(t, e)
	if r.Damaged == "" || !strings.Contains(r.Cause.Error(), "bad block") || dump(t, e) != "" {
		t.Errorf("found %+v", r)
	}
	if s, err := Open(e, Options{Stores: testIdentity.Stores}); err != nil || s.Position(0) != record.Offset(0) {
		t.Errorf("%v", err)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// flip changes one bit of a byte.
func flip(t *testing.T, name string, at int) {
	t.Helper()
	b := read(t, name)
	b[at] ^= 1
	write(t, name, b)
}
