package e2e

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"millrace/devbroker"
)

// answers are error codes that brokers give in the course of their lives, by the request that gets them.
var answers = []struct{ request, code int16 }{
	{devbroker.Produce, 6}, {devbroker.Produce, 7}, {devbroker.Produce, 19}, {devbroker.Produce, 45}, {devbroker.Produce, 47}, {devbroker.Produce, 3},
	{devbroker.Fetch, 6}, {devbroker.Fetch, 74}, {devbroker.Fetch, 76}, {devbroker.Fetch, 56}, {devbroker.Fetch, 3}, {devbroker.Fetch, 2},
	{devbroker.ListOffsets, 6}, {devbroker.ListOffsets, 78}, {devbroker.Metadata, 5},
	{devbroker.OffsetFetch, 88}, {devbroker.OffsetFetch, 16}, {devbroker.OffsetFetch, 14},
	{devbroker.FindCoordinator, 15}, {devbroker.JoinGroup, 14}, {devbroker.JoinGroup, 16}, {devbroker.SyncGroup, 27}, {devbroker.Heartbeat, 27}, {devbroker.Heartbeat, 25}, {devbroker.Heartbeat, 22},
	{devbroker.InitProducerID, 51}, {devbroker.InitProducerID, 16}, {devbroker.InitProducerID, 14},
	{devbroker.AddPartitions, 51}, {devbroker.AddPartitions, 16}, {devbroker.AddPartitions, 49}, {devbroker.AddPartitions, 48},
	{devbroker.AddOffsets, 51}, {devbroker.AddOffsets, 14}, {devbroker.AddOffsets, 47}, {devbroker.AddOffsets, 90},
	{devbroker.TxnOffsetCommit, 14}, {devbroker.TxnOffsetCommit, 16}, {devbroker.TxnOffsetCommit, 7}, {devbroker.TxnOffsetCommit, 22}, {devbroker.TxnOffsetCommit, 25}, {devbroker.TxnOffsetCommit, 27},
	{devbroker.EndTxn, 51}, {devbroker.EndTxn, 16}, {devbroker.EndTxn, 7}, {devbroker.EndTxn, 48}, {devbroker.EndTxn, 47}, {devbroker.EndTxn, 90}, {devbroker.EndTxn, -1},
}

// cuttable are the requests whose answer may get lost on the way.
var cuttable = []int16{devbroker.Produce, devbroker.Fetch, devbroker.AddPartitions, devbroker.AddOffsets, devbroker.TxnOffsetCommit, devbroker.EndTxn,
	devbroker.InitProducerID, devbroker.OffsetFetch, devbroker.ListOffsets, devbroker.JoinGroup, devbroker.SyncGroup, devbroker.Heartbeat}

// TestBrokerFaultsUnderLoad breaks the brokers in every way that they break in, again and again, while two replicas work.
func TestBrokerFaultsUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 12
	}
	for i, j := range jobs {
		if testing.Short() && i > 0 {
			break
		}
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			replay(t)
			s := newDevSite(t, 3)
			r := newRun(s, runOptions{job: j, seed: seed() + uint64(i), partitions: 4, replicas: 2, static: i%2 == 0})
			r.start()
			r.feed(10)
			random := rand.New(rand.NewPCG(seed(), uint64(i)))
			met := 0
			for range rounds {
				r.produce(r.input.take(3)) // before the fault, which is for the replicas and not for this client
				if s.breakOnce(random) {
					met++
				}
			}
			if met < rounds/2 {
				t.Errorf("only %d of %d faults met a request", met, rounds)
			}
			r.committed()
			r.alive()
			again := 0
			for _, c := range r.replicas {
				again += c.repetitions()
			}
			if again == 0 {
				t.Error("no epoch was dropped: the faults were too mild to show anything")
			}
			r.finish()
		})
	}
}

// breakOnce does one random thing to the brokers, and ends it when it has met its requests or when they do not come. It
// tells whether one was met.
func (s *site) breakOnce(random *rand.Rand) bool {
	var f *devbroker.Fault
	times := 1 + random.IntN(3)
	key := cuttable[random.IntN(len(cuttable))]
	switch random.IntN(8) {
	case 0:
		s.broker.MoveLeaders()
		return true
	case 1:
		s.broker.MoveCoordinators()
		return true
	case 2:
		s.broker.CutConnections()
		return true
	case 3:
		f = s.broker.DropRequest(key, times)
	case 4:
		f = s.broker.DropResponse(key, times)
	case 5:
		f = s.broker.Delay(key, 1, time.Duration(1+random.IntN(1500))*time.Millisecond)
	default:
		a := answers[random.IntN(len(answers))]
		f = s.broker.Fail(a.request, times, a.code)
	}
	defer f.Remove()
	ctx, cancel := context.WithTimeout(s.ctx, 400*time.Millisecond)
	defer cancel()
	_ = f.Wait(ctx, times) // some requests only come at a rebalance
	return f.Hits() > 0
}
