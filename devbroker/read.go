package devbroker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/record"
)

// ReadCommitted returns a topic's committed records, partition by partition, each from its start to the last stable
// offset of this moment. It counts positions instead of records, so that aborted transactions, their markers and the
// gaps of compaction do not make it wait for a record that never comes.
func (c *Client) ReadCommitted(ctx context.Context, topic string) ([]Record, error) {
	ends, err := c.StableOffsets(ctx, topic)
	if err != nil {
		return nil, err
	}
	starts, err := c.offsets(ctx, topic, "start", c.adm.ListStartOffsets)
	if err != nil {
		return nil, err
	}
	var records []Record
	for _, partition := range slices.Sorted(maps.Keys(ends)) {
		next := starts[partition]
		for next < ends[partition] {
			got, after, err := c.fetch(ctx, record.TopicPartition{Topic: topic, Partition: partition}, next)
			if err != nil {
				return nil, fmt.Errorf("read %s-%d from offset %d: %w", topic, partition, next, err)
			}
			for _, r := range got {
				// A batch may reach past the end that was asked for.
				if r.Offset < ends[partition] {
					records = append(records, r)
				}
			}
			next = after
		}
	}
	return records, nil
}

// WaitCommitted reads again and again until a topic's committed records satisfy enough, and returns them; when the
// context ends first, it returns what there was together with the context's error.
func (c *Client) WaitCommitted(ctx context.Context, topic string, enough func([]Record) bool) ([]Record, error) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	var last []Record
	for {
		records, err := c.ReadCommitted(ctx, topic)
		if err == nil {
			if last = records; enough(records) {
				return records, nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return last, fmt.Errorf("wait for records of %s, %d so far: %w", topic, len(last), ctx.Err())
		}
	}
}

// fetch sends one Fetch at read_committed to the partition's leader. It returns the records and the position after them.
func (c *Client) fetch(ctx context.Context, tp record.TopicPartition, from int64) ([]Record, int64, error) {
	metadata, err := c.adm.Metadata(ctx, tp.Topic)
	if err != nil {
		return nil, from, err
	}
	detail := metadata.Topics[tp.Topic]
	broker := c.kgo.Broker(int(detail.Partitions[tp.Partition].Leader))
	answer, err := broker.RetriableRequest(ctx, fetchRequest(tp, detail.ID, from))
	if err != nil {
		return nil, from, err
	}
	response := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(response.ErrorCode); err != nil {
		return nil, from, err
	}
	if len(response.Topics) == 0 || len(response.Topics[0].Partitions) == 0 {
		return nil, from, nil
	}
	partition, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{
		Offset: from, IsolationLevel: kgo.ReadCommitted(), Topic: tp.Topic, Partition: tp.Partition,
	}, &response.Topics[0].Partitions[0], kgo.DefaultDecompressor(), nil)
	if partition.Err != nil && !kerr.IsRetriable(partition.Err) {
		return nil, from, partition.Err
	}
	var records []Record
	for _, r := range partition.Records {
		records = append(records, consumed(r))
	}
	return records, next, nil
}

func fetchRequest(tp record.TopicPartition, id kadm.TopicID, from int64) *kmsg.FetchRequest {
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.Partition = tp.Partition
	partition.FetchOffset = from
	partition.PartitionMaxBytes = 8 << 20
	topic := kmsg.NewFetchRequestTopic()
	// Older brokers go by the name, newer ones by the id.
	topic.Topic, topic.TopicID = tp.Topic, id
	topic.Partitions = append(topic.Partitions, partition)
	request := kmsg.NewPtrFetchRequest()
	request.MaxWaitMillis = 100
	request.MinBytes = 1
	request.MaxBytes = 64 << 20
	request.IsolationLevel = 1
	request.Topics = append(request.Topics, topic)
	return request
}

func (r Record) toProduce(topic string, partition int32) *kgo.Record {
	out := &kgo.Record{Topic: topic, Partition: partition, Key: r.Key, Value: r.Value}
	if r.Timestamp != 0 {
		out.Timestamp = time.UnixMilli(r.Timestamp)
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: string(h.Key), Value: h.Value})
	}
	return out
}

func consumed(r *kgo.Record) Record {
	out := Record{
		Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value,
	}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, record.Header{Key: []byte(h.Key), Value: h.Value})
	}
	return out
}
