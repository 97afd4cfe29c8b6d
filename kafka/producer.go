package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"millrace/crash"
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
	codec      sarama.CompressionCodec
	id         int64
	epoch      int16
	ready      bool
	faults     int64 // of the connections, when the epoch was taken
	sequences  map[record.TopicPartition]int32
	added      map[record.TopicPartition]bool // partitions of the open transaction

	leaders     map[string]*sarama.Broker // by address
	coordinator *sarama.Broker            // of transactions
	group       *sarama.Broker            // coordinator of the group
	encodings   encodings
}

var codecs = map[string]sarama.CompressionCodec{"": sarama.CompressionNone, "none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD}

// NewProducer returns a producer that takes its first epoch in Begin.
func NewProducer(c *Client, m *Membership) (*Producer, error) {
	config, err := c.config.sarama()
	if err != nil {
		return nil, err
	}
	codec, ok := codecs[c.config.Compression]
	if !ok {
		return nil, fmt.Errorf("compression %q: want none, gzip, snappy, lz4 or zstd", c.config.Compression)
	}
	config.Net.MaxOpenRequests = 5
	config.Net.ReadTimeout = max(c.config.TransactionTimeout/2, time.Second)
	config.Net.WriteTimeout = config.Net.ReadTimeout
	c.faults.count(config)
	return &Producer{client: c, membership: m, config: config, codec: codec,
		leaders: map[string]*sarama.Broker{}, added: map[record.TopicPartition]bool{}}, nil
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

// Begin implements eos.Producer. It takes a new producer epoch unless nothing has gone wrong since the last.
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
	err := p.coordinated(ctx, "init_producer_id", func(b *sarama.Broker) (sarama.KError, error) {
		faults := p.client.faults.Load()
		response, err := b.InitProducerID(&sarama.InitProducerIDRequest{Version: 4, TransactionalID: p.transactionalID(),
			TransactionTimeout: p.client.config.TransactionTimeout, ProducerID: -1, ProducerEpoch: -1})
		if err != nil {
			return sarama.ErrNoError, err
		}
		p.id, p.epoch, p.faults = response.ProducerID, response.ProducerEpoch, faults
		return response.Err, nil
	})
	if err != nil {
		return reaction("take a producer epoch", p.client.config.denied(err, ""))
	}
	p.sequences = map[record.TopicPartition]int32{}
	p.ready = true
	return nil
}

// coordinated sends a request to the transaction coordinator until it is answered with something that time does not
// heal. Any repetition but the wait for the last transaction's markers leaves a doubt: the first may still be on its way.
func (p *Producer) coordinated(ctx context.Context, api string, send func(*sarama.Broker) (sarama.KError, error)) error {
	return retry(ctx, func() error {
		b, err := p.txnCoordinator()
		if err == nil {
			var code sarama.KError
			begun := time.Now()
			if code, err = send(b); err == nil {
				err = asError(code)
			}
			p.client.requested(api, begun, err)
		}
		if err != nil && !errors.Is(err, sarama.ErrConcurrentTransactions) {
			p.ready = false
			if kindOf(err) == retriable {
				p.forgetCoordinator()
			}
		}
		return err
	})
}

func (p *Producer) forgetCoordinator() {
	closeBroker(p.coordinator)
	p.coordinator = nil
	if id := p.transactionalID(); id != nil {
		_ = p.client.sarama.RefreshTransactionCoordinator(*id) // the next attempt reports what is wrong
	}
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

// Produce implements eos.Producer.
func (p *Producer) Produce(ctx context.Context, boxes []*record.Outbox) (map[record.TopicPartition]record.Offset, error) {
	latest := time.Now().Add(futureLimit).UnixMilli()
	streams := streams(boxes, bounds{p.client.config.MaxBatchBytes, latest})
	if err := p.addPartitions(ctx, streams); err != nil {
		p.ready = false
		return nil, reaction("add partitions to the transaction", err)
	}
	crash.At("commit.partitions")
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
	var answers map[string][]*sarama.PartitionError
	err := p.coordinated(ctx, "add_partitions_to_txn", func(b *sarama.Broker) (sarama.KError, error) {
		response, err := b.AddPartitionsToTxn(&sarama.AddPartitionsToTxnRequest{Version: 3, TransactionalID: *p.transactionalID(),
			ProducerID: p.id, ProducerEpoch: p.epoch, TopicPartitions: topics})
		if err != nil {
			return sarama.ErrNoError, err
		}
		answers = response.Errors
		return worst(answers), nil
	})
	return p.client.config.denied(err, "Write", refused(answers)...)
}

// worst picks the answer that decides: OPERATION_NOT_ATTEMPTED stands beside the one that says why, and of two failures
// the one that a repetition does not heal.
func worst(errs map[string][]*sarama.PartitionError) sarama.KError {
	code := sarama.ErrNoError
	for _, partitions := range errs {
		for _, e := range partitions {
			switch {
			case e.Err == sarama.ErrNoError:
			case code == sarama.ErrNoError, code == sarama.ErrOperationNotAttempted,
				e.Err != sarama.ErrOperationNotAttempted && kinds[code] == retriable && kinds[e.Err] != retriable:
				code = e.Err
			}
		}
	}
	return code
}

// refused lists the topics to which access is denied.
func refused(errs map[string][]*sarama.PartitionError) []string {
	var topics []string
	for topic, partitions := range errs {
		if slices.ContainsFunc(partitions, func(e *sarama.PartitionError) bool { return e.Err == sarama.ErrTopicAuthorizationFailed }) {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// Commit implements eos.Producer. Repeating EndTxn is safe: the brokers answer the same for a transaction that is
// already committed, and Begin takes a new epoch after any repetition, since that only follows a fault.
func (p *Producer) Commit(ctx context.Context) error {
	if p.transactionalID() == nil {
		return nil
	}
	err := p.coordinated(ctx, "end_txn", func(b *sarama.Broker) (sarama.KError, error) {
		response, err := b.EndTxn(&sarama.EndTxnRequest{Version: 3, TransactionalID: *p.transactionalID(),
			ProducerID: p.id, ProducerEpoch: p.epoch, TransactionResult: true})
		if err != nil {
			return sarama.ErrNoError, err
		}
		return response.Err, nil
	})
	if err != nil {
		p.ready = false
		return reaction("end the transaction", p.client.config.denied(err, ""))
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

var _ eos.Producer = (*Producer)(nil)
