package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"millrace/devbroker"
)

// A replica that is frozen for longer than its session believes, when it wakes up, that nothing has happened. Whatever it
// has begun must come to nothing, or have been counted before the others went on.
func TestZombieComesBack(t *testing.T) {
	t.Parallel()
	places := []string{"commit.begin", "commit.partitions", "commit.produced", "commit.offsets_added", "commit.offsets", "commit.ended", "commit.applied", "flush.rows"}
	if testing.Short() {
		places = []string{"commit.produced", "commit.offsets", "commit.ended"}
	}
	for i, place := range places {
		for _, j := range []job{finalJob, shuffledJob, changesJob}[:repeats()] {
			static := (i+len(j.name))%2 == 0
			t.Run(fmt.Sprintf("%s_%s_static-%v", place, j.name, static), func(t *testing.T) {
				t.Parallel()
				replay(t)
				r := newRun(newSite(t), runOptions{job: j, seed: seed() + uint64(i), partitions: 4, replicas: 2, static: static, settings: settings{session: "2s"}})
				zombie, other := r.replicas[0], r.replicas[1]
				other.start(fault{})
				zombie.start(fault{syscall.SIGSTOP, place, 1 + i%3})
				r.feedUntilFrozen(zombie)
				r.takenOver(other)
				r.feed(10)
				zombie.signal(syscall.SIGCONT)
				r.feed(10)
				r.alive()
				// What a zombie has spoilt may only be seen by whoever reads it.
				other.kill()
				other.loseDisk()
				other.start(fault{})
				r.feed(10)
				r.alive()
				r.finish()
			})
		}
	}
}

// The group has given its tasks away and the zombie does not know it yet. It was frozen between two commits, so nothing in
// its own process has timed out, and it goes on reading. Only the coordinator can stop it, by the generation under which
// it commits.
func TestZombieThatHasNotHeard(t *testing.T) {
	t.Parallel()
	for i := range repeats() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			replay(t)
			s := newDevSite(t, 1)
			r := newRun(s, runOptions{job: changesJob, seed: seed() + uint64(i), partitions: 4, replicas: 2, settings: settings{session: "2s"}})
			zombie, other := r.replicas[0], r.replicas[1]
			other.start(fault{})
			zombie.start(fault{syscall.SIGSTOP, "commit.applied", 2 + i})
			r.feedUntilFrozen(zombie)
			r.takenOver(other)
			r.feed(10)
			late := s.broker.Delay(devbroker.Heartbeat, devbroker.Always, time.Second) // the beat counts at once, its answer comes late
			zombie.signal(syscall.SIGCONT)
			poll(t, patience, "the zombie is refused", func() bool { return zombie.repetitions() > 0 })
			late.Remove()
			other.kill()
			other.loseDisk()
			other.start(fault{})
			r.feed(10)
			r.alive()
			r.finish()
		})
	}
}

// feedUntilFrozen produces until the replica has come to the place at which it stops.
func (r *run) feedUntilFrozen(c *replica) {
	r.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !c.frozen() {
		if time.Now().After(deadline) {
			r.t.Fatalf("replica %s did not come to its place", c.name)
		}
		r.produce(r.input.take(6))
		polled(time.Until(deadline), func() bool { return c.frozen() || r.allCommitted() })
	}
}

// repeats is how often something is tried that takes seconds each time.
func repeats() int {
	if testing.Short() || realKafka() {
		return 1
	}
	return 3
}

// takenOver waits until the replica has all source partitions' tasks and has committed with them.
func (r *run) takenOver(by *replica) {
	r.t.Helper()
	all := fmt.Sprintf("0_0..0_%d", r.partitions-1)
	poll(r.t, patience, by.name+" has all tasks", func() bool {
		assigned := by.log.lines("assigned")
		return len(assigned) > 0 && strings.HasPrefix(assigned[len(assigned)-1].text("active"), all)
	})
}

// A request to end a transaction is delayed on its way, repeated on another connection, and arrives at last while the
// next transaction has its results and not yet its offsets. It must not decide that one.
func TestLateEndTxnDecidesNothing(t *testing.T) {
	t.Parallel()
	replay(t)
	s := newDevSite(t, 1)
	r := newRun(s, runOptions{job: changesJob, seed: seed(), partitions: 2, replicas: 1})
	r.start()
	r.feed(20)
	for range repeats() {
		late, arrive := s.broker.Hold(devbroker.EndTxn)
		r.produce(r.input.take(10))
		if err := late.Wait(s.ctx, 1); err != nil {
			t.Fatal(err)
		}
		late.Remove() // the repetition passes, the first stays on its way
		r.committed()
		next, goOn := s.broker.Hold(devbroker.AddOffsets)
		r.produce(r.input.take(10))
		if err := next.Wait(s.ctx, 1); err != nil {
			t.Fatal(err)
		}
		stable := s.broker.StableOffset(r.out, 0)
		arrive()
		if polled(300*time.Millisecond, func() bool { return s.broker.StableOffset(r.out, 0) != stable }) {
			t.Error("results without offsets have become visible: the late request has decided the next transaction")
		}
		r.replicas[0].kill() // what is visible now without its offsets is there twice in the end
		goOn()
		r.start()
		r.committed()
	}
	r.alive()
	r.finish()
}

// TestRandomKills kills replicas at any time, not at named places, while others work.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	kills := 15
	if testing.Short() {
		kills = 4
	}
	for i, j := range jobs {
		if testing.Short() && i > 0 {
			break
		}
		replicas := 2 + i%2
		t.Run(fmt.Sprintf("%s_%d-replicas", j.name, replicas), func(t *testing.T) {
			t.Parallel()
			replay(t)
			r := newRun(newSite(t), runOptions{job: j, seed: seed() + uint64(i), partitions: 4, replicas: replicas, static: i%2 == 0 || mustBeStatic()})
			r.start()
			r.feed(10)
			r.killAtRandom(rand.New(rand.NewPCG(seed(), uint64(i))), kills)
			r.alive()
			r.finish()
		})
	}
}

// mustBeStatic tells whether members that are killed at any time must be static. The broker inside the process never
// expires a dynamic member that died between its join and its sync, which keeps its share of the tasks for ever; a real
// Kafka does.
func mustBeStatic() bool { return !realKafka() }

// killAtRandom kills and restarts replicas while input comes in; every third loses its disk.
func (r *run) killAtRandom(random *rand.Rand, kills int) {
	r.t.Helper()
	for kill := range kills {
		victim := r.replicas[random.IntN(len(r.replicas))]
		// The moment is drawn by work, not by time: after so many chunks, the last of them not waited for.
		for range random.IntN(4) {
			r.feed(4)
		}
		r.produce(r.input.take(10 + random.IntN(30)))
		if !victim.running() {
			r.t.Fatalf("replica %s has ended by itself: %v", victim.name, victim.cmd.ProcessState)
		}
		victim.kill()
		if kill%3 == 2 {
			victim.loseDisk()
		}
		victim.start(fault{})
	}
}

// TestRollingRestart: an orderly stop loses nothing, repeats nothing, and leaves nothing to restore.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	replay(t)
	r := newRun(newSite(t), runOptions{job: finalJob, seed: seed(), partitions: 4, replicas: 3, static: true, settings: settings{session: "10s", flush: "10m"}})
	r.start()
	r.fillChangelog()
	for _, c := range r.replicas {
		r.settled()
		before, _ := c.assigned()
		again := c.repetitions()
		r.produce(r.input.take(30))
		if code := c.stop(); code != 0 {
			t.Errorf("replica %s ended with exit code %d", c.name, code)
		}
		if n := c.repetitions() - again; n > 0 {
			t.Errorf("replica %s had to do work again %d times", c.name, n)
		}
		c.start(fault{})
		poll(t, patience, "it runs again", func() bool { return len(c.log.lines("ready")) > 0 })
		ready := c.log.lines("ready")[0]
		if ready.number("replayed") != 0 || ready.number("reused") != int64(len(before)) {
			t.Errorf("replica %s had the tasks %v, and its restart says %v: want all of them reused and nothing replayed", c.name, before, ready)
		}
	}
	r.feed(10)
	r.alive()
	r.finish()
}

// repetitions counts what says in the log that work was dropped and is done again.
func (r *replica) repetitions() int {
	n := 0
	for _, message := range []string{"commit aborted", "commit failed", "commit fenced", "recovering", "lost"} {
		n += len(r.log.lines(message))
	}
	return n
}
