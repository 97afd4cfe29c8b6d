package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/crash"
)

// schedule is one way in which a replica dies and comes back.
type schedule struct {
	number   int
	place    string
	job      job
	replicas int
	lost     bool // with its disk

	count    int  // dies at this passing of the place
	static   bool // a static member of the group
	takeover bool // the others take its tasks before it comes back
	second   fault
	seed     uint64
}

func (s schedule) String() string {
	disk, member, back, again := "same", "dynamic", "at-once", "once"
	if s.lost {
		disk = "lost"
	}
	if s.static {
		member = "static"
	}
	if s.takeover {
		back = "after-takeover"
	}
	if s.second.place != "" {
		again = fmt.Sprintf("again-at-%s-%d", s.second.place, s.second.count)
	}
	return fmt.Sprintf("%03d_%s-%d_%s_%d-replicas_%s-disk_%s_%s_%s", s.number, s.place, s.count, s.job.name, s.replicas, disk, member, back, again)
}

// applies tells whether a job passes a place at all: one without a store neither restores nor flushes.
func applies(place string, j job) bool {
	return j.stateful || place != "start.restore" && !strings.HasPrefix(place, "flush.")
}

// schedules draws n schedules: every place in turn, and for each the product of jobs, replicas and disks in random order.
func schedules(n int, from uint64) []schedule {
	random := rand.New(rand.NewPCG(from, 23))
	byPlace := make([][]schedule, len(crash.Places))
	for i, place := range crash.Places {
		for _, j := range jobs {
			for replicas := 1; replicas <= 3 && applies(place, j); replicas++ {
				byPlace[i] = append(byPlace[i], schedule{place: place, job: j, replicas: replicas}, schedule{place: place, job: j, replicas: replicas, lost: true})
			}
		}
		random.Shuffle(len(byPlace[i]), func(a, b int) { byPlace[i][a], byPlace[i][b] = byPlace[i][b], byPlace[i][a] })
	}
	var list []schedule
	for round := 0; len(list) < n; round++ {
		for _, all := range byPlace {
			s := all[round%len(all)]
			s.number, s.seed = len(list), random.Uint64()
			s.count, s.static, s.takeover = 1, random.IntN(2) == 0, s.replicas > 1 && random.IntN(5) == 0
			switch {
			case strings.HasPrefix(s.place, "commit."):
				s.count += random.IntN(8)
			case strings.HasPrefix(s.place, "flush."):
				s.count += random.IntN(2)
			}
			if random.IntN(3) == 0 {
				s.second = fault{syscall.SIGKILL, crash.Places[3+random.IntN(7)], 1 + random.IntN(4)}
			}
			list = append(list, s)
		}
	}
	return list[:n]
}

func howMany(quick, onKafka, full int) int {
	if n, err := strconv.Atoi(os.Getenv("MILLRACE_E2E_SCHEDULES")); err == nil {
		return n
	}
	switch {
	case testing.Short():
		return quick
	case realKafka():
		return onKafka
	}
	return full
}

// TestCrashSchedules ends a replica at every named place of an epoch's life, brings it back, and expects the exact
// result. MILLRACE_E2E_SCHEDULES sets how many; 336 are the whole product.
func TestCrashSchedules(t *testing.T) {
	t.Parallel()
	for _, s := range schedules(howMany(30, 40, 200), seed()) {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			s.run(t)
		})
	}
}

func (s schedule) run(t *testing.T) {
	replay(t)
	o := runOptions{job: s.job, seed: s.seed, partitions: int32(1 + s.seed%2), replicas: s.replicas, static: s.static}
	if s.replicas > 1 {
		o.partitions = 4 // everybody has something to do
	}
	if strings.HasPrefix(s.place, "start.") {
		o.settings.flush = "10m" // only a clean stop writes to disk: the start at which it dies has something to restore
	}
	r := newRun(newSite(t), o)
	r.dies(s)
	victim := r.replicas[0]
	if s.takeover {
		r.feed(20)
	}
	if s.lost {
		victim.loseDisk()
	}
	victim.start(s.second)
	if s.second.place != "" {
		r.feedUntilDead(victim, 3*time.Second)
		if victim.running() {
			victim.kill() // the place was not passed so often: then anywhere
		}
		victim.start(fault{})
	}
	for range 3 {
		r.produce(r.input.take(10))
	}
	r.finish()
}

// dies brings the first replica to its death at the schedule's place, with the others at work.
func (r *run) dies(s schedule) {
	r.t.Helper()
	victim, f := r.replicas[0], fault{syscall.SIGKILL, s.place, s.count}
	for _, c := range r.replicas[1:] {
		c.start(fault{})
	}
	switch {
	case strings.HasPrefix(s.place, "start."):
		victim.start(fault{})
		r.fillChangelog()
		if code := victim.stop(); code != 0 {
			r.t.Fatalf("the first stop ended with exit code %d", code)
		}
		victim.start(fault{})
		r.fillChangelog()
		victim.kill() // its disk is behind the changelog now
		if s.lost {
			victim.loseDisk()
		}
		victim.start(f)
	case strings.HasPrefix(s.place, "drain."):
		victim.start(f)
		r.feed(20)
		r.produce(r.input.take(30))
		victim.signal(syscall.SIGTERM)
	default:
		victim.start(f)
	}
	r.feedUntilDead(victim, 30*time.Second)
	if victim.running() {
		r.t.Fatalf("replica %s did not pass %s %d times", victim.name, s.place, s.count)
	}
}

// fillChangelog feeds until every task has written more to its changelog than it had before.
func (r *run) fillChangelog() {
	r.t.Helper()
	r.feed(20)
	if !r.job.stateful {
		return
	}
	before, err := r.site.client.EndOffsets(r.site.ctx, r.changelog())
	if err != nil {
		r.t.Fatal(err)
	}
	poll(r.t, patience, "every task writes to its changelog", func() bool {
		r.feed(10)
		now, err := r.site.client.EndOffsets(r.site.ctx, r.changelog())
		for p, end := range now {
			if end <= before[p] {
				return false
			}
		}
		return err == nil
	})
}

// feedUntilDead keeps producing while the replica lives, at most for the limit.
func (r *run) feedUntilDead(victim *replica, limit time.Duration) {
	r.t.Helper()
	deadline := time.Now().Add(limit)
	for victim.running() && time.Now().Before(deadline) {
		r.produce(r.input.take(6))
		polled(time.Until(deadline), func() bool { return !victim.running() || r.allCommitted() })
	}
}

func TestSchedulesCoverEveryPlace(t *testing.T) {
	covered := map[string]bool{}
	for _, s := range schedules(30, seed()) {
		covered[s.place] = true
	}
	for _, place := range crash.Places {
		if !covered[place] {
			t.Errorf("the quick schedules leave out %s", place)
		}
	}
	a, b := schedules(200, 7), schedules(200, 7)
	if !slices.EqualFunc(a, b, func(x, y schedule) bool { return x.String() == y.String() && x.seed == y.seed }) {
		t.Error("the same seed gives other schedules")
	}
}
