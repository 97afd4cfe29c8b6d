package rebalance

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"millrace/changelog"
	"millrace/eos"
	"millrace/record"
	"millrace/task"
)

type decision uint8

const (
	pending decision = iota
	committed
	aborted
	marker
)

type entry struct {
	record.Record
	state decision
}

// brokers is a cluster in memory with one transactional producer, the group's offsets and a fetcher. Readers see what is
// committed, up to the first undecided record; a transaction's end takes an offset of its own. on, if it is set, is called at
// each of the producer's steps, and may make it fail or wait.
type brokers struct {
	mu      sync.Mutex
	changed *sync.Cond
	logs    map[record.TopicPartition][]entry
	offsets map[record.TopicPartition]record.Committed
	staged  map[record.TopicPartition]record.Committed // of the open transaction
	open    bool
	fences  int
	commits []map[record.TopicPartition]record.Offset
	sinks   map[record.TopicPartition]*feed
	on      func(ctx context.Context, step string) error
	wait    func(ctx context.Context, changelog record.TopicPartition) error // at each read of a restore
	lag     []string                                                         // restores: partition@from
}

type feed struct {
	task.Sink
	next record.Offset
}

func newBrokers() *brokers {
	b := &brokers{logs: map[record.TopicPartition][]entry{}, offsets: map[record.TopicPartition]record.Committed{}, sinks: map[record.TopicPartition]*feed{},
		staged: map[record.TopicPartition]record.Committed{}}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// step calls on outside the lock.
func (b *brokers) step(ctx context.Context, name string) error {
	b.mu.Lock()
	on := b.on
	b.mu.Unlock()
	if on == nil {
		return nil
	}
	return on(ctx, name)
}

func (b *brokers) Fence(ctx context.Context) error {
	if err := b.step(ctx, "fence"); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fences++
	b.end(false)
	return nil
}

func (b *brokers) Begin(ctx context.Context) error {
	if err := b.step(ctx, "begin"); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		return fmt.Errorf("a transaction is open: the producer was not fenced after a failure")
	}
	b.open = true
	return nil
}

func (b *brokers) Produce(ctx context.Context, boxes []*record.Outbox) (map[record.TopicPartition]record.Offset, error) {
	if err := b.step(ctx, "produce"); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ends := map[record.TopicPartition]record.Offset{}
	for _, box := range boxes {
		for c := box.Walk(); ; {
			r, ok := c.Next()
			if !ok {
				break
			}
			ends[box.To] = b.append(box.To, r, pending)
		}
	}
	return ends, b.afterwards(ctx, "produced")
}

// afterwards lets a step fail that has had its effect.
func (b *brokers) afterwards(ctx context.Context, name string) error {
	b.mu.Unlock()
	defer b.mu.Lock()
	return b.step(ctx, name)
}

func (b *brokers) CommitOffsets(ctx context.Context, offsets []eos.InputOffset, owned func() bool) error {
	if err := b.step(ctx, "offsets"); err != nil {
		return err
	}
	if !owned() {
		return fmt.Errorf("a task of the epoch was given up: %w", eos.ErrLost)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range offsets {
		b.staged[o.TopicPartition] = record.Committed{Next: o.Next, Metadata: o.Metadata}
	}
	return b.afterwards(ctx, "offset")
}

func (b *brokers) Commit(ctx context.Context) error {
	if err := b.step(ctx, "commit"); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(true)
	return b.afterwards(ctx, "committed")
}

// end decides the open transaction, if there is one.
func (b *brokers) end(commit bool) {
	if !b.open {
		return
	}
	b.open = false
	state := aborted
	if commit {
		state = committed
	}
	for tp, l := range b.logs {
		touched := false
		for i := range l {
			if l[i].state == pending {
				l[i].state, touched = state, true
			}
		}
		if touched {
			b.logs[tp] = append(l, entry{state: marker})
		}
	}
	if commit {
		offsets := map[record.TopicPartition]record.Offset{}
		for tp, c := range b.staged {
			b.offsets[tp], offsets[tp] = c, c.Next
		}
		b.commits = append(b.commits, offsets)
	}
	clear(b.staged)
	b.changed.Broadcast()
}

func (b *brokers) append(tp record.TopicPartition, r record.Record, state decision) record.Offset {
	r.Offset = record.Offset(len(b.logs[tp]))
	r.Key, r.Value, r.Headers = bytes.Clone(r.Key), bytes.Clone(r.Value), nil
	b.logs[tp] = append(b.logs[tp], entry{r, state})
	return r.Offset + 1
}

// StableOffsets waits while the open transaction has offsets of the partitions.
func (b *brokers) StableOffsets(ctx context.Context, tps []record.TopicPartition) (map[record.TopicPartition]record.Committed, error) {
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})
	defer stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	unstable := func(tp record.TopicPartition) bool { _, ok := b.staged[tp]; return ok }
	for slices.ContainsFunc(tps, unstable) && ctx.Err() == nil {
		b.changed.Wait()
	}
	found := map[record.TopicPartition]record.Committed{}
	for _, tp := range tps {
		found[tp] = record.Committed{Next: -1}
		if c, ok := b.offsets[tp]; ok {
			found[tp] = c
		}
	}
	return found, ctx.Err()
}

func (b *brokers) StartOffset(context.Context, record.TopicPartition) (record.Offset, error) {
	return 0, nil
}

func (b *brokers) EndOffset(_ context.Context, tp record.TopicPartition) (record.Offset, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return record.Offset(len(b.logs[tp])), nil
}

func (b *brokers) TopicID(context.Context, record.TopicPartition) (string, error) { return "", nil }

func (b *brokers) TombstoneRetention(context.Context, string) time.Duration { return 0 }

func (b *brokers) Changelog(tp record.TopicPartition) (changelog.Reader, func(), error) {
	return &reader{b, tp, false}, func() {}, nil
}

type reader struct {
	*brokers
	from  record.TopicPartition
	begun bool
}

func (r *reader) Read(ctx context.Context, from record.Offset) (record.Batch, error) {
	r.mu.Lock()
	wait := r.wait
	if !r.begun {
		r.begun = true
		r.lag = append(r.lag, fmt.Sprint(r.from, "@", from))
	}
	r.mu.Unlock()
	if wait != nil {
		if err := wait(ctx, r.from); err != nil {
			return record.Batch{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.read(r.from, from)
	for ; b.Next == from && ctx.Err() == nil; b = r.read(r.from, from) { // an undecided transaction
		stop := context.AfterFunc(ctx, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.changed.Broadcast()
		})
		r.changed.Wait()
		stop()
	}
	return b, ctx.Err()
}

// read returns what is committed from an offset on.
func (b *brokers) read(tp record.TopicPartition, from record.Offset) record.Batch {
	l := b.logs[tp]
	batch := record.Batch{From: tp, Next: from, End: record.Offset(len(l))}
	for ; batch.Next < batch.End && l[batch.Next].state != pending; batch.Next++ {
		if l[batch.Next].state == committed {
			batch.Records = append(batch.Records, l[batch.Next].Record)
		}
	}
	return batch
}

func (b *brokers) Add(tp record.TopicPartition, next record.Offset, sink task.Sink) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sinks[tp] = &feed{sink, next}
	b.feed(tp)
}

func (b *brokers) Remove(tp record.TopicPartition) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sinks, tp)
}

func (b *brokers) feed(tp record.TopicPartition) {
	if f := b.sinks[tp]; f != nil {
		batch := b.read(tp, f.next)
		f.next = batch.Next
		f.Offer(batch)
	}
}

// write appends records of outside to an input.
func (b *brokers) write(tp record.TopicPartition, keys ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range keys {
		b.append(tp, record.Record{Key: []byte(k), Value: []byte("v"), Timestamp: 1}, committed)
	}
	b.feed(tp)
}
