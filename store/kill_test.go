package store

import (
	"bufio"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A process that is killed in the middle of its flushes, twenty times over, leaves a checkpoint that speaks the truth: what it
// said was flushed is there, and after the changelog's tail every row is right.
func TestKilledFlushesLeaveATrueCheckpoint(t *testing.T) {
	if testing.Short() {
		t.Skip("kills twenty processes")
	}
	dir := filepath.Join(t.TempDir(), "0_0")
	promised := 0
	for round := range 20 {
		c := child(t, "flush", dir)
		begun, done := killAmid(t, c, 2+round%5)
		promised = max(promised, done)
		e, found := openDir(t, dir)
		s, err := Open(e, Options{Stores: testIdentity.Stores, CacheBytes: 1 << 16, FlushInterval: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		position := int(s.Position(0))
		if position < promised || position > begun || found.Damaged != "" {
			t.Fatalf("round %d: at %d after %d was promised and %d begun; %+v", round, position, promised, begun, found)
		}
		// The engine may hold rows of a flush that was cut off: they are of the epoch that comes next, which the tail repeats.
		replay(s, begun, time.Now())
		if wrong, err := compare(s, image(begun)); wrong != "" || err != nil {
			t.Fatalf("round %d, at %d of %d: %s %v", round, position, begun, wrong, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if promised < 20 {
		t.Errorf("only %d flushes were done", promised)
	}
}

// killAmid kills the child some lines after it began to flush, and returns the last epoch that it had begun and done.
func killAmid(t *testing.T, c *exec.Cmd, lines int) (begun, done int) {
	t.Helper()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for n := 0; said.Scan(); n++ {
		word, number, _ := strings.Cut(said.Text(), " ")
		epoch := 0
		if _, err := fmt.Sscan(number, &epoch); err != nil {
			t.Fatalf("the child said %q", said.Text())
		}
		switch word {
		case "begin":
			begun = epoch
		case "done":
			done = epoch
		}
		if n == lines {
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = c.Wait() // it was killed
	return begun, done
}
