package e2e

import "testing"

// TestExactWithoutFaults is the ground that all others stand on.
func TestExactWithoutFaults(t *testing.T) {
	t.Parallel()
	for _, j := range jobs {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			replay(t)
			r := newRun(newSite(t), runOptions{job: j, seed: seed(), partitions: 2, replicas: 2})
			r.start()
			for range 4 {
				r.feed(40)
			}
			r.alive()
			r.finish()
		})
	}
}
