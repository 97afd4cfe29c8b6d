package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"millrace/devbroker"
	"millrace/eos"
	"millrace/record"
)

// ledger watches that no partition is worked on by two members at a time.
type ledger struct {
	mu     sync.Mutex
	owner  map[record.TopicPartition]string
	doubly []string
}

// follow is a member's hook: it gives up what is not in the list any more, then takes what is new.
func (l *ledger) follow(name string) func([]record.TopicPartition, int32) {
	return func(now []record.TopicPartition, generation int32) {
		l.mu.Lock()
		defer l.mu.Unlock()
		for tp, owner := range l.owner {
			if owner == name && !slices.Contains(now, tp) {
				delete(l.owner, tp)
			}
		}
		for _, tp := range now {
			if other := l.owner[tp]; other != "" && other != name {
				l.doubly = append(l.doubly, fmt.Sprintf("generation %d gives %v to %s while %s has it", generation, tp, name, other))
			}
			l.owner[tp] = name
		}
	}
}

func TestAssignmentsMoveOneOwnerAtATime(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 6, nil)
	client := b.connect(b.config())
	l := &ledger{owner: map[record.TopicPartition]string{}}
	one := b.joinWith(client, l.follow("one"), topic)
	one.owns(6)
	two := b.joinWith(client, l.follow("two"), topic)
	two.owns(3)
	three := b.joinWith(client, l.follow("three"), topic)
	three.owns(2)
	for _, m := range []*groupMember{one, two, three} {
		m.await("a third of them is ours", func() bool { return len(m.owned) == 2 })
	}
	two.stop() // A member that leaves gives up at once: nothing of it goes on.
	l.follow("two")(nil, 0)
	one.await("half of them are ours", func() bool { return len(one.owned) == 3 })
	three.await("half of them are ours", func() bool { return len(three.owned) == 3 })
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.doubly {
		t.Error(d)
	}
	if len(one.losses)+len(three.losses) > 0 {
		t.Errorf("lost: %v %v", one.losses, three.losses)
	}
}

func TestAssignedHoldsTheRebalanceBack(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 2, nil)
	client := b.connect(b.config())
	entered, finish := make(chan struct{}), make(chan struct{})
	var once sync.Once
	one := b.joinWith(client, func(now []record.TopicPartition, _ int32) {
		if len(now) == 1 { // one is revoked
			once.Do(func() { close(entered) })
			<-finish
		}
	}, topic)
	one.owns(2)
	two := b.join(client, topic)
	b.within(entered, "a partition is revoked")
	two.await("the join is answered", func() bool { return two.calls > 0 })
	two.mu.Lock()
	if len(two.owned) > 0 {
		t.Errorf("%v is ours while its owner still works", two.owned)
	}
	two.mu.Unlock()
	close(finish)
	two.owns(1)
}

func TestAStaleGenerationIsRefused(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 2, nil)
	c := b.caller(b.config(), topic)
	mustCommit(t, c, c.epoch(1))
	c.member.gate.mu.Lock()
	c.member.gate.member.ID-- // as if a rebalance had passed us by
	c.member.gate.mu.Unlock()
	if _, err := c.commit(c.epoch(2), 10*time.Second); !errors.Is(err, eos.ErrLost) {
		t.Errorf("%v, want ErrLost", err)
	}
	if got := c.offset().Next; got != 1 {
		t.Errorf("the offset is %d", got)
	}
}

func TestAStaticMemberComesBackWithoutARebalance(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 4, nil)
	config := b.config()
	config.InstanceID = "a"
	client := b.connect(config)
	first := b.join(client, topic)
	first.owns(4)
	first.stop()
	again := b.join(client, topic)
	again.owns(4)
	if first.present != again.present {
		t.Errorf("generation %d after the restart, %d before", again.present, first.present)
	}
	if b.broker != nil {
		return // the development broker rebalances when a member that has taken part in a rebalance restarts
	}
	other := b.config()
	other.InstanceID = "b"
	witness := b.join(b.connect(other), topic)
	witness.owns(2)
	again.await("the rebalance is over", func() bool { return len(again.owned) == 2 && witness.present == again.present })
	calls := witness.calls
	again.stop()
	last := b.join(client, topic)
	last.owns(2)
	if !slices.Equal(last.owned, again.owned) || witness.calls != calls || len(witness.losses) > 0 {
		t.Errorf("it had %v and comes back to %v; the other member was assigned %d times more and lost %v",
			again.owned, last.owned, witness.calls-calls, witness.losses)
	}
}

func TestTwoProcessesWithOneIdentityEndTheFirst(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 2, nil)
	config := b.config()
	config.InstanceID = "same"
	client := b.connect(config)
	first := b.join(client, topic)
	first.owns(2)
	second := b.join(client, topic)
	second.owns(2)
	b.within(first.ran, "the first member ends")
	if !errors.Is(first.err, eos.ErrIdentity) {
		t.Errorf("%v, want ErrIdentity", first.err)
	}
	second.mu.Lock()
	defer second.mu.Unlock()
	if len(second.losses) > 0 {
		t.Errorf("the second member lost: %v", second.losses)
	}
}

func TestAMemberThatTheGroupForgotIsToldAndJoinsAgain(t *testing.T) {
	b := faultyBench(t, 1)
	topic := b.topic("in", 2, nil)
	m := b.join(b.connect(b.config()), topic)
	m.owns(2)
	const unknownMemberID = 25
	b.broker.Fail(devbroker.Heartbeat, 1, unknownMemberID)
	m.await("the loss is told", func() bool { return len(m.losses) > 0 })
	m.owns(2)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !errors.Is(m.losses[0], sarama.ErrUnknownMemberId) {
		t.Errorf("the cause is %v", m.losses[0])
	}
}

func TestAnOutageOfTheCoordinatorLosesNothing(t *testing.T) {
	b := faultyBench(t, 3)
	topic := b.topic("in", 2, nil)
	m := b.join(b.connect(b.config()), topic)
	m.owns(2)
	beats := b.broker.Count(devbroker.Heartbeat)
	beatsOn := func() {
		t.Helper()
		if err := beats.Wait(b.ctx, beats.Hits()+3); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		b.broker.CutConnections()
		b.broker.MoveCoordinators()
		beatsOn()
	}
	const apiVersions = 18 // the first request of a connection
	down := b.broker.DropRequest(apiVersions, devbroker.Always)
	b.broker.CutConnections()
	outage, cancel := context.WithTimeout(b.ctx, time.Second)
	defer cancel()
	_ = down.Wait(outage, 1_000_000) // The outage lasts as long as its context.
	down.Remove()
	beatsOn()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.losses) > 0 {
		t.Errorf("lost: %v", m.losses)
	}
}

func TestTheFormerMemberIsTakenOutOfTheGroup(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 2, nil)
	config := b.config()
	config.SessionTimeout = 25 * time.Second
	var id string
	config.Joined = func(memberID string) { id = memberID }
	ctx, die := context.WithCancel(b.ctx)
	former := &groupMember{bench: b, changed: make(chan struct{}), ran: make(chan struct{})}
	client := b.connect(config)
	m, err := client.NewMembership([]string{topic}, &spread{client: client, topics: []string{topic}}, former)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(former.ran)
		former.err = m.Run(ctx)
	}()
	former.owns(2)
	die() // without a word to the group, which Close would say
	<-former.ran
	defer m.Close()
	config.FormerMember, config.Joined = id, nil
	begin := time.Now()
	b.join(b.connect(config), topic).owns(2)
	if took := time.Since(begin); took > 4*time.Second {
		t.Errorf("the group waited %v for a member that is known to be dead", took)
	}
}

func TestMembershipFetchesNothing(t *testing.T) {
	b := faultyBench(t, 1)
	topic := b.topic("in", 4, nil)
	fetches := b.broker.Count(devbroker.Fetch)
	beats := b.broker.Count(devbroker.Heartbeat)
	client := b.connect(b.config())
	one := b.join(client, topic)
	one.owns(4)
	b.join(client, topic).owns(2)
	if err := beats.Wait(b.ctx, 20); err != nil {
		t.Fatal(err)
	}
	if n := fetches.Hits(); n > 0 {
		t.Errorf("%d Fetch requests", n)
	}
}

func TestSettingsThatTheCoordinatorRefusesEndRun(t *testing.T) {
	b := faultyBench(t, 1)
	topic := b.topic("in", 1, nil)
	const groupAuthorizationFailed = 30
	defer b.broker.Fail(devbroker.JoinGroup, devbroker.Always, groupAuthorizationFailed).Remove()
	m := b.join(b.connect(b.config()), topic)
	b.within(m.ran, "Run returns")
	if !errors.Is(m.err, eos.ErrConfig) {
		t.Errorf("%v, want ErrConfig", m.err)
	}
}
