package kafka

import (
	"context"
	"fmt"
	"time"

	"millrace/eos"
	"millrace/record"

	"github.com/IBM/sarama"
)

// Producer is the one transactional producer of the process (KIP-447): own record batches, own sequence numbers, private
// connections. Only the committer's goroutine uses it.
//
// sarama ends transactions with EndTxn version 3, which carries no new epoch: a request that was delayed on the way could
// decide the transaction after the one it was meant for. So after any fault on any of its connections, and after any
// error, the producer takes a new epoch before the next transaction (Begin); the brokers refuse the late request then.
type Producer struct {
	client     *Client
	membership *Membership
	config     *sarama.Config
	id         int64
	epoch      int16
	ready      bool
	faults     int64 // of the connections, when the epoch was taken
	sequences  map[record.TopicPartition]int32
	added      map[record.TopicPartition]bool // partitions of the open transaction

	leaders     map[string]*sarama.Broker // by address
	coordinator *sarama.Broker            // of transactions
	group       *sarama.Broker            // coordinator of the group
	slab        slab
}

// NewProducer returns a producer that takes its first epoch in Begin.
func NewProducer(c *Client, m *Membership) (*Producer, error) {
	config, err := c.config.sarama()
	if err != nil {
		return nil, err
	}
	config.Net.MaxOpenRequests = 5
	config.Net.ReadTimeout = max(c.config.TransactionTimeout/2, time.Second)
	config.Net.WriteTimeout = config.Net.ReadTimeout
	c.faults.count(config)
	return &Producer{client: c, membership: m, config: config, leaders: map[string]*sarama.Broker{}, added: map[record.TopicPartition]bool{}}, nil
}

// transactionalID is nil under at-least-once: the producer is idempotent then, and nothing more.
func (p *Producer) transactionalID() *string {
	if !p.client.config.ExactlyOnce {
		return nil
	}
	return &p.client.config.TransactionalID
}

// Doubt makes the next Begin take a new epoch.
func (p *Producer) Doubt() { p.ready = false }

// Begin takes a new producer epoch unless nothing has gone wrong since the last.
func (p *Producer) Begin(ctx context.Context) error {
	clear(p.added)
	if p.ready && p.faults == p.client.faults.Load() {
		return nil
	}
	p.ready = false
	return p.Fence(ctx)
}

// Fence takes a new producer epoch: an open transaction of this transactional id, by whichever process, is aborted or
// its commit finished, and requests of older epochs are refused from now on.
func (p *Producer) Fence(ctx context.Context) error {
	err := retry(ctx, func() error {
		b, err := p.txnCoordinator()
		if err != nil {
			return err
		}
		faults := p.client.faults.Load()
		response, err := b.InitProducerID(&sarama.InitProducerIDRequest{Version: 4, TransactionalID: p.transactionalID(),
			TransactionTimeout: p.client.config.TransactionTimeout, ProducerID: -1, ProducerEpoch: -1})
		if err = p.settleTxn(err, func() sarama.KError { return response.Err }); err != nil {
			return err
		}
		p.id, p.epoch, p.faults = response.ProducerID, response.ProducerEpoch, faults
		p.sequences = map[record.TopicPartition]int32{}
		return nil
	})
	if err != nil {
		return reaction("take a producer epoch", err)
	}
	p.ready = true
	return nil
}

// settleTxn merges transport error and answer of a request to the transaction coordinator, and forgets a coordinator that
// is not one any more.
func (p *Producer) settleTxn(err error, code func() sarama.KError) error {
	if err == nil {
		err = asError(code())
	}
	if err != nil && kindOf(err) == retriable && err != error(sarama.ErrConcurrentTransactions) {
		closeBroker(p.coordinator)
		p.coordinator = nil
		if id := p.transactionalID(); id != nil {
			_ = p.client.sarama.RefreshTransactionCoordinator(*id) // the next attempt reports what is wrong
		}
	}
	return err
}

func (p *Producer) txnCoordinator() (*sarama.Broker, error) {
	if p.coordinator != nil {
		return p.coordinator, nil
	}
	var known *sarama.Broker
	var err error
	if id := p.transactionalID(); id != nil {
		known, err = p.client.sarama.TransactionCoordinator(*id)
	} else if known = p.client.sarama.LeastLoadedBroker(); known == nil {
		err = sarama.ErrOutOfBrokers
	}
	if err != nil {
		return nil, err
	}
	p.coordinator, err = open(known.Addr(), p.config)
	return p.coordinator, err
}

func (p *Producer) groupCoordinator() (*sarama.Broker, error) {
	if p.group != nil {
		return p.group, nil
	}
	known, err := p.client.sarama.Coordinator(p.client.config.Group)
	if err != nil {
		return nil, err
	}
	p.group, err = open(known.Addr(), p.config)
	return p.group, err
}

// Produce implements eos.Producer.
func (p *Producer) Produce(ctx context.Context, boxes []*record.Outbox) (map[record.TopicPartition]record.Offset, error) {
	streams := p.slab.streams(boxes, p.client.config)
	if err := p.addPartitions(ctx, streams); err != nil {
		p.ready = false
		return nil, err
	}
	ends, err := (&delivery{producer: p, streams: streams}).run(ctx)
	if err != nil {
		p.ready = false
		return nil, reaction("produce", err)
	}
	return ends, nil
}

func (p *Producer) addPartitions(ctx context.Context, streams []*stream) error {
	if p.transactionalID() == nil {
		return nil
	}
	topics := map[string][]int32{}
	for _, s := range streams {
		if !p.added[s.to] {
			topics[s.to.Topic] = append(topics[s.to.Topic], s.to.Partition)
			p.added[s.to] = true
		}
	}
	if len(topics) == 0 {
		return nil
	}
	err := retry(ctx, func() error {
		b, err := p.txnCoordinator()
		if err != nil {
			return err
		}
		response, err := b.AddPartitionsToTxn(&sarama.AddPartitionsToTxnRequest{Version: 3, TransactionalID: *p.transactionalID(),
			ProducerID: p.id, ProducerEpoch: p.epoch, TopicPartitions: topics})
		return p.settleTxn(err, func() sarama.KError { return worst(response.Errors) })
	})
	if err != nil {
		return reaction("add partitions to the transaction", err)
	}
	return nil
}

// worst picks the answer that decides: OPERATION_NOT_ATTEMPTED stands beside the one that says why.
func worst(errs map[string][]*sarama.PartitionError) sarama.KError {
	code := sarama.ErrNoError
	for _, partitions := range errs {
		for _, e := range partitions {
			if e.Err != sarama.ErrNoError && (code == sarama.ErrNoError || code == operationNotAttempted) {
				code = e.Err
			}
		}
	}
	return code
}

const operationNotAttempted = sarama.KError(55)

// CommitOffsets implements eos.Producer. The request is sent under the membership's gate, with the generation that is
// valid then; owned is asked there too.
func (p *Producer) CommitOffsets(ctx context.Context, offsets []eos.InputOffset, owned func() bool) error {
	if len(offsets) == 0 {
		return nil
	}
	if err := p.addOffsets(ctx); err != nil {
		p.ready = false
		return err
	}
	err := p.membership.underGeneration(ctx, func(m member) error {
		if !owned() {
			return fmt.Errorf("commit offsets: %w", eos.ErrLost)
		}
		return retry(ctx, func() error { return p.commitOffsets(offsets, m) })
	})
	if err != nil {
		p.ready = false
		return reaction("commit offsets", err)
	}
	return nil
}

func (p *Producer) addOffsets(ctx context.Context) error {
	if p.transactionalID() == nil {
		return nil
	}
	err := retry(ctx, func() error {
		b, err := p.txnCoordinator()
		if err != nil {
			return err
		}
		response, err := b.AddOffsetsToTxn(&sarama.AddOffsetsToTxnRequest{Version: 3, TransactionalID: *p.transactionalID(),
			ProducerID: p.id, ProducerEpoch: p.epoch, GroupID: p.client.config.Group})
		return p.settleTxn(err, func() sarama.KError { return response.Err })
	})
	if err != nil {
		return reaction("add offsets to the transaction", err)
	}
	return nil
}

func (p *Producer) commitOffsets(offsets []eos.InputOffset, m member) error {
	b, err := p.groupCoordinator()
	if err == nil {
		if p.transactionalID() != nil {
			err = p.txnOffsetCommit(b, offsets, m)
		} else {
			err = p.offsetCommit(b, offsets, m)
		}
	}
	if err != nil && kindOf(err) == retriable {
		closeBroker(p.group)
		p.group = nil
		_ = p.client.sarama.RefreshCoordinator(p.client.config.Group) // the next attempt reports what is wrong
	}
	return err
}

func (p *Producer) txnOffsetCommit(b *sarama.Broker, offsets []eos.InputOffset, m member) error {
	topics := map[string][]*sarama.PartitionOffsetMetadata{}
	for _, o := range offsets {
		topics[o.Topic] = append(topics[o.Topic], &sarama.PartitionOffsetMetadata{Partition: o.Partition, Offset: o.Next,
			LeaderEpoch: -1, Metadata: &o.Metadata})
	}
	response, err := b.TxnOffsetCommit(&sarama.TxnOffsetCommitRequest{Version: 3, TransactionalID: *p.transactionalID(), GroupID: p.client.config.Group,
		ProducerID: p.id, ProducerEpoch: p.epoch, GenerationID: m.Generation.ID, MemberID: m.MemberID, GroupInstanceID: m.instance, Topics: topics})
	if err != nil {
		return err
	}
	return asError(worst(response.Topics))
}

func (p *Producer) offsetCommit(b *sarama.Broker, offsets []eos.InputOffset, m member) error {
	request := &sarama.OffsetCommitRequest{Version: 7, ConsumerGroup: p.client.config.Group, ConsumerGroupGeneration: m.Generation.ID,
		ConsumerID: m.MemberID, GroupInstanceId: m.instance}
	for _, o := range offsets {
		request.AddBlockWithLeaderEpoch(o.Topic, o.Partition, o.Next, -1, 0, o.Metadata)
	}
	response, err := b.CommitOffset(request)
	if err != nil {
		return err
	}
	for _, partitions := range response.Errors {
		for _, code := range partitions {
			if err := asError(code); err != nil {
				return err
			}
		}
	}
	return nil
}

// Commit implements eos.Producer. Repeating EndTxn is safe: the brokers answer the same for a transaction that is
// already committed, and Begin takes a new epoch after any repetition, since that only follows a fault.
func (p *Producer) Commit(ctx context.Context) error {
	if p.transactionalID() == nil {
		return nil
	}
	err := retry(ctx, func() error {
		b, err := p.txnCoordinator()
		if err != nil {
			return err
		}
		response, err := b.EndTxn(&sarama.EndTxnRequest{Version: 3, TransactionalID: *p.transactionalID(),
			ProducerID: p.id, ProducerEpoch: p.epoch, TransactionResult: true})
		err = p.settleTxn(err, func() sarama.KError { return response.Err })
		if err != nil {
			p.ready = false
		}
		return err
	})
	if err != nil {
		return reaction("end the transaction", err)
	}
	return nil
}

// Close closes the producer's connections. An open transaction is left to its timeout or to the next Fence.
func (p *Producer) Close() {
	closeBroker(p.coordinator)
	closeBroker(p.group)
	for _, b := range p.leaders {
		closeBroker(b)
	}
}
