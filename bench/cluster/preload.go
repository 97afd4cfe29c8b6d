package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/bench/clicks"
)

// slab is how many bytes of keys and values share one allocation.
const slab = 1 << 20

// Preload appends records from to to-1 of a stream to a topic, and returns when all are acknowledged.
func (c *Cluster) Preload(ctx context.Context, topic string, s clicks.Stream, from, to uint64) error {
	var once sync.Once
	var failed error
	done := func(_ *kgo.Record, err error) {
		if err != nil {
			once.Do(func() { failed = err })
		}
	}
	var b []byte
	for i := from; i < to; i++ {
		if cap(b)-len(b) < 1024 {
			b = make([]byte, 0, slab)
		}
		click := s.At(i)
		at := len(b)
		b = clicks.AppendUser(b, click.User)
		key := b[at:len(b):len(b)]
		at = len(b)
		b = s.AppendValue(b, click)
		c.kafka.Produce(ctx, &kgo.Record{Topic: topic, Partition: clicks.Partition(key, s.Partitions), Key: key, Value: b[at:len(b):len(b)],
			Timestamp: time.UnixMilli(click.Time)}, done)
	}
	if err := c.kafka.Flush(ctx); err != nil {
		return fmt.Errorf("preload %s: %w", topic, err)
	}
	if failed != nil {
		return fmt.Errorf("preload %s: %w", topic, failed)
	}
	return nil
}
