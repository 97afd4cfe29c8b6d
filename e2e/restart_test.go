package e2e

import (
	"fmt"
	"testing"
)

// restored sums what the replica's log says about its restores.
func (r *replica) restored() (stores, reused, replayed int64) {
	for _, l := range r.log.lines("restored") {
		stores++
		if l["reused"] == true {
			reused++
		}
		replayed += l.number("replayed")
	}
	return stores, reused, replayed
}

// changelogEnd sums the ends of the changelog's partitions.
func (r *run) changelogEnd() (sum int64) {
	r.t.Helper()
	ends, err := r.site.client.EndOffsets(r.site.ctx, r.changelog())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, end := range ends {
		sum += end
	}
	return sum
}

// flushes counts the flushes of each task.
func (r *replica) flushes() map[string]int {
	n := map[string]int{}
	for _, l := range r.log.lines("flushed") {
		n[l.text("task")]++
	}
	return n
}

// TestRestartReplaysOnlyWhatWasNotFlushed: how long a restart takes follows from what was not on disk, never from the
// size of the state or of the changelog.
func TestRestartReplaysOnlyWhatWasNotFlushed(t *testing.T) {
	t.Parallel()
	for _, j := range []job{shuffledJob, finalJob, changesJob}[:repeats()] {
		t.Run("never flushed since a clean stop/"+j.name, func(t *testing.T) {
			t.Parallel()
			replay(t)
			r := newRun(newSite(t), runOptions{job: j, seed: seed(), partitions: 2, replicas: 1, settings: settings{flush: "10m"}})
			c := r.replicas[0]
			c.start(fault{})
			r.fillChangelog()
			if code := c.stop(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			flushed := r.changelogEnd()
			c.start(fault{})
			r.fillChangelog()
			c.kill()
			r.replaysAtMost(c, r.changelogEnd()-flushed)
			r.finish()
		})
		t.Run("flushed often/"+j.name, func(t *testing.T) {
			t.Parallel()
			replay(t)
			r := newRun(newSite(t), runOptions{job: j, seed: seed(), partitions: 2, replicas: 1, settings: settings{flush: "20ms"}})
			c := r.replicas[0]
			c.extra = append(c.extra, "--log-level", "debug")
			c.start(fault{})
			for range 10 {
				r.fillChangelog()
			}
			before, written := c.flushes(), r.changelogEnd()
			r.fillChangelog() // every task has something to flush again
			poll(t, patience, "every task has flushed", func() bool {
				now := c.flushes()
				for p := range r.partitions {
					task := fmt.Sprintf("%d_%d", r.storeSubtopology(), p)
					if now[task] <= before[task] {
						return false
					}
				}
				return true
			})
			c.kill()
			r.replaysAtMost(c, r.changelogEnd()-written)
			r.finish()
		})
	}
}

// storeSubtopology is the number of the subtopology that has the store.
func (r *run) storeSubtopology() int {
	if r.job.name == shuffledJob.name {
		return 1
	}
	return 0
}

// replaysAtMost restarts a replica whose disk is intact and reads how much it restored.
func (r *run) replaysAtMost(c *replica, most int64) {
	r.t.Helper()
	c.start(fault{})
	poll(r.t, patience, "it runs again", func() bool { return len(c.log.lines("ready")) > 0 })
	stores, reused, replayed := c.restored()
	if stores != int64(r.partitions) || reused != stores {
		r.t.Errorf("%d of %d stores were reused, want all of %d", reused, stores, r.partitions)
	}
	if replayed > most {
		r.t.Errorf("%d records were replayed although only %d were written since", replayed, most)
	}
}
