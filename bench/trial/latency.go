package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/bench/cluster"
	"millrace/bench/results"
)

// Paced is the load of latency trials.
type Paced struct {
	Rate    uint64        // records a second
	Warm    time.Duration // not counted: a JVM compiles meanwhile
	Measure time.Duration
}

// silence is how long after the schedule's end a result may still come.
const silence = 30 * time.Second

// latency offers records at a fixed rate and takes the time from when each was due to when its result was read.
func (t *trial) latency(ctx context.Context) error {
	w := t.workload()
	t.assigned.In = t.assigned.App + "-in"
	if err := t.Cluster.CreateTopic(ctx, t.assigned.In, w.Stream.Partitions); err != nil {
		return err
	}
	tail, err := t.newResults(ctx)
	if err != nil {
		return err
	}
	defer tail.Close()
	if err := t.start(); err != nil {
		return err
	}
	if ready, err := t.firstPassed(ctx, tail); err != nil || !ready {
		return err
	}
	warm := t.Paced.Rate * uint64(t.Paced.Warm/time.Second)
	schedule := cluster.Schedule{Begin: time.Now().Add(time.Second), Rate: t.Paced.Rate, Records: warm + t.Paced.Rate*uint64(t.Paced.Measure/time.Second)}
	t.run.Records = schedule.Records
	a, err := t.follow(ctx, schedule, warm, tail)
	if err != nil {
		return err
	}
	t.run.Latency = a.latency(schedule.Rate)
	t.stop()
	if a.problem != nil {
		t.void(a.problem)
	}
	return nil
}

// firstPassed waits until the side works: how long it takes to start is not what is asked here.
func (t *trial) firstPassed(ctx context.Context, tail *cluster.Tail) (bool, error) {
	one := cluster.Schedule{Begin: time.Now(), Rate: 1, Records: 1}
	if err := cluster.Pace(ctx, t.Cluster.Addr, t.assigned.In, t.workload().Stream, one); err != nil {
		return false, err
	}
	return t.firstCommitted(ctx, tail)
}

// follow reads results while another goroutine writes, until all have come.
func (t *trial) follow(ctx context.Context, schedule cluster.Schedule, warm uint64, tail *cluster.Tail) (*arrivals, error) {
	limited, cancel := context.WithDeadline(ctx, schedule.Due(schedule.Records).Add(silence))
	defer cancel()
	written := make(chan error, 1)
	go func() {
		written <- cluster.Pace(limited, t.Cluster.Addr, t.assigned.In, t.workload().Stream, schedule)
	}()
	a := &arrivals{schedule: schedule, warm: warm, seen: make([]bool, schedule.Records)}
	var begin, last sample
	for a.count < schedule.Records && a.problem == nil {
		err := tail.Next(limited, func(r *kgo.Record) { a.add(r.Value, time.Now()) })
		if errors.Is(err, context.DeadlineExceeded) {
			a.problem = fmt.Errorf("%d of %d results came within %s of the schedule's end", a.count, schedule.Records, silence)
			break
		}
		if err != nil {
			return nil, err
		}
		if begin.at.IsZero() && a.count >= warm {
			if begin, err = t.sample(ctx); err != nil {
				return nil, err
			}
		}
	}
	last, err := t.sample(ctx)
	if err != nil {
		a.problem = errors.Join(a.problem, err) // the process ended
	} else if !begin.at.IsZero() {
		t.neighbours(begin, last)
		t.run.CPUSteady = micros(last.usage.CPU-begin.usage.CPU, max(1, last.done-min(last.done, begin.done)))
		t.run.PeakRSS = last.usage.PeakRSS
	}
	cancel()
	if err := <-written; err != nil && a.problem == nil {
		return nil, err
	}
	return a, ctx.Err()
}

// arrivals are the results that have come.
type arrivals struct {
	schedule cluster.Schedule
	warm     uint64
	seen     []bool
	count    uint64
	millis   []float64
	problem  error
}

func (a *arrivals) add(value []byte, now time.Time) {
	text, err := field(value, `"seq":`, '}')
	var seq uint64
	if err == nil {
		seq, err = strconv.ParseUint(string(text), 10, 64)
	}
	switch {
	case err != nil:
		a.problem = fmt.Errorf("result %s: %w", value, err)
	case seq >= uint64(len(a.seen)):
		a.problem = fmt.Errorf("result %d was never written", seq)
	case a.seen[seq]:
		a.problem = fmt.Errorf("result %d came twice", seq)
	default:
		a.seen[seq] = true
		a.count++
		if seq >= a.warm {
			a.millis = append(a.millis, float64(now.Sub(a.schedule.Due(seq)).Microseconds())/1000)
		}
	}
}

func (a *arrivals) latency(rate uint64) *results.Latency {
	if len(a.millis) == 0 {
		return &results.Latency{Rate: rate}
	}
	slices.Sort(a.millis)
	at := func(q float64) float64 { return a.millis[min(int(q*float64(len(a.millis))), len(a.millis)-1)] }
	return &results.Latency{P50: at(.5), P99: at(.99), P999: at(.999), Max: at(1), Rate: rate}
}
