package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/bench/cluster"
	"millrace/bench/results"
)

// instance makes both sides static members, so that a successor on the same machine does not wait for its predecessor's
// session to end.
const instance = "bench-0"

// recovery kills the process with most of its input behind it, appends more input, starts a successor, and waits for the first result that
// readers of committed records see, and for the end of the input.
func (t *trial) recovery(ctx context.Context) error {
	w := t.workload()
	// The input grows in this trial, so it is this trial's own.
	t.assigned.In, t.assigned.Instance = t.assigned.App+"-in", instance
	total := w.Records + w.Records/10
	err := t.Cluster.CreateTopic(ctx, t.assigned.In, w.Stream.Partitions)
	if err == nil {
		err = t.Cluster.Preload(ctx, t.assigned.In, w.Stream, 0, w.Records)
	}
	if err == nil {
		err = t.start()
	}
	if err != nil {
		return err
	}
	reached, err := t.await(ctx, w.Records*4/5, func(sample) {})
	if err != nil || !reached {
		return err
	}
	t.process.Kill()
	if err := t.sizes(ctx); err != nil {
		return err
	}
	done, err := t.Cluster.Committed(ctx, t.assigned.App, t.assigned.In)
	if err != nil {
		return err
	}
	t.run.Recovery = &results.Recovery{DoneAtKill: done, ChangelogSize: t.run.ChangelogSize}
	if err := t.Cluster.Preload(ctx, t.assigned.In, w.Stream, w.Records, total); err != nil {
		return err
	}
	if w.LoseDisk {
		if err := os.RemoveAll(t.assigned.Dir); err != nil {
			return err
		}
	}
	return t.succeed(ctx, total)
}

// succeed starts the successor and measures it.
func (t *trial) succeed(ctx context.Context, total uint64) error {
	tail, err := t.newResults(ctx)
	if err != nil {
		return err
	}
	defer tail.Close()
	var begin sample
	begin.at = time.Now()
	if err := t.sampleOthers(&begin); err != nil {
		return err
	}
	if err := t.start(); err != nil {
		return err
	}
	if seen, err := t.firstResult(ctx, tail); err != nil || !seen {
		return err
	}
	var last sample
	caughtUp, err := t.await(ctx, total, func(s sample) { last = s })
	if err != nil || !caughtUp {
		return err
	}
	t.run.Recovery.CaughtUpSeconds = last.at.Sub(t.process.Started).Seconds()
	t.run.PeakRSS = last.usage.PeakRSS
	t.neighbours(begin, last)
	t.stop()
	return t.check(ctx, total)
}

// newResults reads what is written to the output from now on. What lies in front of its end, visible or not, was written
// before: in a recovery by the dead process.
func (t *trial) newResults(ctx context.Context) (*cluster.Tail, error) {
	end, err := t.Cluster.End(ctx, t.assigned.Out, false)
	if err != nil {
		return nil, err
	}
	return t.Cluster.Tail(t.assigned.Out, end)
}

// firstResult waits for a record of the successor, and notes what it has cost.
func (t *trial) firstResult(ctx context.Context, tail *cluster.Tail) (bool, error) {
	if seen, err := t.firstCommitted(ctx, tail); err != nil || !seen {
		return false, err
	}
	t.run.Recovery.FirstResultSeconds = time.Since(t.process.Started).Seconds()
	cpu, err := t.cpuNow()
	t.run.Recovery.FirstResultCPU = cpu
	return true, err
}

// firstCommitted waits for any result; it returns false, and makes the run void, when none comes.
func (t *trial) firstCommitted(ctx context.Context, tail *cluster.Tail) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	seen := false
	for !seen {
		err := tail.Next(limited, func(*kgo.Record) { seen = true })
		if errors.Is(err, context.DeadlineExceeded) {
			t.void(fmt.Errorf("no result within %s of the start", t.Limit))
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}
