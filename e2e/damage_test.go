package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// damage is one way in which a task's files can go bad while nobody looks.
type damage struct {
	name  string
	files string // below the task's directory
	do    func(path string) error
}

func cut(keep func(size int64) int64) func(string) error {
	return func(path string) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Truncate(path, keep(info.Size()))
	}
}

// flip inverts one bit at a share of the file, in per mille.
func flip(at int64) func(string) error {
	return func(path string) error {
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			return err
		}
		b[int64(len(b)-1)*at/1000] ^= 0x10
		return os.WriteFile(path, b, 0o600)
	}
}

var (
	half    = cut(func(size int64) int64 { return size / 2 })
	nothing = cut(func(int64) int64 { return 0 })
)

func lastBytes(n int64) func(string) error {
	return cut(func(size int64) int64 { return max(0, size-n) })
}

var damages = []damage{
	{"table cut in half", "db/*.sst", half},
	{"table empty", "db/*.sst", nothing},
	{"table without its last byte", "db/*.sst", lastBytes(1)},
	{"bit in the first row of a table", "db/*.sst", flip(5)},
	{"bit in the rows of a table", "db/*.sst", flip(400)},
	{"bit in the index of a table", "db/*.sst", flip(850)},
	{"bit in the last byte of a table", "db/*.sst", flip(1000)},
	{"table gone", "db/*.sst", os.Remove},
	{"manifest without its last 3 bytes", "db/MANIFEST", lastBytes(3)},
	{"manifest cut in half", "db/MANIFEST", half},
	{"bit in the manifest", "db/MANIFEST", flip(600)},
	{"manifest gone", "db/MANIFEST", os.Remove},
	{"memtable log cut", "db/*.mem", half},
	{"bit in the memtable log", "db/*.mem", flip(1)},
	{"value log gone", "db/*.vlog", os.Remove},
	{"key registry damaged", "db/KEYREGISTRY", flip(500)},
	{"discard statistics damaged", "db/DISCARD", half},
	{"meta damaged", "meta", flip(300)},
	{"meta empty", "meta", nothing},
	{"meta gone", "meta", os.Remove},
	{"rows gone", "db", os.RemoveAll},
}

// TestDamagedFiles: what is on disk is a copy. Whatever happens to it, the result is exact: the damage is found and the
// rows are restored, or it did not matter.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	list := damages
	if testing.Short() {
		list = []damage{damages[0], damages[4], damages[8], damages[17]}
	}
	for _, d := range list {
		for _, killed := range []bool{false, true} {
			name := d.name + "/stopped"
			if killed {
				name = d.name + "/killed"
			}
			// Only a clean stop leaves tables in so small a state, and only a kill leaves a log beside them.
			if killed == strings.HasSuffix(d.files, ".sst") || !killed && strings.HasSuffix(d.files, ".mem") {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				replay(t)
				d.run(t, killed)
			})
		}
	}
}

func (d damage) run(t *testing.T, killed bool) {
	r := newRun(newSite(t), runOptions{job: changesJob, seed: seed(), partitions: 2, replicas: 1, settings: settings{flush: "50ms"}})
	c := r.replicas[0]
	c.extra = append(c.extra, "--log-level", "debug")
	for range 2 { // two lives make two tables
		c.start(fault{})
		for range 4 {
			r.feed(15)
		}
		if killed {
			poll(t, patience, "both tasks have flushed", func() bool { return len(c.flushes()) == int(r.partitions) })
			c.kill()
		} else if code := c.stop(); code != 0 {
			t.Fatalf("exit code %d", code)
		}
	}
	hit := 0
	for _, dir := range c.taskDirs() {
		files, err := filepath.Glob(filepath.Join(dir, d.files))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(files)
		for _, file := range files {
			if err := d.do(file); err != nil {
				t.Fatal(err)
			}
			hit++
		}
	}
	if hit == 0 {
		t.Fatalf("there is no %s in this state", d.files)
	}
	c.start(fault{})
	r.supervise(c)
	r.produce(r.input.take(20))
	r.finish()
	t.Logf("%d files; %d starts; moved aside: %d", hit, c.life-2, len(c.log.lines("the rows on disk were damaged and have been moved aside; they are restored from the changelog")))
}

// supervise restarts the replica when it dies over its files, as whatever runs it in production does. It may do so twice
// a task: then it must have given the files up.
func (r *run) supervise(c *replica) {
	r.t.Helper()
	lives := c.life
	poll(r.t, patience, "it has all its tasks at work", func() bool {
		if !c.running() {
			if c.life-lives >= 2*int(r.partitions) {
				r.t.Fatalf("replica %s died %d times over damaged files", c.name, c.life-lives)
			}
			c.report()
			c.start(fault{})
		}
		return len(c.log.lines("ready")) > 0
	})
}
