package trial

import (
	"context"
	"os"
	"time"

	"millrace/bench/process"
)

var selfPID = os.Getpid()

// backlog lets the side work a preloaded topic off.
func (t *trial) backlog(ctx context.Context) (err error) {
	w := t.workload()
	if t.assigned.In, err = t.preloaded(ctx, w); err != nil {
		return err
	}
	if err := t.start(); err != nil {
		return err
	}
	var quarter, before, last sample
	caughtUp, err := t.await(ctx, w.Records, func(s sample) {
		if t.run.FirstSeconds == 0 && s.done > 0 {
			t.run.FirstSeconds = s.at.Sub(t.process.Started).Seconds()
		}
		if quarter.at.IsZero() && s.done >= w.Records/4 {
			quarter = s
		}
		if s.done > last.done {
			before, last = last, s
		}
	})
	if err != nil {
		return err
	}
	if caughtUp {
		t.note(quarter, before, last)
		if err := t.sizes(ctx); err != nil {
			return err
		}
	}
	t.stop()
	if !caughtUp {
		return nil
	}
	return t.check(ctx, w.Records)
}

// note turns samples into figures. The steady ones reach from one commit to another, the last but one: right behind each some records
// are worked on already, so that their cost cancels out. A run that was over within a few samples has none.
func (t *trial) note(quarter, before, last sample) {
	t.run.WallSeconds = last.at.Sub(t.process.Started).Seconds()
	t.run.CPUWhole = micros(last.usage.CPU, last.done)
	t.run.PeakRSS = last.usage.PeakRSS
	t.neighbours(quarter, last)
	if before.done < last.done/2 || quarter.done >= before.done {
		return
	}
	records := before.done - quarter.done
	t.run.CPUSteady = micros(before.usage.CPU-quarter.usage.CPU, records)
	t.run.BrokerCPU = micros(before.broker.CPU-quarter.broker.CPU, records)
	t.run.RateSteady = float64(records) / before.at.Sub(quarter.at).Seconds()
}

func micros(cpu time.Duration, records uint64) float64 {
	return float64(cpu.Nanoseconds()) / 1000 / float64(records)
}

func (t *trial) sizes(ctx context.Context) error {
	log, err := t.Cluster.Sizes(ctx, t.assigned.App+"-", "-changelog")
	t.run.ChangelogBytes, t.run.ChangelogSize = log.Bytes, log.Positions
	return err
}

// cpuNow is the CPU time of the process that runs, in seconds.
func (t *trial) cpuNow() (float64, error) {
	u, err := process.UsageOf(t.process.PID)
	return u.CPU.Seconds(), err
}
