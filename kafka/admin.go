package kafka

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"millrace/record"

	"github.com/IBM/sarama"
)

// TopicSpec is an internal topic as it must be.
type TopicSpec struct {
	Name        string
	Partitions  int32
	Replication int16 // -1: the broker's default
	Config      map[string]string
}

// EnsureTopic creates an internal topic, or checks one that exists: it is never altered. created tells which.
func (c *Client) EnsureTopic(ctx context.Context, spec TopicSpec) (created bool, err error) {
	admin, err := c.admin()
	if err != nil {
		return false, err
	}
	entries := map[string]*string{}
	for k, v := range spec.Config {
		entries[k] = &v
	}
	found := int32(0)
	err = retry(ctx, func() error {
		err := createTopic(admin, spec.Name, &sarama.TopicDetail{NumPartitions: spec.Partitions, ReplicationFactor: spec.Replication, ConfigEntries: entries})
		if created = err == nil; errors.Is(err, sarama.ErrTopicAlreadyExists) {
			// A topic whose deletion is under way, which takes its time with ZooKeeper, exists and is unknown: it is created
			// once it is gone.
			found, err = c.Partitions(spec.Name)
		}
		return err
	})
	switch {
	case err != nil:
		return false, reaction(fmt.Sprintf("create topic %s with %d partitions, replication factor %d, %v", spec.Name, spec.Partitions, spec.Replication, spec.Config), c.config.denied(err, "Create", spec.Name))
	case created:
		return true, c.awaitTopic(ctx, spec)
	}
	return false, c.checkTopic(ctx, admin, spec, found)
}

func createTopic(admin sarama.ClusterAdmin, name string, detail *sarama.TopicDetail) error {
	err := admin.CreateTopic(name, detail, false)
	var t *sarama.TopicError
	switch {
	case !errors.As(err, &t):
		return err
	case errors.Is(t.Err, sarama.ErrTopicAlreadyExists):
		return t.Err
	}
	return fmt.Errorf("%w: %s", t.Err, text(t.ErrMsg))
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// awaitTopic waits until the new topic's leaders are known, so that the first request finds them.
func (c *Client) awaitTopic(ctx context.Context, spec TopicSpec) error {
	return retry(ctx, func() error {
		n, err := c.Partitions(spec.Name)
		if err == nil && n < spec.Partitions {
			err = sarama.ErrUnknownTopicOrPartition
		}
		return err
	})
}

// checkTopic holds a topic that exists, with n partitions, against what it must be.
func (c *Client) checkTopic(ctx context.Context, admin sarama.ClusterAdmin, spec TopicSpec, n int32) error {
	if n != spec.Partitions {
		return fmt.Errorf("internal topic %s has %d partitions, the job needs %d: the partition count of an input has changed, or another job has this application_id; "+
			"to start over with the new count, give the job a new application_id, or stop all replicas and delete the application's internal topics, consumer group and state directories", spec.Name, n, spec.Partitions)
	}
	var found []sarama.ConfigEntry
	if err := retry(ctx, func() (err error) {
		found, err = admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: spec.Name, ConfigNames: slices.Sorted(maps.Keys(spec.Config))})
		return err
	}); err != nil {
		return reaction("read the configuration of "+spec.Name, c.config.denied(err, "DescribeConfigs", spec.Name))
	}
	for _, e := range found {
		want, ok := spec.Config[e.Name]
		if ok && e.Name == "cleanup.policy" && e.Value != want {
			return fmt.Errorf("internal topic %s has cleanup.policy=%s, and must have %s: with any other policy the broker deletes state that is in use; "+
				"set it with kafka-configs.sh --alter --entity-type topics --entity-name %s --add-config cleanup.policy=%s, after making sure that nothing was deleted yet", spec.Name, e.Value, want, spec.Name, want)
		}
	}
	return nil
}

// DeleteRetention returns how long a topic keeps tombstones; ok is false when the broker does not tell.
func (c *Client) DeleteRetention(ctx context.Context, topic string) (time.Duration, bool) {
	admin, err := c.admin()
	if err != nil {
		return 0, false
	}
	found, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"delete.retention.ms"}})
	if err != nil {
		return 0, false
	}
	for _, e := range found {
		if e.Name == "delete.retention.ms" {
			ms, err := strconv.ParseInt(e.Value, 10, 64)
			return time.Duration(ms) * time.Millisecond, err == nil
		}
	}
	return 0, false
}

// StableOffsets returns the group's offsets once no transaction is pending on them: it waits for the open transaction of
// a dead member, which ends with its timeout.
func (c *Client) StableOffsets(ctx context.Context, tps []record.TopicPartition) (map[record.TopicPartition]record.Committed, error) {
	result := map[record.TopicPartition]record.Committed{}
	if len(tps) == 0 {
		return result, nil // a request without partitions would ask for all
	}
	err := retry(ctx, func() error {
		b, err := c.sarama.Coordinator(c.config.Group)
		if err != nil {
			return err
		}
		request := &sarama.OffsetFetchRequest{Version: 7, ConsumerGroup: c.config.Group, RequireStable: true}
		for _, tp := range tps {
			request.AddPartition(tp.Topic, tp.Partition)
		}
		result, err = fetchOffsets(b, request, tps)
		if err != nil && !errors.Is(err, sarama.ErrUnstableOffsetCommit) {
			_ = c.sarama.RefreshCoordinator(c.config.Group) // the next attempt reports what is wrong
		}
		return err
	})
	if err != nil {
		return nil, reaction("read the offsets of group "+c.config.Group, c.config.denied(err, "Describe", topicsOf(tps)...))
	}
	return result, nil
}

func fetchOffsets(b *sarama.Broker, request *sarama.OffsetFetchRequest, tps []record.TopicPartition) (map[record.TopicPartition]record.Committed, error) {
	response, err := b.FetchOffset(request)
	if err != nil {
		_ = b.Close() // sarama opens it anew; the error is the one to report
		return nil, err
	}
	result := map[record.TopicPartition]record.Committed{}
	if errors.Is(response.Err, sarama.ErrGroupIDNotFound) {
		for _, tp := range tps {
			result[tp] = record.Committed{Next: -1}
		}
		return result, nil
	}
	if err := asError(response.Err); err != nil {
		return nil, err
	}
	for _, tp := range tps {
		block := response.GetBlock(tp.Topic, tp.Partition)
		if block == nil {
			return nil, fmt.Errorf("%s: the broker's answer does not mention it", tp)
		}
		if err := asError(block.Err); err != nil {
			return nil, err
		}
		result[tp] = record.Committed{Next: block.Offset, Metadata: block.Metadata}
	}
	return result, nil
}

// EndOffset returns the high watermark: the end of the log with open transactions included.
func (c *Client) EndOffset(ctx context.Context, tp record.TopicPartition) (record.Offset, error) {
	return c.offset(ctx, tp, sarama.OffsetNewest)
}

// StartOffset returns the first offset that the log still has.
func (c *Client) StartOffset(ctx context.Context, tp record.TopicPartition) (record.Offset, error) {
	return c.offset(ctx, tp, sarama.OffsetOldest)
}

func (c *Client) offset(ctx context.Context, tp record.TopicPartition, which int64) (offset record.Offset, err error) {
	err = retry(ctx, func() error {
		offset, err = c.sarama.GetOffset(tp.Topic, tp.Partition, which)
		return err
	})
	if err != nil {
		return 0, reaction("read the offsets of "+tp.String(), c.config.denied(err, "Describe", tp.Topic))
	}
	return offset, nil
}

// TopicID is the identity of a partition's topic, which a topic that is made anew under the old name does not have; empty
// if the brokers are older than 2.8 and do not tell. It is asked of the leader, over the client's connection: every task
// asks at its start.
func (c *Client) TopicID(ctx context.Context, tp record.TopicPartition) (id string, err error) {
	err = retry(ctx, func() error {
		id, err = c.topicID(tp)
		if err != nil {
			_ = c.sarama.RefreshMetadata(tp.Topic) // the next attempt reports what is wrong
		}
		return err
	})
	if err != nil {
		return "", reaction("look for topic "+tp.Topic, c.config.denied(err, "Describe", tp.Topic))
	}
	return id, nil
}

func (c *Client) topicID(tp record.TopicPartition) (string, error) {
	leader, err := c.sarama.Leader(tp.Topic, tp.Partition)
	if err != nil {
		return "", err
	}
	m, err := leader.GetMetadata(&sarama.MetadataRequest{Version: 10, Topics: []string{tp.Topic}})
	if err != nil {
		_ = leader.Close() // sarama opens it anew; the error is the one to report
		return "", err
	}
	for _, t := range m.Topics {
		if err := asError(t.Err); err != nil {
			return "", err
		}
		if t.Name == tp.Topic && t.Uuid != (sarama.Uuid{}) {
			return hex.EncodeToString(t.Uuid[:]), nil
		}
	}
	return "", nil
}

// Purge deletes the records of a repartition topic before the given offsets, which must be committed.
func (c *Client) Purge(topic string, before map[int32]record.Offset) error {
	admin, err := c.admin()
	if err != nil {
		return err
	}
	if err := admin.DeleteRecords(topic, before); err != nil {
		return reaction("purge "+topic, c.config.denied(err, "Delete", topic))
	}
	return nil
}
