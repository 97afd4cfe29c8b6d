package kafka

import (
	"errors"
	"fmt"
	"time"

	"millrace/record"

	"github.com/IBM/sarama"
)

// brokerLoop fetches from one broker.
type brokerLoop struct {
	fetcher *Fetcher
	id      int32
	addr    string // guarded by Fetcher.mu
	wake    chan struct{}

	broker *sarama.Broker
	tap    *tap // of its connection
	dialed string
	pause  backoff
}

const (
	partitionMaxBytes = 1 << 20
	// resumeWait is how long a request may wait at the broker while a full partition is left out of it: that one
	// cannot join in before the answer comes.
	resumeWait = 10 * time.Millisecond
	// maxStrikes is how often an answer may be unreadable at the same offset before the log counts as damaged.
	maxStrikes = 5
)

// turn is what one request asks for.
type turn struct {
	sources []*fetchSource
	addr    string
	held    bool // a full partition is left out
}

func (l *brokerLoop) run() {
	defer func() { closeBroker(l.broker) }()
	for l.fetcher.ctx.Err() == nil {
		t := l.next()
		if len(t.sources) == 0 {
			select {
			case <-l.fetcher.ctx.Done():
			case <-l.wake:
			}
			continue
		}
		if err := l.fetch(t); err != nil {
			closeBroker(l.broker)
			l.broker = nil
			l.failed(t, err)
			_ = l.pause.wait(l.fetcher.ctx) // ends early only with ctx, which the loop sees
		}
	}
}

// next lists the partitions of this broker that have room. One whose last answer was unreadable is asked for alone: it
// spoils the answers of nobody else then, and a batch of any size is sent whole.
func (l *brokerLoop) next() turn {
	f := l.fetcher
	f.mu.Lock()
	defer f.mu.Unlock()
	t := turn{addr: l.addr}
	for _, s := range f.sources {
		switch {
		case s.broker != l.id:
		case s.sink.Full():
			t.held = true
		case s.strikes > 0:
			return turn{sources: []*fetchSource{s}, addr: l.addr}
		default:
			t.sources = append(t.sources, s)
		}
	}
	return t
}

func (l *brokerLoop) fetch(t turn) error {
	if l.broker != nil && l.dialed != t.addr {
		closeBroker(l.broker)
		l.broker = nil
	}
	if l.broker == nil {
		b, tap, err := openTapped(t.addr, l.fetcher.config)
		if err != nil {
			return err
		}
		l.broker, l.tap, l.dialed = b, tap, t.addr
	}
	c := l.fetcher.client.config
	wait := c.FetchMaxWait
	if t.held {
		wait = min(wait, resumeWait)
	}
	request := &sarama.FetchRequest{Version: 12, MaxWaitTime: int32(wait.Milliseconds()), MinBytes: 1,
		MaxBytes: c.FetchMaxBytes, Isolation: sarama.ReadCommitted, SessionEpoch: -1}
	for _, s := range t.sources {
		request.AddBlock(s.tp.Topic, s.tp.Partition, s.next, partitionMaxBytes, -1)
	}
	response, err := l.fetcher.client.fetch(l.broker, request)
	if err != nil {
		return err
	}
	l.pause = backoff{}
	for _, s := range t.sources {
		l.take(s, response.GetBlock(s.tp.Topic, s.tp.Partition))
	}
	return nil
}

// failed deals with an answer that did not come, or is no use for any of its partitions.
func (l *brokerLoop) failed(t turn, err error) {
	for _, s := range t.sources {
		switch {
		case kindOf(err) == configuration:
			l.fetcher.fail(s, reaction("fetch "+s.tp.String(), l.fetcher.client.config.denied(err, "Read", s.tp.Topic)))
		case errors.Is(err, errUnreadable): // by whose batch is found out one by one
			l.strike(s, err)
		default:
			l.fetcher.lose(s) // the broker may be gone, and its partitions with it
		}
	}
}

// strike counts an unreadable answer.
func (l *brokerLoop) strike(s *fetchSource, err error) {
	if errors.Is(err, errUnreadable) {
		err = fmt.Errorf("%w (%w)", errDamaged, err)
	}
	if s.strikes++; s.strikes >= maxStrikes || errors.Is(err, errOldFormat) {
		l.fetcher.fail(s, fmt.Errorf("%s@%d: %w", s.tp, s.next, err))
	}
}

func (l *brokerLoop) take(s *fetchSource, block *sarama.FetchResponseBlock) {
	if block == nil {
		l.fetcher.lose(s)
		return
	}
	switch err := asError(block.Err); {
	case err == nil:
		b, err := l.tap.decode(s.tp, s.next, block)
		if err != nil {
			l.strike(s, err)
			return
		}
		s.strikes = 0
		l.offer(s, b)
	case errors.Is(err, sarama.ErrOffsetOutOfRange):
		l.outOfRange(s)
	case kindOf(err) == configuration:
		l.fetcher.fail(s, reaction("fetch "+s.tp.String(), l.fetcher.client.config.denied(err, "Read", s.tp.Topic)))
	default:
		l.fetcher.lose(s)
	}
}

// offer hands a batch over if it tells the sink anything.
func (l *brokerLoop) offer(s *fetchSource, b record.Batch) {
	if b.Next == s.next && b.End == s.end || !l.fetcher.current(s) {
		return
	}
	s.next, s.end = b.Next, b.End
	s.sink.Offer(b)
}

// outOfRange asks how far the log reaches before it believes the answer: a leader that has just been elected may be
// wrong about it.
func (l *brokerLoop) outOfRange(s *fetchSource) {
	if err := l.fetcher.client.gone(l.fetcher.ctx, s.tp, s.next); err != nil {
		l.fetcher.fail(s, err)
		return
	}
	l.fetcher.lose(s)
}
