package cluster

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/bench/clicks"
)

// Pace writes the first n records of a stream on a schedule: record i is due at begin + i/rate, whatever became of the
// records before it, so a stall of the broker or the job is not left out of the latencies. Each value ends with its number as
// the field seq.
func Pace(ctx context.Context, addr, topic string, s clicks.Stream, p Schedule) error {
	kafka, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxBufferedRecords(1_000_000))
	if err != nil {
		return fmt.Errorf("connect to Kafka at %s: %w", addr, err)
	}
	defer kafka.Close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := uint64(0); i < p.Records; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		for now := time.Now(); i < p.Records && !p.Due(i).After(now); i++ {
			kafka.Produce(ctx, numbered(topic, s, i), nil)
		}
	}
	if err := kafka.Flush(ctx); err != nil {
		return fmt.Errorf("write to %s: %w", topic, err)
	}
	return nil
}

func numbered(topic string, s clicks.Stream, i uint64) *kgo.Record {
	c := s.At(i)
	key := clicks.AppendUser(nil, c.User)
	value := s.AppendValue(make([]byte, 0, 160), c)
	value = strconv.AppendUint(append(value[:len(value)-1], `,"seq":`...), i, 10)
	return &kgo.Record{Topic: topic, Partition: clicks.Partition(key, s.Partitions), Key: key, Value: append(value, '}'), Timestamp: time.UnixMilli(c.Time)}
}

// Schedule says when each record is due.
type Schedule struct {
	Begin   time.Time
	Rate    uint64 // records a second
	Records uint64
}

// Due is when record i is to be written.
func (p Schedule) Due(i uint64) time.Time {
	return p.Begin.Add(time.Duration(i * uint64(time.Second) / p.Rate))
}
