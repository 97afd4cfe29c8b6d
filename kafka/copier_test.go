package kafka

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"millrace/devbroker"
	"millrace/eos"
	"millrace/record"
)

// collector is a Sink that keeps what it is offered, up to a limit.
type collector struct {
	mu      sync.Mutex
	limit   int // records; 0: none
	records []record.Record
	batches []record.Batch
	failed  error
	changed chan struct{}
}

func newCollector(limit int) *collector {
	return &collector{limit: limit, changed: make(chan struct{})}
}

func (c *collector) Full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limit > 0 && len(c.records) >= c.limit
}

func (c *collector) Offer(b record.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = append(c.records, b.Records...)
	c.batches = append(c.batches, b)
	c.tell()
}

func (c *collector) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = err
	c.tell()
}

func (c *collector) tell() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// next is the position after what was offered; -1 before the first batch. It is called with mu held.
func (c *collector) next() record.Offset {
	if len(c.batches) == 0 {
		return -1
	}
	return c.batches[len(c.batches)-1].Next
}

// await waits until enough, which is called with mu held.
func (c *collector) await(b *bench, what string, enough func() bool) {
	b.t.Helper()
	for {
		c.mu.Lock()
		ok, changed := enough(), c.changed
		c.mu.Unlock()
		if ok {
			return
		}
		b.within(changed, "wait until "+what)
	}
}

// reach waits until the position is at least at offset.
func (c *collector) reach(b *bench, offset record.Offset) {
	b.t.Helper()
	c.await(b, fmt.Sprintf("the position is %d", offset), func() bool { return c.next() >= offset })
}

func (c *collector) fails(b *bench) error {
	b.t.Helper()
	c.await(b, "the partition fails", func() bool { return c.failed != nil })
	return c.failed
}

// take takes at most n records of what was collected, and tells the position after them; -1: there is none.
func (c *collector) take(n int) ([]record.Record, record.Offset) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n >= len(c.records) {
		records := c.records
		c.records = nil
		return records, c.next()
	}
	records := c.records[:n]
	c.records = c.records[n:]
	return records, records[n-1].Offset + 1
}

// copier copies an input topic to an output topic, partition by partition, exactly once: fetcher, producer and
// membership at work together, with the one recovery path.
type copier struct {
	*caller
	fetcher    *Fetcher
	output     string
	partitions int32
	sinks      []*collector
	done       []record.Offset // committed
	bound      time.Duration
}

func (b *bench) copier(config Config, partitions int32, each int) *copier {
	b.t.Helper()
	input, output := b.topic("in", partitions, nil), b.topic("out", partitions, nil)
	for p := range partitions {
		var records []devbroker.Record
		for i := range each {
			records = append(records, devbroker.Record{Value: fmt.Appendf(nil, "%d/%d", p, i)})
		}
		if err := b.inspect.ProduceTo(b.ctx, input, p, records...); err != nil {
			b.t.Fatal(err)
		}
	}
	c := &copier{caller: b.caller(config, input), output: output, partitions: partitions, bound: 5 * time.Second}
	var err error
	if c.fetcher, err = c.client.NewFetcher(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.fetcher.Close)
	c.restart()
	return c
}

// restart is the recovery path: fence, read the stable offsets, read on from there.
func (c *copier) restart() {
	c.t.Helper()
	for p := range c.partitions {
		c.fetcher.Remove(c.in(p))
	}
	c.member.owns(int(c.partitions))
	ctx, cancel := context.WithTimeout(c.ctx, 20*time.Second)
	defer cancel()
	if err := c.producer.Fence(ctx); err != nil {
		c.t.Fatalf("fence: %v", err)
	}
	var all []record.TopicPartition
	for p := range c.partitions {
		all = append(all, c.in(p))
	}
	offsets, err := c.client.StableOffsets(ctx, all)
	if err != nil {
		c.t.Fatalf("stable offsets: %v", err)
	}
	c.sinks, c.done = nil, nil
	for _, tp := range all {
		s := newCollector(20)
		c.sinks = append(c.sinks, s)
		c.done = append(c.done, max(offsets[tp].Next, 0))
		c.fetcher.Add(tp, max(offsets[tp].Next, 0), s)
	}
}

func (c *copier) in(p int32) record.TopicPartition {
	return record.TopicPartition{Topic: c.input, Partition: p}
}

const recordsAnEpoch = 20

// epoch takes at most some records of every partition; false when nothing has arrived.
func (c *copier) epoch() (eos.Epoch, []record.Offset, bool) {
	e := eos.Epoch{Owned: func() bool { return true }, Parts: []eos.Part{{}}}
	next := append([]record.Offset(nil), c.done...)
	for p, s := range c.sinks {
		records, position := s.take(recordsAnEpoch)
		if position <= next[p] {
			continue
		}
		next[p] = position
		o := &record.Outbox{To: record.TopicPartition{Topic: c.output, Partition: int32(p)}}
		for _, r := range records {
			o.Append(r.Key, r.Value, r.Headers, r.Timestamp)
		}
		e.Parts[0].Outputs = append(e.Parts[0].Outputs, o)
		e.Parts[0].Offsets = append(e.Parts[0].Offsets, eos.InputOffset{TopicPartition: c.in(int32(p)), Next: position})
	}
	return e, next, len(e.Parts[0].Offsets) > 0
}

// run copies until each partition has been copied up to end, and calls before every epoch with its number.
func (c *copier) run(end record.Offset, before func(epoch int)) {
	c.t.Helper()
	for n := 0; ; {
		lowest := c.lowest()
		if lowest >= end {
			return
		}
		e, next, ok := c.epoch()
		if !ok {
			c.fetcher.Wake()
			p := c.laggard(end)
			c.sinks[p].reach(c.bench, c.done[p]+1)
			continue
		}
		before(n)
		n++
		if _, err := c.commit(e, c.bound); err != nil {
			c.recovers++
			c.t.Logf("epoch %d: %v", n-1, err)
			c.restart()
			continue
		}
		c.done = next
		c.fetcher.Wake()
	}
}

func (c *copier) lowest() record.Offset {
	lowest := c.done[0]
	for _, d := range c.done {
		lowest = min(lowest, d)
	}
	return lowest
}

// laggard is a partition with something left to copy.
func (c *copier) laggard(end record.Offset) int {
	for p, d := range c.done {
		if d < end {
			return p
		}
	}
	return 0
}

// verify holds the copy against the original.
func (c *copier) verify() {
	c.t.Helper()
	byPartition := func(topic string) map[int32][]string {
		all := map[int32][]string{}
		for _, r := range c.committed(topic) {
			all[r.Partition] = append(all[r.Partition], string(r.Value))
		}
		return all
	}
	if diff := cmp.Diff(byPartition(c.input), byPartition(c.output)); diff != "" {
		c.t.Errorf("the copy differs: -input +output\n%s", diff)
	}
}

func TestACopyIsExact(t *testing.T) {
	b := newBench(t, 3)
	c := b.copier(b.config(), 8, 500)
	c.run(500, func(int) {})
	c.verify()
	if c.recovers > 0 {
		t.Errorf("%d epochs failed without a fault", c.recovers)
	}
}
