package kafka

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"millrace/devbroker"
)

// requests are all that an epoch and its recovery send, with what makes the caller send them in the middle of a run.
var requests = []struct {
	name    string
	key     int16
	provoke func(*copier)
	codes   []int16 // that a broker may answer with
}{
	{"Produce", devbroker.Produce, nil, []int16{-1, 3, 6, 7, 19, 20, 45, 47, 48, 49, 56, 59}},
	{"AddPartitionsToTxn", devbroker.AddPartitions, nil, []int16{-1, 3, 7, 14, 15, 16, 47, 48, 49, 51, 90}},
	{"AddOffsetsToTxn", devbroker.AddOffsets, nil, []int16{-1, 7, 14, 15, 16, 47, 48, 49, 51, 90}},
	{"TxnOffsetCommit", devbroker.TxnOffsetCommit, nil, []int16{-1, 3, 7, 14, 15, 16, 22, 25, 27, 47, 49, 90}},
	{"EndTxn", devbroker.EndTxn, nil, []int16{-1, 7, 14, 15, 16, 47, 48, 49, 51, 90}},
	{"InitProducerId", devbroker.InitProducerID, doubt, []int16{7, 14, 15, 16, 51}},
	{"Fetch", devbroker.Fetch, nil, []int16{-1, 1, 3, 5, 6, 56, 74, 75, 78}},
	{"OffsetFetch", devbroker.OffsetFetch, doomed, []int16{14, 16, 88}},
	{"FindCoordinator", devbroker.FindCoordinator, moveCoordinators, []int16{15}},
	{"Metadata", devbroker.Metadata, moveLeaders, []int16{3, 5}},
	{"Heartbeat", devbroker.Heartbeat, nil, []int16{15, 16, 22, 25, 27}},
}

func doubt(c *copier)            { c.producer.Doubt() }
func moveCoordinators(c *copier) { c.broker.MoveCoordinators() }
func moveLeaders(c *copier)      { c.broker.MoveLeaders() }

// doomed fails an epoch, so that the caller recovers.
func doomed(c *copier) { c.broker.Fail(devbroker.EndTxn, 1, -1) }

// meet runs a copy during which the fault is injected, and lasts until it has been met.
func meet(t *testing.T, provoke func(*copier), inject func(*devbroker.Broker) *devbroker.Fault) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one of some hundred combinations")
	}
	b := faultyBench(t, 3)
	config := b.config()
	config.TransactionTimeout = 2 * time.Second // read time-out of the producer: 1 s
	c := b.copier(config, 4, 100)
	var fault *devbroker.Fault
	c.run(100, func(epoch int) {
		switch {
		case epoch == 0:
			return // the caller has to get going first
		case fault == nil:
			fault = inject(b.broker)
		case fault.Hits() > 0:
			return
		}
		if provoke != nil {
			provoke(c) // a coordinator that moves may move to where it is, so once may not be enough
		}
	})
	for fault.Hits() == 0 && b.ctx.Err() == nil {
		if provoke != nil {
			provoke(c)
		}
		b.more(c)
	}
	// One more epoch, so that what the fault left behind would be seen.
	b.more(c)
	if fault.Hits() == 0 {
		t.Error("the fault was not met")
	}
	c.verify()
}

// more writes more records to the input, and copies them.
func (b *bench) more(c *copier) {
	b.t.Helper()
	end := c.lowest()
	for p := range c.partitions {
		if err := b.inspect.ProduceTo(b.ctx, c.input, p, devbroker.Record{Value: []byte("one more")}); err != nil {
			b.t.Fatal(err)
		}
	}
	c.run(end+1, func(int) {})
}

func TestExactAfterErrorCodes(t *testing.T) {
	for _, r := range requests {
		for _, code := range r.codes {
			for _, times := range []int{1, 4} {
				if r.key == devbroker.FindCoordinator && times > 1 {
					continue // sarama sleeps for two seconds each time, to let a real broker create its topics
				}
				t.Run(fmt.Sprintf("%s/code=%d/times=%d", r.name, code, times), func(t *testing.T) {
					meet(t, r.provoke, func(b *devbroker.Broker) *devbroker.Fault { return b.Fail(r.key, times, code) })
				})
			}
		}
	}
}

func TestExactAfterLostMessages(t *testing.T) {
	for _, r := range requests {
		for _, times := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/request/times=%d", r.name, times), func(t *testing.T) {
				meet(t, r.provoke, func(b *devbroker.Broker) *devbroker.Fault { return b.DropRequest(r.key, times) })
			})
			t.Run(fmt.Sprintf("%s/response/times=%d", r.name, times), func(t *testing.T) {
				meet(t, r.provoke, func(b *devbroker.Broker) *devbroker.Fault { return b.DropResponse(r.key, times) })
			})
		}
		t.Run(r.name+"/late response", func(t *testing.T) {
			meet(t, r.provoke, func(b *devbroker.Broker) *devbroker.Fault { return b.Delay(r.key, 1, 1500*time.Millisecond) })
		})
	}
}

func TestExactWhenTheClusterMoves(t *testing.T) {
	moves := []struct {
		name string
		move func(*devbroker.Broker)
	}{
		{"leaders", (*devbroker.Broker).MoveLeaders},
		{"coordinators", (*devbroker.Broker).MoveCoordinators},
		{"connections", (*devbroker.Broker).CutConnections},
	}
	for _, r := range requests {
		for _, m := range moves {
			t.Run(r.name+"/"+m.name, func(t *testing.T) {
				meet(t, r.provoke, func(b *devbroker.Broker) *devbroker.Fault {
					fault := b.Count(r.key)
					done := make(chan struct{})
					t.Cleanup(func() { <-done })
					go func() {
						defer close(done)
						if fault.Wait(t.Context(), 1) == nil {
							m.move(b)
						}
					}()
					return fault
				})
			})
		}
	}
}

// TestExactUnderAStorm mixes all faults at random; MILLRACE_TEST_SEED repeats a run.
func TestExactUnderAStorm(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := testSeed(); text != 0 {
		seed = text
	}
	t.Logf("MILLRACE_TEST_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	b := faultyBench(t, 3)
	config := b.config()
	config.TransactionTimeout = 2 * time.Second
	c := b.copier(config, 6, 1500)
	faults := 0
	c.run(1500, func(int) {
		if random.IntN(3) > 0 {
			return
		}
		faults++
		r := requests[random.IntN(8)] // those after it make sarama sleep for seconds
		switch random.IntN(7) {
		case 0, 1:
			b.broker.Fail(r.key, 1+random.IntN(3), r.codes[random.IntN(len(r.codes))])
		case 2:
			b.broker.DropRequest(r.key, 1)
		case 3:
			b.broker.DropResponse(r.key, 1)
		case 4:
			b.broker.MoveCoordinators()
		case 5:
			b.broker.MoveLeaders()
		case 6:
			b.broker.CutConnections()
		}
	})
	c.verify()
	t.Logf("%d faults, %d recoveries", faults, c.recovers)
	if faults < 20 {
		t.Errorf("only %d faults", faults)
	}
}
