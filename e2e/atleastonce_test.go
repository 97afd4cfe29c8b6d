package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"

	"millrace/devbroker"
)

// covered is the promise of at_least_once: no record is missing. Each window that must have a result has one that counts
// at least its records, and each late record is there.
func covered(by string, want map[windowKey]total, late map[int64]bool, all []click, o output) (v verdict) {
	best := map[windowKey]int64{}
	for _, r := range o.out {
		got, err := parseResult(r, by)
		if err != nil {
			v.fault("%v", err)
			continue
		}
		best[got.windowKey] = max(best[got.windowKey], got.count)
	}
	for k, t := range want {
		if best[k] < t.count {
			v.miss("%v: at least %d, found %d", k, t.count, best[k])
		}
	}
	var repeated verdict // a late record may be there twice
	found := lateOf(all, o, &repeated)
	for n := range late {
		if !found[n] {
			v.miss("late record %d", n)
		}
	}
	return v
}

func atLeastOnce(j job) job {
	exact := j.verify
	j.verify = func(partitions int32, all []click, o output) verdict {
		late := lateBehindOwn(all)
		switch j.name {
		case finalJob.name:
			return covered("user", totals(all, byUser, late, false), late, all, o)
		case changesJob.name:
			return covered("user", totals(all, byUser, late, true), late, all, o)
		}
		return exact(partitions, all, o)
	}
	return j
}

func TestAtLeastOnceIsExactWithoutFaults(t *testing.T) {
	t.Parallel()
	for _, j := range jobs {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			replay(t)
			r := newRun(newSite(t), runOptions{job: j, seed: seed(), partitions: 2, replicas: 1, settings: settings{guarantee: "at_least_once"}})
			r.start()
			for range 4 {
				r.feed(20)
			}
			if code := r.replicas[0].stop(); code != 0 { // an orderly stop is no fault
				t.Errorf("exit code %d", code)
			}
			r.start()
			r.feed(10)
			r.finish()
		})
	}
}

func TestAtLeastOnceCountsEveryRecordAfterKills(t *testing.T) {
	t.Parallel()
	kills := 12
	if testing.Short() {
		kills = 4
	}
	for i, j := range []job{finalJob, changesJob} {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			replay(t)
			r := newRun(newSite(t), runOptions{job: atLeastOnce(j), seed: seed(), partitions: 4, replicas: 2, static: mustBeStatic(), settings: settings{guarantee: "at_least_once"}})
			r.start()
			r.feed(10)
			r.killAtRandom(rand.New(rand.NewPCG(seed(), uint64(40+i))), kills)
			r.alive()
			r.finish()
		})
	}
}

// Without a transaction the changelog can be written and the result not. The rows of the windows that have ended are then
// gone, and their result must not be.
func TestAtLeastOnceKeepsResultsThatCouldNotBeWritten(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		name := "lives"
		if killed {
			name = "dies"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replay(t)
			s := newDevSite(t, 1)
			r := newRun(s, runOptions{job: atLeastOnce(finalJob), seed: seed(), partitions: 1, replicas: 1, settings: settings{guarantee: "at_least_once"}})
			c := r.replicas[0]
			c.start(fault{})
			r.feed(40)
			const notLeader, tooManyToEnd = 6, devbroker.Always
			f := s.broker.FailTopic(r.out, devbroker.Produce, tooManyToEnd, notLeader)
			r.produce(r.input.finish())
			if err := f.Wait(s.ctx, 2); err != nil {
				t.Fatal(err)
			}
			if killed {
				c.kill()
				f.Remove()
				c.start(fault{})
			} else {
				poll(t, patience, "the epoch is given up", func() bool { return strings.Contains(c.log.String(), `"recovering"`) })
				f.Remove()
			}
			r.await()
			r.stop()
			r.verify()
		})
	}
}
