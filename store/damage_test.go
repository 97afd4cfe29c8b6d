package store

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/record"
)

// masters makes the two directories that are damaged: one whose process was killed after its last flush, and one that was
// closed. Both have several tables, a value log, and are behind the changelog.
func masters(t *testing.T) map[string]tree {
	live := filepath.Join(t.TempDir(), "0_0")
	e, _ := openDir(t, live)
	s, err := Open(e, Options{Stores: testIdentity.Stores, CacheBytes: 1 << 20, FlushInterval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	advance := func(epochs int) {
		replay(s, epochs, time.Now())
		if _, err := s.Flush(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	advance(10)
	advance(20)
	if err := s.Close(); err != nil { // makes a table of what the memtable holds
		t.Fatal(err)
	}
	e, _ = openDir(t, live)
	if s, err = Open(e, Options{Stores: testIdentity.Stores, CacheBytes: 1 << 20, FlushInterval: time.Second}); err != nil {
		t.Fatal(err)
	}
	advance(30)
	advance(50)
	killed := readTree(t, live) // what a kill would leave: flushes are synced
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return map[string]tree{"killed": killed, "closed": readTree(t, live)}
}

// damage is one way to harm a file.
type damage struct {
	name string
	do   func(c content) (content, bool) // false: the file is removed
}

// damages lists ways to harm a file of which the first used bytes mean anything.
func damages(used int) []damage {
	cut := func(by int) func(content) (content, bool) {
		return func(c content) (content, bool) { return content{c.used[:used-by], int64(used - by)}, true }
	}
	all := []damage{
		{"removed", func(content) (content, bool) { return content{}, false }},
		{"emptied", cut(used)},
		{"zeroed", func(c content) (content, bool) { return content{nil, c.size}, true }},
		{"cut in half", cut(used / 2)},
		{"cut by some bytes", cut(min(used, 5))},
	}
	for _, part := range []float64{0.02, 0.5, 1} {
		at := int(part * float64(used-1))
		all = append(all, damage{fmt.Sprintf("bit flipped, %.0f percent into it", 100*part), func(c content) (content, bool) {
			c.used = bytes.Clone(c.used)
			c.used[at] ^= 1 << (at % 8)
			return c, true
		}})
	}
	return all
}

// harmed copies the masters once for each damage of each of their files.
func harmed(t *testing.T) (dirs []string) {
	root := t.TempDir()
	for name, master := range masters(t) {
		for file, c := range master {
			if len(c.used) == 0 || filepath.Base(file) == "LOCK" {
				continue
			}
			for _, d := range damages(len(c.used)) {
				copied := maps.Clone(master)
				if harm, ok := d.do(c); ok {
					copied[file] = harm
				} else {
					delete(copied, file)
				}
				dir := filepath.Join(root, fmt.Sprintf("%s %s %s", name, filepath.Base(file), d.name))
				copied.write(t, dir)
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// Whatever happens to a file of a store, no wrong row is served after the restore: the damage is found, or repaired, or the
// rows are moved aside; and a store that cannot be opened is given up after few attempts.
func TestDamagedFilesNeverServeWrongRows(t *testing.T) {
	if testing.Short() {
		t.Skip("opens a hundred stores")
	}
	var whole, moved atomic.Int64
	dirs := harmed(t)
	t.Run("restore", func(t *testing.T) {
		for part := range slices.Chunk(dirs, len(dirs)/6+1) { // most of the time is waiting for the disk
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for dir, said := range outcomes(t, part) {
					last := said[len(said)-1]
					if !strings.HasPrefix(last, "right") {
						t.Errorf("%s: %s", filepath.Base(dir), strings.Join(said, " | "))
					}
					if strings.HasSuffix(last, "moved true") {
						moved.Add(1)
					} else {
						whole.Add(1)
					}
				}
			})
		}
	})
	t.Logf("%d damages: %d restored in place, %d moved aside", len(dirs), whole.Load(), moved.Load())
	if moved.Load() < 10 || whole.Load() < 5 {
		t.Error("the damages are too much alike")
	}
}

// A lock file of a process that was killed is in nobody's way.
func TestAKilledStoreOpensAtItsCheckpoint(t *testing.T) {
	var dirs []string
	for name, master := range masters(t) {
		dir := filepath.Join(t.TempDir(), name)
		master.write(t, dir)
		dirs = append(dirs, dir)
	}
	for dir, said := range outcomes(t, dirs) {
		if len(said) != 1 || said[0] != "right from 50 moved false" {
			t.Errorf("%s: %v", filepath.Base(dir), said)
		}
	}
}

// flushForEver is the child that is killed: it works through the history round by round and flushes after every epoch. It
// prints the position that each flush is about to claim, and again when it has.
func flushForEver(dir string) {
	e, _, err := OpenDir(dir, testIdentity, func(string) {})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	s, err := Open(e, Options{Stores: testIdentity.Stores, CacheBytes: 1 << 20, FlushInterval: time.Second})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for epoch := int(s.Position(0)); ; epoch++ {
		fmt.Println("begin", epoch+1)
		for _, c := range historyChanges(epoch) {
			s.Apply(0, c.segment, []byte(c.key), c.value)
		}
		s.SetPosition(0, record.Offset(epoch+1), time.Now())
		if _, err := s.Flush(time.Now()); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("done", epoch+1)
	}
}
