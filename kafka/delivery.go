package kafka

import (
	"context"
	"errors"
	"fmt"

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
	waiting  int // requests without an answer
	pending  int // streams that are not acknowledged to the end
	pause    backoff
}

const (
	maxInFlight     = 3
	maxRequestBytes = 8 << 20
)

type sent struct {
	stream *stream
	batch  int
}

type answer struct {
	broker   *sarama.Broker
	sent     []sent
	response *sarama.ProduceResponse
	err      error
}

func (d *delivery) run(ctx context.Context) (map[record.TopicPartition]record.Offset, error) {
	d.pending = len(d.streams)
	d.answers = make(chan answer, maxInFlight*len(d.streams)+1) // never full: a callback must not block
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
			return nil, context.Cause(ctx)
		case a := <-d.answers:
			if err := d.take(a); err != nil {
				return nil, err
			}
		}
	}
	ends := make(map[record.TopicPartition]record.Offset, len(d.streams))
	for _, s := range d.streams {
		if s.end < 0 { // a duplicate was acknowledged without its offset; nobody but us writes there now
			end, err := d.producer.client.sarama.GetOffset(s.to.Topic, s.to.Partition, sarama.OffsetNewest)
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
		requests := map[*sarama.Broker]*answer{}
		bodies := map[*sarama.Broker]*sarama.ProduceRequest{}
		sizes := map[*sarama.Broker]int{}
		for _, s := range d.streams {
			if s.failed || s.next == len(s.batches) || s.inFlight >= maxInFlight {
				continue
			}
			b, err := d.producer.leader(s.to)
			if err != nil {
				if kindOf(err) != retriable {
					return err
				}
				s.failed = true
				continue
			}
			batch := &s.batches[s.next]
			if sizes[b] > 0 && sizes[b]+batch.bytes > maxRequestBytes {
				continue
			}
			if bodies[b] == nil {
				bodies[b] = &sarama.ProduceRequest{Version: 9, TransactionalID: d.producer.transactionalID(), RequiredAcks: sarama.WaitForAll,
					Timeout: int32(d.producer.config.Net.ReadTimeout.Milliseconds())}
				requests[b] = &answer{broker: b}
			}
			sizes[b] += batch.bytes
			bodies[b].AddBatch(s.to.Topic, s.to.Partition, d.producer.encode(s.to, batch))
			requests[b].sent = append(requests[b].sent, sent{s, s.next})
			s.next++
			s.inFlight++
		}
		if len(requests) == 0 {
			return nil
		}
		for b, a := range requests {
			d.waiting++
			err := b.AsyncProduce(bodies[b], func(r *sarama.ProduceResponse, err error) {
				d.answers <- answer{a.broker, a.sent, r, err}
			})
			if err != nil {
				d.answers <- answer{a.broker, a.sent, nil, err}
			}
		}
	}
}

// take handles one answer. Only an error that resending cannot heal is returned.
func (d *delivery) take(a answer) error {
	d.waiting--
	if a.err != nil {
		d.producer.forget(a.broker)
	}
	for _, s := range a.sent {
		s.stream.inFlight--
		err := a.err
		var block *sarama.ProduceResponseBlock
		if err == nil {
			if block = a.response.GetBlock(s.stream.to.Topic, s.stream.to.Partition); block == nil {
				err = fmt.Errorf("%s: the broker's answer does not mention it", s.stream.to)
			} else {
				err = asError(block.Err)
			}
		}
		switch {
		case err == nil || errors.Is(err, sarama.ErrDuplicateSequenceNumber):
			d.acknowledge(s, block)
		case kindOf(err) == retriable, s.stream.failed && errors.Is(err, sarama.ErrOutOfOrderSequenceNumber):
			s.stream.failed = true // an out-of-order batch is the echo of the failed one before it
			d.producer.ready = false
		default:
			return fmt.Errorf("%s: %w", s.stream.to, err)
		}
	}
	return nil
}

func (d *delivery) acknowledge(s sent, block *sarama.ProduceResponseBlock) {
	st := s.stream
	st.acked = s.batch + 1
	st.end = -1
	if block.Err == sarama.ErrNoError && block.Offset >= 0 {
		st.end = block.Offset + int64(st.batches[s.batch].to-st.batches[s.batch].from)
	}
	if st.acked == len(st.batches) {
		d.pending--
	}
}

// again prepares the failed streams for another attempt, after a pause and with fresh metadata.
func (d *delivery) again(ctx context.Context) error {
	if err := d.pause.wait(ctx); err != nil {
		return err
	}
	var topics []string
	for _, s := range d.streams {
		if s.failed {
			s.failed, s.next = false, s.acked
			topics = append(topics, s.to.Topic)
		}
	}
	_ = d.producer.client.sarama.RefreshMetadata(topics...) // if it fails, so will the next sending, until ctx ends
	return nil
}

// leader returns our connection to the partition's leader.
func (p *Producer) leader(tp record.TopicPartition) (*sarama.Broker, error) {
	known, err := p.client.sarama.Leader(tp.Topic, tp.Partition)
	if err != nil {
		return nil, err
	}
	addr := known.Addr()
	if b := p.leaders[addr]; b != nil {
		return b, nil
	}
	b, err := open(addr, p.config)
	if err != nil {
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
