package trial

import (
	"context"
	"fmt"
	"time"

	"millrace/bench/process"
)

// sample is the state of a run at one moment.
type sample struct {
	at     time.Time
	done   uint64 // records that the group has committed
	usage  process.Usage
	broker process.Usage
	host   process.Host
	self   process.Usage
}

// sample reads progress first: the CPU time that is charged to it is never too low.
func (t *trial) sample(ctx context.Context) (s sample, err error) {
	if s.done, err = t.Cluster.Committed(ctx, t.assigned.App, t.assigned.In); err != nil {
		return s, err
	}
	s.at = time.Now()
	if s.usage, err = process.UsageOf(t.process.PID); err != nil {
		return s, err
	}
	return s, t.sampleOthers(&s)
}

func (t *trial) sampleOthers(s *sample) (err error) {
	if t.BrokerPID > 0 {
		if s.broker, err = process.UsageOf(t.BrokerPID); err != nil {
			return err
		}
	}
	if s.self, err = process.UsageOf(selfPID); err != nil {
		return err
	}
	s.host, err = process.HostNow()
	return err
}

// await samples until the group has committed want records, and shows each sample to see. It returns false, and makes the run void, when
// the process ended or the time is up before.
func (t *trial) await(ctx context.Context, want uint64, see func(sample)) (bool, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	limit := time.Now().Add(t.Limit)
	for {
		if ended, err := t.process.Ended(); ended {
			t.void(fmt.Errorf("the process ended by itself: %v", err))
			return false, nil
		}
		s, err := t.sample(ctx)
		if err != nil {
			if ended, _ := t.process.Ended(); ended {
				continue // it went between the question and the answer
			}
			return false, err
		}
		see(s)
		if s.done >= want {
			return true, nil
		}
		if s.at.After(limit) {
			t.void(fmt.Errorf("only %d of %d records were committed after %s", s.done, want, t.Limit))
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}

// neighbours notes who else used the machine between two samples. CPU time of a broker that is not ours counts as others'.
func (t *trial) neighbours(from, to sample) {
	span := to.at.Sub(from.at).Seconds()
	if span <= 0 {
		return
	}
	known := to.usage.CPU - from.usage.CPU + to.broker.CPU - from.broker.CPU + to.self.CPU - from.self.CPU
	t.run.Neighbours = max(0, (to.host.Busy-from.host.Busy-known).Seconds()/span)
	t.run.Steal = (to.host.Steal - from.host.Steal).Seconds() / span
}
