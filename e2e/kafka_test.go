package e2e

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// TestRealKafkaUnderKills is for the broker that the tests of the commit protocol cannot replace: kills and freezes in
// random order, against the coordinators and the log of a real Kafka.
func TestRealKafkaUnderKills(t *testing.T) {
	if !realKafka() {
		t.Skipf("%s is not set: there is no real Kafka here", brokersVariable)
	}
	t.Parallel()
	hurts := 10 // a job; two jobs
	if testing.Short() {
		hurts = 3
	}
	for i, j := range []job{changesJob, shuffledJob} {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			replay(t)
			r := newRun(newSite(t), runOptions{job: j, seed: seed(), partitions: 4, replicas: 2, static: i == 0})
			r.start()
			r.feed(20)
			random := rand.New(rand.NewPCG(seed(), uint64(60+i)))
			for range hurts {
				victim := r.replicas[random.IntN(2)]
				r.produce(r.input.take(20 + random.IntN(40)))
				if random.IntN(3) > 0 {
					victim.kill()
					if random.IntN(4) == 0 {
						victim.loseDisk()
					}
					victim.start(fault{})
				} else {
					r.freeze(victim, r.other(victim))
				}
				r.feed(10)
				r.alive()
			}
			r.finish()
		})
	}
}

func (r *run) other(than *replica) *replica {
	if r.replicas[0] == than {
		return r.replicas[1]
	}
	return r.replicas[0]
}

// freeze stops a replica until the other one has all of its tasks, and lets it go on with work in its hands.
func (r *run) freeze(c, other *replica) {
	r.t.Helper()
	c.signal(syscall.SIGSTOP)
	poll(r.t, 10*time.Second, "the kernel has stopped it", c.frozen)
	r.takenOver(other)
	r.feed(10)
	c.signal(syscall.SIGCONT)
}
