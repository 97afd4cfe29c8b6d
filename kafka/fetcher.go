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

// Sink takes the batches of one partition. Its methods are called by one goroutine at a time. They must not block, nor
// hold a lock under which the Fetcher is called.
type Sink interface {
	// Full tells that no more should be fetched for now; Fetcher.Wake says that this has changed.
	Full() bool
	// Offer hands over the next batch. The first follows the first answer of the broker, even if it is empty; later
	// ones bring a new position or a new end.
	Offer(b record.Batch)
	// Fail tells that the partition is not read on: the offset is gone, access is denied, the log is damaged.
	Fail(err error)
}

// Fetcher reads partitions at read_committed, with one connection and one goroutine a broker. A partition whose sink is
// full is left out of the requests; it holds up nobody else.
type Fetcher struct {
	client   *Client
	config   *sarama.Config
	patience time.Duration // with a topic that does not exist

	mu      sync.Mutex
	sources map[record.TopicPartition]*fetchSource
	loops   map[int32]*brokerLoop
	closed  bool

	added  chan struct{} // one token: a partition waits for its first loop
	done   sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

// fetchSource is one partition that is read. Fetcher.mu guards broker; the rest is its loop's, or the placing
// goroutine's while it has no loop.
type fetchSource struct {
	tp      record.TopicPartition
	next    record.Offset
	end     record.Offset // high watermark that the sink has heard of; -1: none
	sink    Sink
	broker  int32     // of the loop that reads it; nobody: none's yet
	stale   bool      // the metadata that led to its last loop is out of date
	missing time.Time // since when its topic is not there
	strikes int       // answers in a row that could not be read
}

const nobody = -1

// missingTopicPatience is how long a topic may be missing before its reader hears of it: metadata of a new topic reach
// all brokers within seconds.
const missingTopicPatience = 30 * time.Second

// NewFetcher returns a fetcher without partitions. The caller closes it.
func (c *Client) NewFetcher() (*Fetcher, error) {
	config, err := c.config.sarama()
	if err != nil {
		return nil, err
	}
	config.Net.ReadTimeout = c.config.FetchMaxWait + 15*time.Second
	ctx, cancel := context.WithCancel(context.Background())
	f := &Fetcher{client: c, config: config, patience: missingTopicPatience, sources: map[record.TopicPartition]*fetchSource{},
		loops: map[int32]*brokerLoop{}, added: make(chan struct{}, 1), ctx: ctx, cancel: cancel}
	f.done.Go(f.place)
	return f, nil
}

// Add starts reading a partition at next. A partition that is already read is read anew from there; its old sink may
// still be offered the batch that is on its way, so the new sink must be another one.
func (f *Fetcher) Add(tp record.TopicPartition, next record.Offset, sink Sink) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sources[tp] = &fetchSource{tp: tp, next: next, end: -1, sink: sink, broker: nobody}
	signal(f.added)
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
		signal(l.wake)
	}
}

// Close stops all reading and waits for it, at most until the answers that are under way have come.
func (f *Fetcher) Close() {
	f.mu.Lock()
	f.closed = true
	f.cancel()
	f.mu.Unlock()
	f.done.Wait()
}

func signal(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// place finds leaders for partitions that have none, until the fetcher is closed: at once for new ones, ten times a
// second for those that have lost theirs.
func (f *Fetcher) place() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		retry := false
		select {
		case <-f.ctx.Done():
			return
		case <-f.added:
		case <-tick.C:
			retry = true
		}
		refreshed := map[string]bool{}
		for _, s := range f.unplaced(retry) {
			if s.stale && !refreshed[s.tp.Topic] {
				refreshed[s.tp.Topic] = true
				_ = f.client.sarama.RefreshMetadata(s.tp.Topic) // Leader tells what came of it
			}
			// The lookup may ask a broker, so it happens without mu.
			leader, err := f.client.sarama.Leader(s.tp.Topic, s.tp.Partition)
			if err != nil {
				f.unknown(s, err)
				continue
			}
			s.missing = time.Time{}
			f.assign(s, leader)
		}
	}
}

// unplaced lists the partitions without a loop; those that wait for new metadata only on a retry.
func (f *Fetcher) unplaced(retry bool) []*fetchSource {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []*fetchSource
	for _, s := range f.sources {
		if s.broker == nobody && (retry || !s.stale) {
			found = append(found, s)
		}
	}
	return found
}

// unknown notes that a partition has no leader. That lasts for a moment in every election; a topic that is not there for
// long will not come back.
func (f *Fetcher) unknown(s *fetchSource, err error) {
	s.stale = true
	switch {
	case kindOf(err) == configuration:
		f.fail(s, reaction("find the leader of "+s.tp.String(), f.client.config.denied(err, "Describe", s.tp.Topic)))
	case !errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		s.missing = time.Time{}
	case s.missing.IsZero():
		s.missing = time.Now()
	case time.Since(s.missing) > f.patience:
		f.fail(s, reaction(fmt.Sprintf("%s has not existed for %v; create the topic, or correct its name", s.tp, f.patience), err))
	}
}

// assign gives a partition to its leader's loop, which is started where it is missing.
func (f *Fetcher) assign(s *fetchSource, leader *sarama.Broker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.sources[s.tp] != s {
		return
	}
	s.broker = leader.ID()
	l := f.loops[s.broker]
	if l == nil {
		l = &brokerLoop{fetcher: f, id: s.broker, wake: make(chan struct{}, 1)}
		f.loops[s.broker] = l
		f.done.Go(l.run)
	}
	l.addr = leader.Addr() // a broker may come back under another address
	signal(l.wake)
}

// lose gives a partition back for place to find its leader. Its loop does not touch it afterwards.
func (f *Fetcher) lose(s *fetchSource) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.stale = true
	s.broker = nobody
}

// current tells whether s is still to be read: it may have been removed, or added anew, while an answer was on its way.
func (f *Fetcher) current(s *fetchSource) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sources[s.tp] == s
}

// fail ends the reading of a partition.
func (f *Fetcher) fail(s *fetchSource, err error) {
	f.mu.Lock()
	current := f.sources[s.tp] == s
	if current {
		delete(f.sources, s.tp)
	}
	f.mu.Unlock()
	if current {
		s.sink.Fail(err)
	}
}
