package kafka

import (
	"context"
	"errors"
	"time"

	"millrace/record"

	"github.com/IBM/sarama"
)

// Reader reads one partition for a restore, at read_committed, over a connection of its own. It is used by one goroutine.
type Reader struct {
	client *Client
	config *sarama.Config
	tp     record.TopicPartition
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
// error means that the log begins later.
func (r *Reader) Read(ctx context.Context, from record.Offset) (b record.Batch, err error) {
	err = retry(ctx, func() error {
		b, err = r.read(from)
		if err != nil && kindOf(err) == retriable {
			r.Close()
			_ = r.client.sarama.RefreshMetadata(r.tp.Topic) // the next attempt reports what is wrong
		}
		return err
	})
	return b, err
}

const restoreMaxBytes = 8 << 20

func (r *Reader) read(from record.Offset) (record.Batch, error) {
	if r.broker == nil {
		leader, err := r.client.sarama.Leader(r.tp.Topic, r.tp.Partition)
		if err != nil {
			return record.Batch{}, err
		}
		if r.broker, err = open(leader.Addr(), r.config); err != nil {
			return record.Batch{}, err
		}
	}
	request := &sarama.FetchRequest{Version: 12, MaxWaitTime: int32((100 * time.Millisecond).Milliseconds()), MinBytes: 1,
		MaxBytes: restoreMaxBytes, Isolation: sarama.ReadCommitted, SessionEpoch: -1}
	request.AddBlock(r.tp.Topic, r.tp.Partition, from, restoreMaxBytes, -1)
	response, err := r.broker.Fetch(request)
	if err != nil {
		return record.Batch{}, err
	}
	block := response.GetBlock(r.tp.Topic, r.tp.Partition)
	if block == nil {
		return record.Batch{}, sarama.ErrIncompleteResponse
	}
	if err := asError(block.Err); err != nil {
		if errors.Is(err, sarama.ErrOffsetOutOfRange) {
			return record.Batch{}, &OffsetGone{r.tp, from, block.LogStartOffset, block.HighWaterMarkOffset}
		}
		return record.Batch{}, err
	}
	return decode(r.tp, from, block)
}

// Close closes the connection.
func (r *Reader) Close() {
	closeBroker(r.broker)
	r.broker = nil
}
