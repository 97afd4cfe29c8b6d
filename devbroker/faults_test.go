package devbroker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const notCoordinator, invalidEpoch = 16, 47

func TestFailAnswersWithTheCodeTheAskedNumberOfTimes(t *testing.T) {
	b, _, _ := bench(t, Options{Topics: map[string]int32{"out": 1}})
	producer := transactor(t, b, "tx")
	fault := b.Fail(EndTxn, 1, invalidEpoch)
	if err := transact(t, producer, kgo.TryCommit, "out", "v"); !errors.Is(err, kerr.InvalidProducerEpoch) {
		t.Errorf("commit under the fault: %v, want %v", err, kerr.InvalidProducerEpoch)
	}
	if fault.Hits() != 1 {
		t.Errorf("hits %d, want 1", fault.Hits())
	}
	if end, stable := b.EndOffset("out", 0), b.StableOffset("out", 0); end != 1 || stable != 0 {
		t.Errorf("end %d, stable %d: the transaction must still be open", end, stable)
	}
}

// A test that injects a code relies on the request really failing by it, whichever part of the answer has it.
func TestFailReachesEveryRequestThatWeSend(t *testing.T) {
	raw := func(r kmsg.Request) func(context.Context, *Client) {
		return func(ctx context.Context, c *Client) { _, _ = c.kgo.Request(ctx, r) }
	}
	commit := kadm.Offsets{}
	commit.AddOffset("t", 0, 1, -1)
	for key, send := range map[int16]func(context.Context, *Client){
		Produce:         func(ctx context.Context, c *Client) { _ = c.Produce(ctx, "t", Record{Value: []byte("v")}) },
		Fetch:           func(ctx context.Context, c *Client) { _, _ = c.ReadCommitted(ctx, "t") },
		ListOffsets:     func(ctx context.Context, c *Client) { _, _ = c.EndOffsets(ctx, "t") },
		Metadata:        raw(kmsg.NewPtrMetadataRequest()),
		OffsetCommit:    func(ctx context.Context, c *Client) { _, _ = c.adm.CommitOffsets(ctx, "g", commit) },
		OffsetFetch:     func(ctx context.Context, c *Client) { _, _ = c.CommittedOffsets(ctx, "g") },
		FindCoordinator: func(ctx context.Context, c *Client) { _, _ = c.CommittedOffsets(ctx, "g") },
		JoinGroup:       raw(&kmsg.JoinGroupRequest{Group: "g", ProtocolType: "consumer"}),
		Heartbeat:       raw(&kmsg.HeartbeatRequest{Group: "g", MemberID: "m"}),
		LeaveGroup:      raw(&kmsg.LeaveGroupRequest{Group: "g", MemberID: "m"}),
		SyncGroup:       raw(&kmsg.SyncGroupRequest{Group: "g", MemberID: "m"}),
		CreateTopics:    func(ctx context.Context, c *Client) { _ = c.CreateTopic(ctx, "another", 1, nil) },
		InitProducerID:  raw(&kmsg.InitProducerIDRequest{TransactionalID: kmsg.StringPtr("x"), ProducerID: -1}),
		AddPartitions:   raw(addPartitionsRequest()),
		AddOffsets:      raw(&kmsg.AddOffsetsToTxnRequest{TransactionalID: "x", Group: "g"}),
		EndTxn:          raw(&kmsg.EndTxnRequest{TransactionalID: "x"}),
		TxnOffsetCommit: commitInTransaction,
	} {
		t.Run(kmsg.NameForKey(key), func(t *testing.T) {
			b, c, ctx := bench(t, Options{Topics: map[string]int32{"t": 1}})
			if err := c.Produce(ctx, "t", Record{Value: []byte("something to fetch")}); err != nil {
				t.Fatal(err)
			}
			fault := b.Fail(key, Always, notCoordinator)
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			watched := make(chan struct{})
			go func() {
				defer close(watched)
				_ = fault.Wait(ctx, 1)
				cancel() // The client would try again for ever.
			}()
			send(ctx, c)
			cancel()
			<-watched
			if fault.Hits() == 0 {
				t.Errorf("no request of the kind was failed")
			}
		})
	}
}

func addPartitionsRequest() kmsg.Request {
	topic := kmsg.AddPartitionsToTxnRequestTopic{Topic: "t", Partitions: []int32{0}}
	return &kmsg.AddPartitionsToTxnRequest{TransactionalID: "x", Topics: []kmsg.AddPartitionsToTxnRequestTopic{topic}}
}

func commitInTransaction(ctx context.Context, c *Client) {
	metadata, err := c.adm.Metadata(ctx, "t")
	if err != nil {
		return
	}
	request := kmsg.NewPtrTxnOffsetCommitRequest()
	request.TransactionalID, request.Group = "x", "g"
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	topic := kmsg.TxnOffsetCommitRequestTopic{Topic: "t", TopicID: metadata.Topics["t"].ID}
	topic.Partitions = append(topic.Partitions, partition)
	request.Topics = append(request.Topics, topic)
	_, _ = c.kgo.Request(ctx, request)
}

func TestFailTopicSparesTheOthers(t *testing.T) {
	b, c, ctx := bench(t, Options{Topics: map[string]int32{"bad": 1, "good": 1}})
	const messageTooLarge = 10
	fault := b.FailTopic("bad", Produce, Always, messageTooLarge)
	if err := c.Produce(ctx, "good", Record{Value: []byte("v")}); err != nil {
		t.Errorf("the other topic: %v", err)
	}
	if err := c.Produce(ctx, "bad", Record{Value: []byte("v")}); !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("the topic itself: %v", err)
	}
	fault.Remove()
	if err := c.Produce(ctx, "bad", Record{Value: []byte("v")}); err != nil {
		t.Errorf("after Remove: %v", err)
	}
}

func TestDropResponseHappensAfterTheWork(t *testing.T) {
	b, _, _ := bench(t, Options{Topics: map[string]int32{"out": 1}})
	producer := transactor(t, b, "tx")
	fault := b.DropResponse(EndTxn, 1)
	// kgo tries again; the first attempt has decided already, and the second has nothing to do.
	_ = transact(t, producer, kgo.TryCommit, "out", "v")
	if fault.Hits() != 1 {
		t.Errorf("hits %d, want 1", fault.Hits())
	}
	if end, stable := b.EndOffset("out", 0), b.StableOffset("out", 0); end != 2 || stable != 2 {
		t.Errorf("end %d, stable %d, want 2 and 2: committed before the connection was cut", end, stable)
	}
}

func TestDropRequestHappensBeforeTheWork(t *testing.T) {
	b, _, ctx := bench(t, Options{Topics: map[string]int32{"out": 1}})
	producer := transactor(t, b, "tx")
	fault := b.DropRequest(EndTxn, Always)
	if err := transact(t, producer, kgo.TryCommit, "out", "v"); err == nil {
		t.Error("commit succeeded although no EndTxn got through")
	}
	if end, stable := b.EndOffset("out", 0), b.StableOffset("out", 0); end != 1 || stable != 0 {
		t.Errorf("end %d, stable %d, want 1 and 0: still open", end, stable)
	}
	fault.Remove()
	if err := producer.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.Errorf("after Remove: %v", err)
	}
}

func TestHoldKeepsRequestsFromTheBrokerUntilReleased(t *testing.T) {
	b, c, ctx := bench(t, Options{Topics: map[string]int32{"t": 1}})
	fault, release := b.Hold(Produce)
	done := make(chan error, 1)
	go func() { done <- c.Produce(ctx, "t", Record{Value: []byte("v")}) }()
	if err := fault.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if end := b.EndOffset("t", 0); end != 0 {
		t.Errorf("end %d while the request is held, want 0", end)
	}
	release()
	release() // A second call does nothing.
	if err := <-done; err != nil {
		t.Error(err)
	}
	if end := b.EndOffset("t", 0); end != 1 {
		t.Errorf("end %d after the release, want 1", end)
	}
}

func TestCloseFreesHeldRequests(t *testing.T) {
	b, c, ctx := bench(t, Options{Topics: map[string]int32{"t": 1}})
	fault, _ := b.Hold(Produce)
	done := make(chan error, 1)
	go func() { done <- c.Produce(ctx, "t", Record{Value: []byte("v")}) }()
	if err := fault.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	b.Close() // goleak sees a reader that stays behind.
	c.Close()
	if err := <-done; err == nil {
		t.Error("produce succeeded on a closed broker")
	}
}

func TestDelayHoldsTheAnswerBack(t *testing.T) {
	b, c, ctx := bench(t, Options{Topics: map[string]int32{"t": 1}})
	if err := c.Produce(ctx, "t", Record{Value: []byte("warm")}); err != nil {
		t.Fatal(err)
	}
	const by = 150 * time.Millisecond
	b.Delay(Produce, 1, by)
	start := time.Now()
	if err := c.Produce(ctx, "t", Record{Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < by {
		t.Errorf("answered after %v, want %v at least", took, by)
	}
}

func TestCountDoesNotGetInTheWayOfOtherFaults(t *testing.T) {
	b, c, ctx := bench(t, Options{Topics: map[string]int32{"t": 1}})
	counter := b.Count(Produce)
	dropped := b.DropRequest(Produce, 1)
	if err := c.Produce(ctx, "t", Record{Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	if counter.Hits() != 2 || dropped.Hits() != 1 {
		t.Errorf("counted %d, dropped %d; want 2 and 1", counter.Hits(), dropped.Hits())
	}
}

func TestCutConnectionsAndMovesAreSurvived(t *testing.T) {
	b, c, ctx := bench(t, Options{Brokers: 3, Topics: map[string]int32{"t": 3}})
	produce := func() {
		t.Helper()
		for p := range int32(3) {
			if err := c.ProduceTo(ctx, "t", p, Record{Value: []byte("v")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	produce()
	b.CutConnections()
	produce()
	b.MoveCoordinators()
	b.MoveLeaders()
	for p := range int32(3) {
		if err := b.MoveLeader("t", p, (p+1)%3); err != nil {
			t.Fatal(err)
		}
	}
	produce()
	if err := b.MoveLeader("t", 9, 0); err == nil {
		t.Error("MoveLeader of an unknown partition succeeded")
	}
	records, err := c.ReadCommitted(ctx, "t")
	if err != nil || len(records) != 9 {
		t.Errorf("%d records, want 9 (%v)", len(records), err)
	}
}

// A broker that has just started has no coordinators yet.
func TestClientWaitsForACoordinator(t *testing.T) {
	b, c, ctx := bench(t, Options{})
	const coordinatorNotAvailable = 15
	fault := b.Fail(OffsetFetch, 2, coordinatorNotAvailable)
	offsets, err := c.CommittedOffsets(ctx, "g")
	if err != nil || len(offsets) != 0 || fault.Hits() != 2 {
		t.Errorf("offsets %v, %v after %d failures; want none without an error after 2", offsets, err, fault.Hits())
	}
}
