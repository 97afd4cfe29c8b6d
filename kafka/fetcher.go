package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"millrace/record"

	"github.com/IBM/sarama"
)

// Sink takes the batches of one partition. Its methods are called by one goroutine at a time and must not block.
type Sink interface {
	// Full tells that no more should be fetched for now; Fetcher.Wake says that this has changed.
	Full() bool
	Offer(b record.Batch)
	// Fail tells that the partition cannot be read on: the offset is gone, or access is denied.
	Fail(err error)
}

// Fetcher reads partitions at read_committed, with one connection and one goroutine a broker. A partition whose sink is
// full is left out of the requests; it holds up nobody else.
type Fetcher struct {
	client *Client
	config *sarama.Config

	mu      sync.Mutex
	sources map[record.TopicPartition]*fetchSource
	loops   map[int32]*brokerLoop
	closed  bool
	done    sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc
}

type fetchSource struct {
	tp     record.TopicPartition
	next   record.Offset // only its loop writes it
	sink   Sink
	broker int32 // of the loop that reads it; -1: nobody's yet
	strike int   // damaged answers at this offset
}

const nobody = -1

// OffsetGone says that the log no longer has, or does not yet have, the offset that we need.
type OffsetGone struct {
	record.TopicPartition
	Offset, Start, End record.Offset
}

func (e *OffsetGone) Error() string {
	return fmt.Sprintf("%s: offset %d is not in the log, which has %d to %d: records were deleted before they were read, or the topic was made anew; "+
		"set the group's offset by hand, or remove it to begin at the source's start position", e.TopicPartition, e.Offset, e.Start, e.End)
}

// NewFetcher returns a fetcher without partitions.
func (c *Client) NewFetcher() (*Fetcher, error) {
	config, err := c.config.sarama()
	if err != nil {
		return nil, err
	}
	config.Net.ReadTimeout = c.config.FetchMaxWait + 15*time.Second
	ctx, cancel := context.WithCancel(context.Background())
	f := &Fetcher{client: c, config: config, sources: map[record.TopicPartition]*fetchSource{}, loops: map[int32]*brokerLoop{}, ctx: ctx, cancel: cancel}
	f.done.Go(f.place)
	return f, nil
}

// Add starts reading a partition at next. A partition that is already read is read anew from there.
func (f *Fetcher) Add(tp record.TopicPartition, next record.Offset, sink Sink) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &fetchSource{tp: tp, next: next, sink: sink, broker: nobody}
	f.sources[tp] = s
	if !f.closed {
		f.assign(s)
	}
}

// Remove stops reading a partition. A batch that is on its way may still be offered.
func (f *Fetcher) Remove(tp record.TopicPartition) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sources, tp)
}

// Wake makes the loops look at the sinks again.
func (f *Fetcher) Wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.loops {
		l.poke()
	}
}

// Close stops all reading and waits for it.
func (f *Fetcher) Close() {
	f.mu.Lock()
	f.closed = true
	f.cancel()
	for _, l := range f.loops {
		l.poke()
	}
	f.mu.Unlock()
	f.done.Wait()
}

// place finds leaders for partitions that have none, until the fetcher is closed.
func (f *Fetcher) place() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-tick.C:
		}
		f.mu.Lock()
		topics := map[string]bool{}
		for _, s := range f.sources {
			if s.broker == nobody {
				topics[s.tp.Topic] = true
			}
		}
		f.mu.Unlock()
		for t := range topics {
			_ = f.client.sarama.RefreshMetadata(t) // the next tick tries again
		}
		f.mu.Lock()
		for _, s := range f.sources {
			if s.broker == nobody && !f.closed {
				f.assign(s)
			}
		}
		f.mu.Unlock()
	}
}

// assign gives a partition to its leader's loop, started where it is missing. It is called with mu held.
func (f *Fetcher) assign(s *fetchSource) {
	leader, err := f.client.sarama.Leader(s.tp.Topic, s.tp.Partition)
	if err != nil {
		return // place tries again
	}
	s.broker = leader.ID()
	l := f.loops[s.broker]
	if l == nil {
		l = &brokerLoop{fetcher: f, id: s.broker, addr: leader.Addr(), wake: make(chan struct{}, 1)}
		f.loops[s.broker] = l
		f.done.Go(l.run)
	}
	l.poke()
}

// lose gives a partition back for place to find its leader.
func (f *Fetcher) lose(s *fetchSource) {
	f.mu.Lock()
	s.broker = nobody
	f.mu.Unlock()
}

// brokerLoop fetches from one broker.
type brokerLoop struct {
	fetcher *Fetcher
	id      int32
	addr    string
	wake    chan struct{}
	broker  *sarama.Broker
	pause   backoff
}

func (l *brokerLoop) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *brokerLoop) run() {
	defer func() { closeBroker(l.broker) }()
	for l.fetcher.ctx.Err() == nil {
		ready := l.ready()
		if len(ready) == 0 {
			select {
			case <-l.fetcher.ctx.Done():
			case <-l.wake:
			}
			continue
		}
		if err := l.fetch(ready); err != nil {
			closeBroker(l.broker)
			l.broker = nil
			if kindOf(err) == configuration {
				for _, s := range ready {
					s.sink.Fail(reaction("fetch "+s.tp.String(), err))
				}
			}
			for _, s := range ready {
				l.fetcher.lose(s) // the broker may be gone, and its partitions with it
			}
			_ = l.pause.wait(l.fetcher.ctx) // ends early only with ctx, which the loop sees
		}
	}
}

// ready lists the partitions of this broker that have room.
func (l *brokerLoop) ready() []*fetchSource {
	l.fetcher.mu.Lock()
	defer l.fetcher.mu.Unlock()
	var ready []*fetchSource
	for _, s := range l.fetcher.sources {
		if s.broker == l.id && !s.sink.Full() {
			ready = append(ready, s)
		}
	}
	return ready
}

func (l *brokerLoop) fetch(ready []*fetchSource) error {
	if l.broker == nil {
		b, err := open(l.addr, l.fetcher.config)
		if err != nil {
			return err
		}
		l.broker = b
	}
	c := l.fetcher.client.config
	request := &sarama.FetchRequest{Version: 12, MaxWaitTime: int32(c.FetchMaxWait.Milliseconds()), MinBytes: 1,
		MaxBytes: c.FetchMaxBytes, Isolation: sarama.ReadCommitted, SessionEpoch: -1}
	for _, s := range ready {
		request.AddBlock(s.tp.Topic, s.tp.Partition, s.next, partitionMaxBytes, -1)
	}
	response, err := l.broker.Fetch(request)
	if err != nil {
		return err
	}
	if err := asError(sarama.KError(response.ErrorCode)); err != nil {
		return err
	}
	l.pause = backoff{}
	for _, s := range ready {
		l.take(s, response.GetBlock(s.tp.Topic, s.tp.Partition))
	}
	return nil
}

const partitionMaxBytes = 1 << 20

func (l *brokerLoop) take(s *fetchSource, block *sarama.FetchResponseBlock) {
	if block == nil {
		return
	}
	switch err := asError(block.Err); {
	case err == nil:
		b, err := decode(s.tp, s.next, block)
		if err != nil {
			if s.strike++; s.strike >= 5 {
				s.sink.Fail(fmt.Errorf("%s@%d: the broker's answer cannot be read: %w", s.tp, s.next, err))
				l.fetcher.Remove(s.tp)
			}
			return
		}
		s.strike = 0
		if b.Next == s.next && len(b.Records) == 0 && b.End == 0 {
			return
		}
		s.next = b.Next
		l.offer(s, b)
	case errors.Is(err, sarama.ErrOffsetOutOfRange):
		s.sink.Fail(&OffsetGone{s.tp, s.next, block.LogStartOffset, block.HighWaterMarkOffset})
		l.fetcher.Remove(s.tp)
	case kindOf(err) == configuration:
		s.sink.Fail(reaction("fetch "+s.tp.String(), err))
		l.fetcher.Remove(s.tp)
	default:
		l.fetcher.lose(s)
	}
}

// offer hands a batch over unless the partition was removed or added anew meanwhile.
func (l *brokerLoop) offer(s *fetchSource, b record.Batch) {
	l.fetcher.mu.Lock()
	current := l.fetcher.sources[s.tp] == s
	l.fetcher.mu.Unlock()
	if current {
		s.sink.Offer(b)
	}
}
