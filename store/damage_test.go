package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/record"
)

// masters makes the two directories that are damaged: one whose process was killed after its last flush, and one that was
// closed. Both have several tables, a value log, and are behind the changelog.
func masters(t *testing.T) map[string]string {
	root := t.TempDir()
	live := filepath.Join(root, "live")
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
	killed := filepath.Join(root, "killed")
	copyTree(t, live, killed) // what a kill would leave: flushes are synced
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return map[string]string{"killed": killed, "closed": live}
}

// damage is one way to harm a file.
type damage struct {
	name string
	do   func(content []byte) []byte
}

// damages lists ways to harm a file of which the first used bytes mean anything.
func damages(used int) []damage {
	all := []damage{
		{"emptied", func([]byte) []byte { return nil }},
		{"zeroed", func(b []byte) []byte { return make([]byte, len(b)) }},
		{"cut in half", func(b []byte) []byte { return b[:used/2] }},
		{"cut by some bytes", func(b []byte) []byte { return b[:used-min(used, 5)] }},
	}
	last := -1
	for _, part := range []float64{0, 0.02, 0.2, 0.5, 0.8, 1} {
		at := int(part * float64(used-1))
		if at == last {
			continue
		}
		last = at
		all = append(all, damage{fmt.Sprintf("bit flipped at %d of %d", at, used), func(b []byte) []byte {
			b = bytes.Clone(b)
			b[at] ^= 1 << (at % 8)
			return b
		}})
	}
	return all
}

// Whatever happens to a file of a store, no wrong row is served after the restore: the damage is found, or repaired, or the
// rows are moved aside; and a store that cannot be opened is given up after few attempts.
func TestDamagedFilesNeverServeWrongRows(t *testing.T) {
	if testing.Short() {
		t.Skip("opens some hundred stores")
	}
	root := t.TempDir()
	var dirs []string
	for name, master := range masters(t) {
		files, err := filepath.Glob(filepath.Join(master, "db", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range append(files, filepath.Join(master, "meta")) {
			content := read(t, file)
			used := len(bytes.TrimRight(content, "\x00"))
			if used == 0 || filepath.Base(file) == "LOCK" {
				continue
			}
			for _, d := range damages(used) {
				dir := filepath.Join(root, fmt.Sprintf("%s %s %s", name, filepath.Base(file), d.name))
				copyTree(t, master, dir)
				rel, err := filepath.Rel(master, file)
				if err != nil {
					t.Fatal(err)
				}
				writeSparse(t, filepath.Join(dir, rel), d.do(content))
				dirs = append(dirs, dir)
			}
		}
	}
	whole, moved := 0, 0
	for dir, said := range outcomes(t, dirs) {
		last := said[len(said)-1]
		if !strings.HasPrefix(last, "right") {
			t.Errorf("%s: %s", filepath.Base(dir), strings.Join(said, " | "))
		}
		if strings.HasSuffix(last, "moved true") {
			moved++
		} else {
			whole++
		}
	}
	t.Logf("%d damages: %d restored in place, %d moved aside", len(dirs), whole, moved)
	if moved < 10 || whole < 5 {
		t.Errorf("the damages are too much alike: %d moved aside, %d not", moved, whole)
	}
}

// A lock file of a process that was killed is in nobody's way.
func TestAKilledStoreOpensAtItsCheckpoint(t *testing.T) {
	dirs := masters(t)
	for dir, said := range outcomes(t, []string{dirs["killed"], dirs["closed"]}) {
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
