package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/record"

	"github.com/IBM/sarama"
)

// A delivery sends the streams of one epoch and waits until every batch is acknowledged. Per partition the batches are
// on the wire in order, at most maxInFlight at a time over one connection; after a failure nothing more of the partition
// is sent before the answers to all that is under way are in, then everything unacknowledged goes again, unchanged.
type delivery struct {
	producer *Producer
	streams  []*stream
	answers  chan answer
	waiting  int              // requests without an answer
	pending  int              // streams that are not acknowledged to the end
	dead     map[string]error // addresses that could not be dialled since the last pause
	pause    backoff
}

const (
	maxInFlight     = 5 // as many as brokers remember of a producer and a partition, so that all may be sent again
	maxRequestBytes = 4 << 20
)

type sent struct {
	stream *stream
	batch  int
}

// request is one ProduceRequest on its way to the leader of its partitions: at most one batch a partition.
type request struct {
	body  *sarama.ProduceRequest
	sent  []sent
	bytes int
	begun time.Time
}

type answer struct {
	broker *sarama.Broker
	*request
	response *sarama.ProduceResponse
	err      error
}

func (d *delivery) run(ctx context.Context) (map[record.TopicPartition]record.Offset, error) {
	d.pending = len(d.streams)
	d.answers = make(chan answer, maxInFlight*len(d.streams)+1) // never full: a callback must not block
	d.dead = map[string]error{}
	for d.pending > 0 {
		if err := d.send(); err != nil {
			return nil, err
		}
		if d.waiting == 0 {
			if err := d.again(ctx); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d partitions are not acknowledged: %w", d.pending, len(d.streams), context.Cause(ctx))
		case a := <-d.answers:
			if err := d.take(a); err != nil {
				return nil, err
			}
		}
	}
	return d.ends(ctx)
}

func (d *delivery) ends(ctx context.Context) (map[record.TopicPartition]record.Offset, error) {
	ends := make(map[record.TopicPartition]record.Offset, len(d.streams))
	for _, s := range d.streams {
		if s.end < 0 {
			// A duplicate was acknowledged without its offset. The end of the log is right for a changelog, where nobody
			// but us writes; nobody asks for another topic's.
			end, err := d.producer.client.EndOffset(ctx, s.to)
			if err != nil {
				return nil, err
			}
			s.end = end
		}
		ends[s.to] = s.end
	}
	return ends, nil
}

// send puts one batch of each stream that may send into one request a broker, and repeats until nothing more may go.
func (d *delivery) send() error {
	for {
		d.producer.encodings.reset()
		requests := map[*sarama.Broker]*request{}
		for _, s := range d.streams {
			if !s.maySend() {
				continue
			}
			b, err := d.leader(s.to)
			if err != nil {
				if kindOf(err) != retriable {
					return fmt.Errorf("%s: %w", s.to, d.producer.client.config.denied(err, "Write", s.to.Topic))
				}
				s.fail(err)
				continue
			}
			if err := d.add(requests, b, s); err != nil {
				return fmt.Errorf("%s: %w", s.to, err)
			}
		}
		if len(requests) == 0 {
			return nil
		}
		for b, r := range requests {
			d.waiting++
			r.begun = time.Now()
			err := b.AsyncProduce(r.body, func(response *sarama.ProduceResponse, err error) {
				d.answers <- answer{b, r, response, err}
			})
			if err != nil {
				d.answers <- answer{b, r, nil, err}
			}
		}
	}
}

func (d *delivery) add(requests map[*sarama.Broker]*request, b *sarama.Broker, s *stream) error {
	r := requests[b]
	batch := &s.batches[s.next]
	switch {
	case r == nil:
		r = &request{body: &sarama.ProduceRequest{Version: 9, TransactionalID: d.producer.transactionalID(), RequiredAcks: sarama.WaitForAll,
			Timeout: int32(d.producer.config.Net.ReadTimeout.Milliseconds())}}
		requests[b] = r
	case r.bytes+len(batch.records) > maxRequestBytes:
		return nil // it goes with the next request
	}
	encoded, err := d.encode(s, batch)
	if err != nil {
		return err
	}
	r.bytes += len(batch.records)
	r.body.AddBatch(s.to.Topic, s.to.Partition, encoded)
	r.sent = append(r.sent, sent{s, s.next})
	s.next++
	s.inFlight++
	return nil
}

// take handles one answer. Only an error that resending cannot heal is returned.
func (d *delivery) take(a answer) error {
	d.waiting--
	if a.err != nil {
		d.producer.forget(a.broker)
	}
	told := a.err // the first of the partitions' errors
	defer func() { d.producer.client.requested("produce", a.begun, told) }()
	for _, s := range a.sent {
		s.stream.inFlight--
		block, err := a.block(s.stream.to)
		told = cmp.Or(told, err)
		switch {
		case err == nil || errors.Is(err, sarama.ErrDuplicateSequenceNumber):
			d.acknowledge(s, block)
		case kindOf(err) == retriable, s.stream.failed != nil && errors.Is(err, sarama.ErrOutOfOrderSequenceNumber):
			s.stream.fail(err) // an out-of-order batch is the echo of the failed one before it
			d.producer.ready = false
		default:
			return fmt.Errorf("%s: %w", s.stream.to, d.producer.client.config.denied(err, "Write", s.stream.to.Topic))
		}
	}
	return nil
}

func (a answer) block(tp record.TopicPartition) (*sarama.ProduceResponseBlock, error) {
	if a.err != nil {
		return nil, a.err
	}
	block := a.response.GetBlock(tp.Topic, tp.Partition)
	if block == nil {
		return nil, fmt.Errorf("the broker's answer does not mention %s", tp)
	}
	return block, asError(block.Err)
}

func (d *delivery) acknowledge(s sent, block *sarama.ProduceResponseBlock) {
	st := s.stream
	st.acked = s.batch + 1
	st.end = -1
	if block.Err == sarama.ErrNoError && block.Offset >= 0 {
		st.end = block.Offset + int64(st.batches[s.batch].count)
	}
	if st.acked == len(st.batches) {
		d.pending--
	}
}

// again prepares the failed streams for another attempt, after a pause and with fresh metadata.
func (d *delivery) again(ctx context.Context) error {
	var topics []string
	var last error
	for _, s := range d.streams {
		if s.failed != nil {
			last = fmt.Errorf("%s: %w", s.to, s.failed)
			topics = append(topics, s.to.Topic)
			s.failed, s.next = nil, s.acked
		}
	}
	if ended := d.pause.wait(ctx); ended != nil {
		return fmt.Errorf("%w; given up: %w", last, ended)
	}
	clear(d.dead)
	_ = d.producer.client.sarama.RefreshMetadata(topics...) // if it fails, so will the next sending, until ctx ends
	return nil
}

// leader returns our connection to the partition's leader. A dial that failed is not repeated for the other partitions
// of that broker before the next pause: each could take the whole dial timeout.
func (d *delivery) leader(tp record.TopicPartition) (*sarama.Broker, error) {
	p := d.producer
	known, err := p.client.sarama.Leader(tp.Topic, tp.Partition)
	if err != nil {
		return nil, err
	}
	addr := known.Addr()
	if b := p.leaders[addr]; b != nil {
		return b, nil
	}
	if err := d.dead[addr]; err != nil {
		return nil, err
	}
	b, err := open(addr, p.config)
	if err != nil {
		d.dead[addr] = err
		return nil, err
	}
	p.leaders[addr] = b
	return b, nil
}

func (p *Producer) forget(b *sarama.Broker) {
	for addr, known := range p.leaders {
		if known == b {
			delete(p.leaders, addr)
			closeBroker(b)
		}
	}
}
