package kafka

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"millrace/devbroker"
	"millrace/eos"
	"millrace/record"
)

func TestAnEpochThatFailsBeforeItsEndIsInvisible(t *testing.T) {
	b := newBench(t, 1)
	c := b.caller(b.config(), b.topic("in", 1, nil))
	out := b.topic("out", 1, nil)
	e := c.epoch(1, box(out, 0, "never"))
	e.Owned = func() bool { return false }
	if _, err := c.commit(e, 10*time.Second); !errors.Is(err, eos.ErrLost) {
		t.Fatalf("%v, want ErrLost", err)
	}
	mustCommit(t, c, c.epoch(1, box(out, 0, "once")))
	if diff := cmp.Diff([]string{"once"}, values(b.committed(out))); diff != "" {
		t.Error(diff)
	}
}

func TestAnEpochIsTakenAnewAfterAnyErrorAndOnlyThen(t *testing.T) {
	b := faultyBench(t, 1)
	c := b.caller(b.config(), b.topic("in", 1, nil))
	out := b.topic("out", 1, nil)
	inits := b.broker.Count(devbroker.InitProducerID)
	n := int64(0)
	commit := func() error {
		n++
		_, err := c.commit(c.epoch(n, box(out, 0, fmt.Sprint(n))), 10*time.Second)
		return err
	}
	expect := func(what string, total int) {
		t.Helper()
		if err := commit(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := inits.Hits(); got != total {
			t.Errorf("%s: %d InitProducerId in all, want %d", what, got, total)
		}
	}
	expect("the first epoch", 1)
	expect("nothing wrong", 1)
	const unknownServerError = -1
	for i, key := range []int16{devbroker.Produce, devbroker.AddPartitions, devbroker.AddOffsets, devbroker.TxnOffsetCommit, devbroker.EndTxn} {
		b.broker.Fail(key, 1, unknownServerError)
		if err := commit(); err == nil {
			t.Fatalf("request %d: no error", key)
		}
		expect(fmt.Sprintf("after an error of request %d", key), i+2)
		expect("and only then", i+2)
	}
	total := inits.Hits()
	for _, key := range []int16{devbroker.Produce, devbroker.AddPartitions, devbroker.AddOffsets, devbroker.TxnOffsetCommit, devbroker.EndTxn} {
		b.broker.DropRequest(key, 1)
		expect(fmt.Sprintf("a repetition of request %d heals it", key), total)
		total++
		expect(fmt.Sprintf("after the repetition of request %d", key), total)
	}
	const coordinatorLoads = 14
	for _, key := range []int16{devbroker.AddPartitions, devbroker.AddOffsets, devbroker.TxnOffsetCommit, devbroker.EndTxn} {
		b.broker.Fail(key, 1, coordinatorLoads)
		expect(fmt.Sprintf("request %d is repeated", key), total)
		total++
		expect(fmt.Sprintf("after request %d was repeated", key), total)
	}
	const concurrentTransactions = 51
	b.broker.Fail(devbroker.AddPartitions, 3, concurrentTransactions)
	expect("the last transaction's markers are being written", total)
	expect("which is no fault", total)
	c.client.faults.n.Add(1)
	expect("a fault of a connection that no request has met", total+1)
	c.producer.Doubt()
	expect("doubt", total+2)
}

func TestEndTxnThatArrivesLateDecidesNothing(t *testing.T) {
	b := faultyBench(t, 1)
	config := b.config()
	config.TransactionTimeout = 5 * time.Second
	c := b.caller(config, b.topic("in", 1, nil))
	out := b.topic("out", 1, nil)
	mustCommit(t, c, c.epoch(1, box(out, 0, "1")))

	_, release := b.broker.Hold(devbroker.EndTxn)
	if _, err := c.commit(c.epoch(2, box(out, 0, "2")), 1500*time.Millisecond); err == nil {
		t.Fatal("an epoch without an answer to EndTxn counts as committed")
	}
	// The next transaction is open when the late request comes.
	if err := c.producer.Begin(b.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.producer.Produce(b.ctx, []*record.Outbox{box(out, 0, "3")}); err != nil {
		t.Fatal(err)
	}
	stable := b.broker.StableOffset(out, 0)
	answered := b.broker.Count(devbroker.EndTxn)
	release()
	if err := c.producer.CommitOffsets(b.ctx, c.epoch(3).Parts[0].Offsets, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	c.barrier()
	if got := b.broker.StableOffset(out, 0); got != stable {
		t.Errorf("the late request moved the last stable offset from %d to %d", stable, got)
	}
	if err := c.producer.Commit(b.ctx); err != nil {
		t.Fatal(err)
	}
	if answered.Hits() == 0 {
		t.Error("the epoch ended without EndTxn")
	}
	if diff := cmp.Diff([]string{"1", "3"}, values(b.committed(out))); diff != "" {
		t.Error(diff)
	}
}

// barrier makes many round trips over the broker's queue, so that a request that was released before has been handled.
func (c *caller) barrier() {
	c.t.Helper()
	for range 50 {
		if _, err := c.inspect.EndOffsets(c.ctx, c.input); err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestAnotherProcessFencesUs(t *testing.T) {
	b := newBench(t, 1)
	input := b.topic("in", 1, nil)
	c := b.caller(b.config(), input)
	out := b.topic("out", 1, nil)
	mustCommit(t, c, c.epoch(1, box(out, 0, "1")))
	other, err := NewProducer(c.client, c.member.Membership)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Fence(b.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.commit(c.epoch(2, box(out, 0, "zombie")), 10*time.Second); !errors.Is(err, eos.ErrFenced) {
		t.Errorf("%v, want ErrFenced", err)
	}
	if diff := cmp.Diff([]string{"1"}, values(b.committed(out))); diff != "" {
		t.Error(diff)
	}
}
