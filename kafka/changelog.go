package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/record"

	"github.com/IBM/sarama"
)

// Reader reads one partition for a restore, at read_committed, over a connection of its own. It is used by one goroutine,
// which closes it.
type Reader struct {
	client *Client
	config *sarama.Config
	tp     record.TopicPartition
	tap    *tap // of the connection
	broker *sarama.Broker
}

// NewReader returns a reader; it connects with the first Read.
func (c *Client) NewReader(tp record.TopicPartition) (*Reader, error) {
	config, err := c.config.sarama()
	if err != nil {
		return nil, err
	}
	return &Reader{client: c, config: config, tp: tp}, nil
}

// Read returns the next batch from the offset on. It may be empty when nothing decided lies there yet. An *OffsetGone
// error means that the log begins later, or ends earlier. What time can heal is tried again until ctx ends.
func (r *Reader) Read(ctx context.Context, from record.Offset) (b record.Batch, err error) {
	strikes := 0
	err = retry(ctx, func() error {
		b, err = r.read(ctx, from)
		if errors.Is(err, errUnreadable) {
			if strikes++; strikes >= maxStrikes {
				return fmt.Errorf("%w (%w)", errDamaged, err)
			}
		}
		if err != nil && kindOf(err) == retriable {
			r.Close()
			_ = r.client.sarama.RefreshMetadata(r.tp.Topic) // the next attempt reports what is wrong
		}
		return err
	})
	if err != nil {
		return b, reaction(fmt.Sprintf("read %s at offset %d", r.tp, from), r.client.config.denied(err, "Read", r.tp.Topic))
	}
	return b, nil
}

const (
	restoreMaxBytes = 8 << 20
	restoreMaxWait  = 100 * time.Millisecond
)

func (r *Reader) read(ctx context.Context, from record.Offset) (record.Batch, error) {
	if r.broker == nil {
		leader, err := r.client.sarama.Leader(r.tp.Topic, r.tp.Partition)
		if err != nil {
			return record.Batch{}, err
		}
		if r.broker, r.tap, err = openTapped(leader.Addr(), r.config); err != nil {
			return record.Batch{}, err
		}
	}
	request := &sarama.FetchRequest{Version: 12, MaxWaitTime: int32(restoreMaxWait.Milliseconds()), MinBytes: 1,
		MaxBytes: restoreMaxBytes, Isolation: sarama.ReadCommitted, SessionEpoch: -1}
	request.AddBlock(r.tp.Topic, r.tp.Partition, from, restoreMaxBytes, -1)
	response, err := r.client.fetch(r.broker, request)
	if err != nil {
		return record.Batch{}, err
	}
	block := response.GetBlock(r.tp.Topic, r.tp.Partition)
	if block == nil {
		return record.Batch{}, sarama.ErrIncompleteResponse
	}
	switch err := asError(block.Err); {
	case errors.Is(err, sarama.ErrOffsetOutOfRange):
		if gone := r.client.gone(ctx, r.tp, from); gone != nil {
			return record.Batch{}, gone
		}
		return record.Batch{}, sarama.ErrOffsetNotAvailable // a new leader that is not up to date yet: asked again
	case err != nil:
		return record.Batch{}, err
	}
	return r.tap.decode(r.tp, from, block)
}

// Close closes the connection; a later Read opens another.
func (r *Reader) Close() {
	closeBroker(r.broker)
	r.broker = nil
}
