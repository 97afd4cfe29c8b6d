// Package cluster is the benchmark's view of Kafka: topics, what a group has committed, and results read back.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Cluster is a connection for everything but the measured process. It belongs to one goroutine.
type Cluster struct {
	Addr  string
	kafka *kgo.Client
	admin *kadm.Client
}

// Connect opens a connection to the broker at addr, as host:port.
func Connect(addr string) (*Cluster, error) {
	kafka, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(20*time.Millisecond),
		kgo.ProducerBatchMaxBytes(512<<10), kgo.MaxBufferedRecords(200_000), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		return nil, fmt.Errorf("connect to Kafka at %s: %w", addr, err)
	}
	return &Cluster{Addr: addr, kafka: kafka, admin: kadm.NewClient(kafka)}, nil
}

// Ready waits until the broker has made its own topics for groups and transactions, for which the first run would pay.
func (c *Cluster) Ready(ctx context.Context) error {
	producer, err := kgo.NewClient(kgo.SeedBrokers(c.Addr), kgo.TransactionalID("bench-ready"))
	if err != nil {
		return fmt.Errorf("connect to Kafka at %s: %w", c.Addr, err)
	}
	defer producer.Close()
	for {
		_, groups := c.admin.FetchOffsets(ctx, "bench-ready")
		_, _, transactions := producer.ProducerID(ctx)
		err := errors.Join(groups, transactions)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the broker's coordinators are not there: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Close ends the connection.
func (c *Cluster) Close() { c.kafka.Close() }

// CreateTopic makes a topic that keeps everything: event times lie in the past.
func (c *Cluster) CreateTopic(ctx context.Context, topic string, partitions int) error {
	forever := "-1"
	reply, err := c.admin.CreateTopic(ctx, int32(partitions), 1, map[string]*string{"retention.ms": &forever}, topic)
	if err = errors.Join(err, reply.Err); err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return nil
}

// DeleteTopics removes the topics whose names begin with prefix, and gives their disk space back.
func (c *Cluster) DeleteTopics(ctx context.Context, prefix string) error {
	all, err := c.admin.ListTopics(ctx)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	var names []string
	for _, name := range all.Names() {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	replies, err := c.admin.DeleteTopics(ctx, names...)
	if err = errors.Join(err, replies.Error()); err != nil {
		return fmt.Errorf("delete topics %s*: %w", prefix, err)
	}
	return nil
}

// Size is what topics hold.
type Size struct {
	Positions int64 // offsets given out: records, and one marker a transaction and partition
	Bytes     int64 // in the log, before any compaction that may have run
}

// Sizes adds up the topics whose names begin with prefix and end with suffix.
func (c *Cluster) Sizes(ctx context.Context, prefix, suffix string) (Size, error) {
	var size Size
	dirs, err := c.admin.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return size, fmt.Errorf("describe log directories: %w", err)
	}
	topics := map[string]bool{}
	dirs.Each(func(d kadm.DescribedLogDir) {
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			if strings.HasPrefix(p.Topic, prefix) && strings.HasSuffix(p.Topic, suffix) {
				size.Bytes += p.Size
				topics[p.Topic] = true
			}
		})
	})
	for topic := range topics {
		ends, err := c.admin.ListEndOffsets(ctx, topic)
		if err = errors.Join(err, ends.Error()); err != nil {
			return size, fmt.Errorf("end offsets of %s: %w", topic, err)
		}
		ends.Each(func(o kadm.ListedOffset) { size.Positions += o.Offset })
	}
	return size, nil
}

// End returns the next offset of each partition of a topic: with committed, the one that readers of committed records
// may reach.
func (c *Cluster) End(ctx context.Context, topic string, committed bool) (map[int32]int64, error) {
	list := c.admin.ListEndOffsets
	if committed {
		list = c.admin.ListCommittedOffsets
	}
	listed, err := list(ctx, topic)
	if err = errors.Join(err, listed.Error()); err != nil {
		return nil, fmt.Errorf("end offsets of %s: %w", topic, err)
	}
	ends := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
	return ends, nil
}

// Committed returns how many records of a topic a group has committed: 0 as well while the broker cannot tell. The topic must hold no
// transactions.
func (c *Cluster) Committed(ctx context.Context, group, topic string) (uint64, error) {
	offsets, err := c.admin.FetchOffsets(ctx, group)
	if kerr.IsRetriable(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("committed offsets of group %s: %w", group, err)
	}
	var done uint64
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == topic && o.Err == nil && o.At > 0 {
			done += uint64(o.At)
		}
	})
	return done, nil
}
