package store

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/record"
)

// The tests of this file and its neighbours run this binary a second time: Badger may die of a damaged file in a goroutine
// that nobody can recover, and a kill needs a process to kill.

const childVariable = "STORE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "restore":
		restoreAll(os.Args[1:])
	case "flush":
		flushForEver(os.Args[1])
	default:
		os.Exit(m.Run())
	}
}

func child(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(binary, args...)
	c.Env = append(os.Environ(), childVariable+"="+role)
	return c
}

// historyChanges is what epoch e of a fixed history did; its position in the changelog is e. It has rows that change, rows
// that end, segments that end, and a few large values.
func historyChanges(e int) (rows []change) {
	for i := range 40 {
		n := e*40 + i
		value := []byte(fmt.Sprintf("epoch %d row %d %s", e, i, strings.Repeat("x", n%300)))
		if n%11 == 0 {
			value = nil
		}
		rows = append(rows, change{int64(n % 3), fmt.Sprint("key ", n*7%211), value})
	}
	for i := range 5 { // never touched again: a table that goes missing takes some along
		rows = append(rows, change{1, fmt.Sprint("once ", e, " ", i), []byte("v")})
	}
	if e == 3 || e == 33 { // goes to the value log
		rows = append(rows, change{0, fmt.Sprint("large ", e), []byte(strings.Repeat("large", 1<<20/4))})
	}
	return rows
}

const historyEpochs = 60

// image is every row after the first epochs of the history.
func image(epochs int) map[string]string {
	rows := map[string]string{}
	for e := range epochs {
		for _, c := range historyChanges(e) {
			name := fmt.Sprint(c.segment, "/", c.key)
			if c.value == nil {
				delete(rows, name)
			} else {
				rows[name] = string(c.value)
			}
		}
	}
	return rows
}

// replay brings a State from its position to the end of the history, as a restore does.
func replay(s *State, epochs int, now time.Time) {
	for e := int(s.Position(0)); e < epochs; e++ {
		for _, c := range historyChanges(e) {
			s.Apply(0, c.segment, []byte(c.key), c.value)
		}
		s.SetPosition(0, record.Offset(e+1), now)
	}
}

// compare tells the first row that is not as it should be; an error is the engine's.
func compare(s *State, want map[string]string) (wrong string, err error) {
	for segment := range int64(3) {
		keys, err := s.Store(0).Keys(segment)
		if err != nil {
			return "", err
		}
		all := map[string]bool{}
		for name := range want {
			if key, ok := strings.CutPrefix(name, fmt.Sprint(segment, "/")); ok {
				all[key] = true
			}
		}
		for i := range keys.Len() {
			all[string(keys.At(i))] = true
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			got, found, err := s.Store(0).Load(segment, []byte(key))
			if err != nil {
				return "", err
			}
			name := fmt.Sprint(segment, "/", key)
			if value, ok := want[name]; ok != found || value != string(got) {
				return fmt.Sprintf("%s is %.40q (found %v), want %.40q (%v)", name, got, found, value, ok), nil
			}
		}
	}
	return "", nil
}

// restoreAll is the child that opens directories, restores them and looks at every row. For each it prints what it found.
func restoreAll(dirs []string) {
	want := image(historyEpochs)
	for _, dir := range dirs {
		fmt.Println("begin")
		fmt.Println(restoreOne(dir, want))
	}
}

func restoreOne(dir string, want map[string]string) string {
	e, found, err := OpenDir(dir, testIdentity, func(string) {})
	if err != nil {
		return "error open: " + oneLine(err)
	}
	s, err := Open(e, Options{Stores: testIdentity.Stores, CacheBytes: 1 << 20, FlushInterval: time.Second})
	if err != nil {
		_ = e.Close() // the error above is the news
		return "error state: " + oneLine(err)
	}
	from := s.Position(0)
	if from > historyEpochs {
		return "wrong position " + strconv.Itoa(int(from))
	}
	replay(s, historyEpochs, time.Now())
	wrong, err := compare(s, want)
	if err == nil && wrong == "" {
		_, err = s.Flush(time.Now()) // what is written on top of a damage counts as well
	}
	if closed := s.Close(); err == nil {
		err = closed
	}
	switch {
	case wrong != "":
		return "wrong " + wrong
	case err != nil:
		return "error rows: " + oneLine(err)
	}
	return fmt.Sprintf("right from %d moved %v", from, found.Damaged != "")
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// outcomes runs the child until every directory is restored or has had its chances. A directory on which it dies, or fails,
// is tried again, as a supervisor would.
func outcomes(t *testing.T, dirs []string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for len(dirs) > 0 {
		c := child(t, "restore", dirs...)
		var stderr strings.Builder
		c.Stderr = &stderr
		out, err := c.Output()
		lines := bufio.NewScanner(strings.NewReader(string(out)))
		lines.Buffer(nil, 1<<20)
		var again []string
		for lines.Scan() {
			if lines.Text() != "begin" {
				t.Fatalf("the child said %q; %v", lines.Text(), err)
			}
			dir, said := dirs[0], "died"
			dirs = dirs[1:]
			if lines.Scan() {
				said = lines.Text()
			} else if first, _, ok := strings.Cut(stderr.String(), "\n\n"); ok {
				said = "died " + oneLine(fmt.Errorf("%.200s", first))
			}
			all[dir] = append(all[dir], said)
			if !strings.HasPrefix(said, "right") && !strings.HasPrefix(said, "wrong") && len(all[dir]) < 5 {
				again = append(again, dir)
			}
		}
		if err != nil && len(out) == 0 {
			t.Fatalf("the child could not begin: %v %s", err, stderr.String())
		}
		dirs = append(again, dirs...)
	}
	return all
}

// tree is the files of a directory, each with the tail of zeros that Badger preallocates.
type tree map[string]content

type content struct {
	used []byte
	size int64
}

func readTree(t *testing.T, dir string) tree {
	t.Helper()
	files := tree{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b := read(t, name)
		rel, err := filepath.Rel(dir, name)
		files[rel] = content{bytes.Clone(bytes.TrimRight(b, "\x00")), int64(len(b))}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// write makes a copy in which the tails are holes.
func (files tree) write(t *testing.T, dir string) {
	t.Helper()
	for name, c := range files {
		name = filepath.Join(dir, name)
		write(t, name, c.used)
		if err := os.Truncate(name, c.size); err != nil {
			t.Fatal(err)
		}
	}
}
