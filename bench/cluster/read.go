package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// patience is how long a reader waits for records that must be there.
const patience = 30 * time.Second

// ReadAll hands every committed record of a topic to each, in the order of its partition, up to what is committed now.
func (c *Cluster) ReadAll(ctx context.Context, topic string, each func(*kgo.Record) error) error {
	ends, err := c.End(ctx, topic, true)
	if err != nil {
		return err
	}
	// Control records show how far the reader is where a partition ends with markers only.
	reader, err := kgo.NewClient(kgo.SeedBrokers(c.Addr), kgo.ConsumeTopics(topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxBytes(32<<20))
	if err != nil {
		return fmt.Errorf("read %s: %w", topic, err)
	}
	defer reader.Close()
	for partition, end := range ends {
		if end == 0 {
			delete(ends, partition)
		}
	}
	for len(ends) > 0 {
		if err := readSome(ctx, reader, ends, each); err != nil {
			return fmt.Errorf("read %s: %w", topic, err)
		}
	}
	return nil
}

// readSome takes one answer of the broker, and removes the partitions that are at their end from ends.
func readSome(ctx context.Context, reader *kgo.Client, ends map[int32]int64, each func(*kgo.Record) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fetches := reader.PollFetches(limited)
	if err := fetches.Err0(); err != nil {
		return err
	}
	for it := fetches.RecordIter(); !it.Done(); {
		r := it.Next()
		if !r.Attrs.IsControl() {
			if err := each(r); err != nil {
				return err
			}
		}
		if end, open := ends[r.Partition]; open && r.Offset+1 >= end {
			delete(ends, r.Partition)
		}
	}
	return nil
}

// Tail reads what is committed to a topic behind its present end.
type Tail struct {
	reader *kgo.Client
}

// Tail begins to read behind offsets from, one a partition.
func (c *Cluster) Tail(topic string, from map[int32]int64) (*Tail, error) {
	at := map[int32]kgo.Offset{}
	for partition, offset := range from {
		at[partition] = kgo.NewOffset().At(offset)
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(c.Addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: at}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topic, err)
	}
	return &Tail{reader: reader}, nil
}

// Next waits for committed records and hands them to each. It returns ctx's error when ctx ends first.
func (t *Tail) Next(ctx context.Context, each func(*kgo.Record)) error {
	fetches := t.reader.PollFetches(ctx)
	if err := fetches.Err0(); err != nil {
		return err
	}
	fetches.EachRecord(each)
	return ctx.Err()
}

// Close ends reading.
func (t *Tail) Close() { t.reader.Close() }
