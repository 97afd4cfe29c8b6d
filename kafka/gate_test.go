package kafka

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"

	"millrace/eos"
	"millrace/record"
)

func TestTheGateOpensOnlyForALiveMember(t *testing.T) {
	g := newGate("instance")
	under := func(ctx context.Context) (m member, err error) {
		err = g.under(ctx, func(inner member) error { m = inner; return nil })
		return m, err
	}
	ctx := t.Context()
	if _, err := under(ctx); !errors.Is(err, eos.ErrLost) {
		t.Errorf("before the first join: %v", err)
	}
	g.open(3) // the assignment of a session that has not begun
	if _, err := under(ctx); !errors.Is(err, eos.ErrLost) {
		t.Errorf("before the session: %v", err)
	}
	g.join(fakeSession{id: "m1", generation: 3})
	if m, err := under(ctx); err != nil || m.MemberID != "m1" || m.ID != 3 || *m.instance != "instance" {
		t.Errorf("%+v, %v", m, err)
	}
	g.close()
	gaveUp, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("no time left"))
	if _, err := under(gaveUp); err == nil || err.Error() != "no time left" {
		t.Errorf("during a join: %v", err)
	}
	waited := make(chan member)
	go func() {
		m, err := under(ctx)
		if err != nil {
			t.Error(err)
		}
		waited <- m
	}()
	g.open(4)
	if m := <-waited; m.ID != 4 {
		t.Errorf("generation %d after the join", m.ID)
	}
	g.lose()
	g.open(5)
	if _, err := under(ctx); !errors.Is(err, eos.ErrLost) {
		t.Errorf("the member id of an old session would meet a new generation: %v", err)
	}
}

func TestAJoinWaitsForTheCommitUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate("")
		g.join(fakeSession{id: "m", generation: 1})
		finish := make(chan struct{})
		var committed, joined bool
		go func() {
			_ = g.under(t.Context(), func(member) error { <-finish; committed = true; return nil })
		}()
		synctest.Wait()
		go func() {
			g.close()
			joined = true
		}()
		synctest.Wait()
		if joined {
			t.Error("the join did not wait")
		}
		close(finish)
		synctest.Wait()
		if !committed || !joined {
			t.Errorf("committed %v, joined %v", committed, joined)
		}
	})
}

// TestCommitsWaitForTheJoin commits without a pause while members come and go. Without the gate some of the commits
// would meet ILLEGAL_GENERATION.
func TestCommitsWaitForTheJoin(t *testing.T) {
	b := newBench(t, 1)
	topic, out := b.topic("in", 8, nil), b.topic("out", 1, nil)
	c := b.caller(b.config(), topic)
	c.member.owns(8)
	ended := make(chan struct{})
	var n int64
	var failed []error
	stop := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			n++
			e := c.epoch(n, box(out, 0, fmt.Sprint(n)))
			e.Parts[0].Offsets[0].TopicPartition = record.TopicPartition{Topic: topic, Partition: 7} // never moves: the others get the rest
			if _, err := c.commit(e, 20*time.Second); err != nil {
				failed = append(failed, err)
			}
		}
	}()
	other := b.connect(b.config())
	rebalances := 0
	for range 15 {
		before := func() int { c.member.mu.Lock(); defer c.member.mu.Unlock(); return c.member.calls }()
		m := b.join(other, topic)
		m.owns(1)
		m.stop()
		c.member.await("all is ours again", func() bool { return c.member.calls > before && len(c.member.owned) == 8 })
		rebalances += func() int { c.member.mu.Lock(); defer c.member.mu.Unlock(); return c.member.calls - before }()
	}
	close(stop)
	<-ended
	t.Logf("%d commits over %d assignments", n, rebalances)
	for _, err := range failed {
		t.Errorf("commit: %v", err)
	}
	if rebalances < 30 || n < int64(rebalances) {
		t.Errorf("%d commits over %d assignments prove little", n, rebalances)
	}
	c.member.mu.Lock()
	defer c.member.mu.Unlock()
	if len(c.member.losses) > 0 {
		t.Errorf("lost: %v", c.member.losses)
	}
}

// fakeSession is what the gate needs of a session.
type fakeSession struct {
	sarama.ConsumerGroupSession
	id         string
	generation int32
}

func (s fakeSession) MemberID() string { return s.id }

func (s fakeSession) GenerationID() int32 { return s.generation }
