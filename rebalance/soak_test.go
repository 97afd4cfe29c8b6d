package rebalance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/eos"
)

// Everything that can happen to a manager happens in any order: faults at each step, rebalances, lost sessions, failing
// tasks, epochs in between. In the end every record is counted once.
func TestWhateverHappensResultsAreExact(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	var epochs, aborted, failed atomic.Int64
	t.Run("seed", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				b := soak(t, rand.New(rand.NewPCG(seed, 7)))
				epochs.Add(int64(len(b.epochs)))
				aborted.Add(int64(len(b.aborted)))
				failed.Add(int64(len(b.failed)))
			})
		}
	})
	t.Logf("%d epochs, %d aborted, %d failed tasks", epochs.Load(), aborted.Load(), failed.Load())
	if epochs.Load() < int64(20*seeds) || aborted.Load() < int64(seeds) || failed.Load() == 0 && !testing.Short() {
		t.Error("too little happened")
	}
}

// weather makes the producer's steps fail at random.
type weather struct {
	mu   sync.Mutex
	rng  *rand.Rand
	odds float64
}

func (w *weather) on(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rng.Float64() >= w.odds {
		return nil
	}
	all := []error{errors.New("connection reset"), fmt.Errorf("x: %w", eos.ErrFenced), fmt.Errorf("x: %w", eos.ErrLost)}
	return all[w.rng.IntN(len(all))]
}

func soak(t *testing.T, rng *rand.Rand) *bench {
	b := newBench(t, func(o *Options) {
		o.ReleaseTimeout = time.Second
		o.CommitInterval = 2 * time.Millisecond
		o.Task.FlushInterval = time.Millisecond
	})
	w := &weather{rng: rand.New(rand.NewPCG(rng.Uint64(), 1)), odds: 0.06}
	b.set(w.on)
	all := []int32{0, 1, 2, 3}
	mine := all
	b.assign(mine...)
	failures := 0
	for range 400 {
		switch rng.IntN(12) {
		case 0:
			mine = slices.DeleteFunc(slices.Clone(all), func(int32) bool { return rng.IntN(3) == 0 })
			b.assign(mine...)
		case 1:
			b.manager.Lost(errSession)
			b.assign(mine...)
		case 2:
			if p := rng.Int32N(4); failures < 2 && b.feeds(p) {
				failures++
				b.fail(p)
			}
		case 3, 4, 5:
			b.manager.Hurry()
		case 6, 7:
			b.patient("an epoch or a failure", b.news())
		default:
			p := rng.Int32N(4)
			b.put(p, fmt.Sprint("k", p, rng.IntN(5)))
		}
	}
	b.set(nil)
	b.assign(all...)
	b.committedUpTo(all...)
	b.exact()
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	return b
}

func (b *bench) feeds(partition int32) bool {
	b.brokers.mu.Lock()
	defer b.brokers.mu.Unlock()
	return b.sinks[tp("in", partition)] != nil
}

// news waits for an epoch or a failure, or for nothing more to come.
func (b *bench) news() func() bool {
	count := func() int {
		b.events.mu.Lock()
		defer b.events.mu.Unlock()
		return len(b.epochs) + len(b.aborted) + len(b.failed)
	}
	before, looks := count(), 0
	return func() bool {
		looks++
		return count() > before || looks > 30
	}
}
