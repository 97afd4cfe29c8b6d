package devbroker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/record"
)

// Client prepares and inspects topics in tests. It shares no code with the product's own Kafka access, so that a mistake
// there cannot hide itself. It works against a Broker and against real Kafka. Its methods may be called from any
// goroutine.
type Client struct {
	kgo *kgo.Client
	adm *kadm.Client
}

// Record is a record as it lies in a topic. Timestamps are milliseconds.
type Record struct {
	Partition int32
	Offset    int64
	Timestamp int64 // when produced: 0 stands for now
	Key       []byte
	Value     []byte // nil: a tombstone
	Headers   []record.Header
}

// NewClient returns a client for the brokers at addr, host:port separated by commas. It connects at first use. The
// caller closes it. more is for brokers that want a login.
func NewClient(addr string, more ...kgo.Opt) (*Client, error) {
	c, err := kgo.NewClient(append(more,
		kgo.SeedBrokers(strings.Split(addr, ",")...),
		kgo.RecordPartitioner(chosenPartition()),
		kgo.ProducerLinger(0),
		// Tests move leaders and cut connections; the default would look for new leaders after five seconds only.
		kgo.MetadataMinAge(50*time.Millisecond),
	)...)
	if err != nil {
		return nil, fmt.Errorf("test client for %s: %w", addr, err)
	}
	return &Client{kgo: c, adm: kadm.NewClient(c)}, nil
}

// byKey as a record's partition lets its key decide, by the hash of the Java client.
const byKey = -1

// chosenPartition obeys the partition that a record names.
func chosenPartition() kgo.Partitioner {
	hash := kgo.StickyKeyPartitioner(nil)
	return kgo.BasicConsistentPartitioner(func(topic string) func(*kgo.Record, int) int {
		byHash := hash.ForTopic(topic)
		return func(r *kgo.Record, n int) int {
			if r.Partition == byKey {
				return byHash.Partition(r, n)
			}
			return int(r.Partition)
		}
	})
}

// Close ends the client's connections.
func (c *Client) Close() { c.kgo.Close() }

// CreateTopic creates a topic with one replica a partition.
func (c *Client) CreateTopic(ctx context.Context, topic string, partitions int32, configs map[string]string) error {
	byPointer := make(map[string]*string, len(configs))
	for name, value := range configs {
		byPointer[name] = &value
	}
	if _, err := c.adm.CreateTopic(ctx, partitions, 1, byPointer, topic); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return nil
}

// AddPartitions gives a topic more partitions, so that it has this many.
func (c *Client) AddPartitions(ctx context.Context, topic string, partitions int32) error {
	answers, err := c.adm.UpdatePartitions(ctx, int(partitions), topic)
	if err == nil {
		err = answers.Error()
	}
	if err != nil {
		return fmt.Errorf("give topic %s %d partitions: %w", topic, partitions, err)
	}
	return nil
}

// DeleteTopic deletes a topic.
func (c *Client) DeleteTopic(ctx context.Context, topic string) error {
	if _, err := c.adm.DeleteTopic(ctx, topic); err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	return nil
}

// Produce writes the records to the partitions that their keys choose, in order, and returns when all are acknowledged.
// It ignores their Partition and Offset.
func (c *Client) Produce(ctx context.Context, topic string, records ...Record) error {
	return c.produce(ctx, topic, byKey, records)
}

// ProduceTo is Produce into one partition.
func (c *Client) ProduceTo(ctx context.Context, topic string, partition int32, records ...Record) error {
	return c.produce(ctx, topic, partition, records)
}

func (c *Client) produce(ctx context.Context, topic string, partition int32, records []Record) error {
	out := make([]*kgo.Record, len(records))
	for i, r := range records {
		out[i] = r.toProduce(topic, partition)
	}
	if err := c.kgo.ProduceSync(ctx, out...).FirstErr(); err != nil {
		return fmt.Errorf("produce %d records to %s: %w", len(records), topic, err)
	}
	return nil
}

// CommittedOffsets returns what a group has committed; a group without commits gives an empty map.
func (c *Client) CommittedOffsets(ctx context.Context, group string) (map[record.TopicPartition]int64, error) {
	var fetched kadm.OffsetResponses
	err := settled(ctx, func() (err error) {
		if fetched, err = c.adm.FetchOffsets(ctx, group); err == nil {
			err = fetched.Error()
		}
		return err
	})
	if errors.Is(err, kerr.GroupIDNotFound) {
		return map[record.TopicPartition]int64{}, nil // Real brokers answer with no offsets instead.
	}
	if err != nil {
		return nil, fmt.Errorf("committed offsets of group %s: %w", group, err)
	}
	offsets := make(map[record.TopicPartition]int64)
	fetched.Each(func(o kadm.OffsetResponse) {
		offsets[record.TopicPartition{Topic: o.Topic, Partition: o.Partition}] = o.At
	})
	return offsets, nil
}

// DeleteGroup removes a group with its offsets, once its last member has left; a group that does not exist is no error.
func (c *Client) DeleteGroup(ctx context.Context, group string) error {
	err := settled(ctx, func() error {
		_, err := c.adm.DeleteGroup(ctx, group)
		return err
	})
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("delete group %s: %w", group, err)
	}
	return nil
}

// EndOffsets returns the high watermark of each of a topic's partitions.
func (c *Client) EndOffsets(ctx context.Context, topic string) (map[int32]int64, error) {
	return c.offsets(ctx, topic, "end", c.adm.ListEndOffsets)
}

// StableOffsets returns the last stable offset of each of a topic's partitions: where a read at read_committed ends.
func (c *Client) StableOffsets(ctx context.Context, topic string) (map[int32]int64, error) {
	return c.offsets(ctx, topic, "stable", c.adm.ListCommittedOffsets)
}

type listOffsets func(context.Context, ...string) (kadm.ListedOffsets, error)

func (c *Client) offsets(ctx context.Context, topic, which string, list listOffsets) (map[int32]int64, error) {
	var listed kadm.ListedOffsets
	err := settled(ctx, func() (err error) {
		if listed, err = list(ctx, topic); err == nil {
			err = listed.Error()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s offsets of %s: %w", which, topic, err)
	}
	offsets := make(map[int32]int64)
	for partition, o := range listed[topic] {
		offsets[partition] = o.Offset
	}
	return offsets, nil
}

// settled repeats try while a real broker is still choosing a leader or a coordinator, which the first request after a
// start or a creation meets.
func settled(ctx context.Context, try func() error) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try()
		if !errors.Is(err, kerr.CoordinatorNotAvailable) && !errors.Is(err, kerr.CoordinatorLoadInProgress) &&
			!errors.Is(err, kerr.NotCoordinator) && !errors.Is(err, kerr.NonEmptyGroup) && !errors.Is(err, kerr.LeaderNotAvailable) &&
			!errors.Is(err, kerr.NotLeaderForPartition) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
}
