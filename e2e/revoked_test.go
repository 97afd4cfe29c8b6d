package e2e

import (
	"context"
	"testing"
	"time"

	"millrace/devbroker"
)

// A commit that takes longer than a rebalance waits for must not be finished later: its tasks have new owners by then,
// which go on from the offsets before it, and its member is in the group with a valid generation.
func TestRevokedTasksAreNotCommittedLater(t *testing.T) {
	t.Parallel()
	replay(t)
	s := newDevSite(t, 1)
	r := newRun(s, runOptions{job: changesJob, seed: seed(), partitions: 4, replicas: 2, settings: settings{session: "15s", kafka: "  heartbeat_interval: 200ms\n"}})
	slow, joiner := r.replicas[0], r.replicas[1]
	slow.start(fault{})
	r.feed(10)
	arrive := r.holdProduce()
	joiner.start(fault{})
	poll(t, patience, "the joiner works on what was given up", func() bool {
		tasks, _ := joiner.assigned()
		return len(tasks) == 2 && len(joiner.log.lines("ready")) > 0
	})
	arrive()
	r.feed(10)
	if slow.repetitions() == 0 {
		t.Error("the slow commit was finished: the rebalance has waited for it, and this test has shown nothing")
	}
	r.alive()
	joiner.kill() // what the slow one may have spoilt is seen by whoever reads it
	joiner.loseDisk()
	joiner.start(fault{})
	r.feed(10)
	r.finish()
}

// holdProduce catches a commit of a replica at its results. The test's own writing is over when it begins.
func (r *run) holdProduce() (release func()) {
	r.t.Helper()
	for range 20 {
		r.produce(r.input.take(5))
		held, release := r.site.broker.Hold(devbroker.Produce)
		ctx, cancel := context.WithTimeout(r.site.ctx, time.Second)
		err := held.Wait(ctx, 1)
		cancel()
		if err == nil {
			held.Remove() // everything later passes
			return release
		}
		release()
	}
	r.t.Fatal("no commit could be caught")
	return nil
}
