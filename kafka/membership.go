package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/eos"
	"millrace/record"

	"github.com/IBM/sarama"
)

// GroupListener hears what the group decides. The calls come one at a time.
type GroupListener interface {
	// Assigned tells everything that is ours from now on. It returns when the work on what is no longer in the list has
	// been committed or dropped: the group waits for it, and gives those partitions to others afterwards. Heartbeats stop
	// meanwhile, so it must stay well below the session timeout.
	Assigned(partitions []record.TopicPartition, generation int32)
	// Lost tells that the group no longer counts us in: nothing may be committed until the next Assigned.
	Lost(cause error)
}

// Membership is our place in the consumer group, by sarama's ConsumerGroup with cooperative rebalancing. The group's own
// fetching is kept from starting: its client says that no partition is readable.
type Membership struct {
	client   *Client
	base     sarama.Client
	group    sarama.ConsumerGroup
	listener GroupListener
	topics   []string
	gate     *gate
	first    []record.TopicPartition     // assigned before the session told our member id
	session  sarama.ConsumerGroupSession // nil: between two sessions
}

// groupClient is the client of the group's membership, and of nothing else.
type groupClient struct{ sarama.Client }

// PartitionNotReadable keeps sarama's claims from fetching: they wait until the partition is readable, which it never is.
func (groupClient) PartitionNotReadable(string, int32) bool { return true }

// Coordinator looks for another coordinator when the one that is known cannot be reached. sarama would ask the same
// again, without a pause, and give the session up within milliseconds when a broker is restarted.
func (c groupClient) Coordinator(group string) (*sarama.Broker, error) {
	b, err := c.Client.Coordinator(group)
	if err != nil {
		return nil, err
	}
	if ok, err := b.Connected(); !ok {
		if err == nil {
			err = sarama.ErrNotConnected
		}
		_ = c.Client.RefreshCoordinator(group) // the next attempt reports what is wrong
		return nil, err
	}
	return b, nil
}

// NewMembership prepares to join; Run joins.
func (c *Client) NewMembership(topics []string, p Planner, l GroupListener) (*Membership, error) {
	m := &Membership{client: c, listener: l, topics: topics, gate: newGate(c.config.InstanceID)}
	config, err := c.config.sarama()
	if err != nil {
		return nil, err
	}
	g := &config.Consumer.Group
	g.InstanceId = c.config.InstanceID
	g.Session.Timeout, g.Heartbeat.Interval = c.config.SessionTimeout, c.config.Heartbeat
	g.Rebalance.Timeout = c.config.RebalanceTimeout
	g.Rebalance.Retry.Max, g.Rebalance.Retry.Backoff = 10, 100*time.Millisecond
	g.Rebalance.GroupStrategies = []sarama.BalanceStrategy{&strategy{planner: p, membership: m}}
	// A join may block for the rebalance timeout, and offsets of a dead member's open transaction are unstable until
	// its timeout: both are waited out within one session instead of joining again and again.
	config.Net.ReadTimeout = c.config.RebalanceTimeout + 10*time.Second
	config.Metadata.Retry.Backoff = 100 * time.Millisecond
	config.Metadata.Retry.Max = int((c.config.TransactionTimeout+5*time.Second)/config.Metadata.Retry.Backoff) + 1
	if m.base, err = sarama.NewClient(c.config.Brokers, config); err != nil {
		return nil, explainConnect(c.config, err)
	}
	if m.group, err = sarama.NewConsumerGroupFromClient(c.config.Group, groupClient{m.base}); err != nil {
		return nil, errors.Join(fmt.Errorf("join group %s: %w", c.config.Group, err), m.base.Close())
	}
	return m, nil
}

// Run joins and stays in the group until ctx ends. Only an identity that another process has, or settings that the
// coordinator refuses from the start, are errors; all else is joined again.
func (m *Membership) Run(ctx context.Context) error {
	go func() {
		for range m.group.Errors() { // what matters comes back from Consume as well
		}
	}()
	m.leaveFormer()
	var b backoff
	member := false // we have been one
	for ctx.Err() == nil {
		joined := time.Now()
		err := m.group.Consume(ctx, m.topics, m)
		m.gate.lose()
		if ctx.Err() != nil || errors.Is(err, sarama.ErrClosedConsumerGroup) {
			break
		}
		if m.session != nil {
			err = ended(m.session, err)
			member = true
		}
		m.session = nil
		err = m.client.config.denied(err, "Describe", m.topics...)
		switch kindOf(err) {
		case identity:
			return fmt.Errorf("group %s: %w: %s", m.client.config.Group, eos.ErrIdentity, m.client.config.InstanceID)
		case configuration:
			if !member {
				return reaction("join group "+m.client.config.Group, err)
			}
		}
		m.listener.Lost(err)
		if time.Since(joined) > 10*time.Second {
			b = backoff{}
		}
		_ = b.wait(ctx) // ends early only with ctx, which the loop sees
	}
	return nil
}

// ended tells why a session is over: Consume itself returns nil for most causes.
func ended(s sarama.ConsumerGroupSession, err error) error {
	if err != nil {
		return err
	}
	if cause := context.Cause(s.Context()); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return errors.New("the session ended")
}

// Close leaves the group, unless the member is static: that one comes back. Run must have returned.
func (m *Membership) Close() error {
	err := m.group.Close()
	m.gate.lose()
	if errors.Is(err, sarama.ErrUnknownMemberId) || errors.Is(err, sarama.ErrFencedInstancedId) {
		err = nil // the group has forgotten us already
	}
	return errors.Join(err, m.base.Close()) // sarama leaves a client that it was given open
}

// underGeneration runs commit while our generation is sure to stay valid.
func (m *Membership) underGeneration(ctx context.Context, commit func(member) error) error {
	return m.gate.under(ctx, commit)
}

// assigned is called on the group's goroutine after every join. The first assignment of a session waits for Setup: the
// member id is known from there on, and the offsets of what we got are stable.
func (m *Membership) assigned(tps []record.TopicPartition, generation int32) {
	m.gate.open(generation)
	if m.session == nil {
		m.first = tps
		return
	}
	m.listener.Assigned(tps, generation)
}

// leaveFormer takes the member that this process was before it died out of the group: the group would otherwise wait for
// it until its session ends. Whoever knows a member's id may do so; the caller knows that it is dead.
func (m *Membership) leaveFormer() {
	c := m.client.config
	if c.FormerMember == "" || c.InstanceID != "" {
		return
	}
	b, err := m.client.sarama.Coordinator(c.Group)
	if err != nil {
		return // then the group waits, as it would have anyway
	}
	_, _ = b.LeaveGroup(&sarama.LeaveGroupRequest{Version: 0, GroupId: c.Group, MemberId: c.FormerMember})
}

// Setup implements sarama.ConsumerGroupHandler.
func (m *Membership) Setup(s sarama.ConsumerGroupSession) error {
	m.gate.join(s)
	m.session = s
	if c := m.client.config; c.Joined != nil && c.InstanceID == "" {
		c.Joined(s.MemberID())
	}
	m.listener.Assigned(m.first, s.GenerationID())
	return nil
}

// Cleanup implements sarama.ConsumerGroupHandler. What is to be said was said in Assigned, or will be in Lost.
func (m *Membership) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim implements sarama.ConsumerGroupHandler; it is never reached.
func (m *Membership) ConsumeClaim(s sarama.ConsumerGroupSession, _ sarama.ConsumerGroupClaim) error {
	<-s.Context().Done()
	return nil
}
