package kafka

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"millrace/devbroker"
	"millrace/eos"
	"millrace/record"
)

func (b *bench) fetcher(c *Client) *Fetcher {
	b.t.Helper()
	f, err := c.NewFetcher()
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(f.Close)
	return f
}

// fill writes numbered records to a partition, in several batches.
func (b *bench) fill(topic string, partition int32, first, n int) {
	b.t.Helper()
	for i := 0; i < n; i += 50 {
		var records []devbroker.Record
		for j := i; j < min(i+50, n); j++ {
			records = append(records, devbroker.Record{Value: fmt.Append(nil, first+j)})
		}
		if err := b.inspect.ProduceTo(b.ctx, topic, partition, records...); err != nil {
			b.t.Fatal(err)
		}
	}
}

// wantRun checks that a sink got the offsets from first to last-1 in order, each once, in batches that follow each other.
func (c *collector) wantRun(t *testing.T, first, last int64) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := int64(len(c.records)); got != last-first {
		t.Errorf("%d records, want %d", got, last-first)
		return
	}
	for i, r := range c.records {
		if r.Offset != first+int64(i) || string(r.Value) != fmt.Sprint(r.Offset) {
			t.Fatalf("record %d has offset %d and value %s", i, r.Offset, r.Value)
		}
	}
	next := first
	for _, b := range c.batches {
		if len(b.Records) > 0 && b.Records[0].Offset < next || b.Next < next {
			t.Errorf("a batch reaches from %v to %d, the one before it to %d", offsetsOf(b), b.Next, next)
		}
		next = b.Next
	}
}

func TestPartitionsAreReadInOrderWithoutGaps(t *testing.T) {
	b := newBench(t, 3)
	topic := b.topic("in", 6, nil)
	f := b.fetcher(b.connect(b.config()))
	sinks := make([]*collector, 6)
	for p := range sinks {
		sinks[p] = newCollector(0)
		b.fill(topic, int32(p), 0, 300)
		f.Add(record.TopicPartition{Topic: topic, Partition: int32(p)}, int64(10*p), sinks[p])
	}
	for p, s := range sinks {
		s.reach(b, 300)
		b.fill(topic, int32(p), 300, 100) // while it is read
		s.reach(b, 400)
		s.wantRun(t, int64(10*p), 400)
		s.mu.Lock()
		if end := s.batches[len(s.batches)-1].End; end != 400 {
			t.Errorf("the end is %d", end)
		}
		s.mu.Unlock()
	}
}

func TestThePositionPassesMarkersAndAbortedRecords(t *testing.T) {
	b := newBench(t, 1)
	c := b.caller(b.config(), b.topic("in", 1, nil))
	topic := b.topic("out", 1, nil)
	mustCommit(t, c, c.epoch(1, box(topic, 0, "committed"))) // 0, marker 1
	e := c.epoch(2, box(topic, 0, "aborted", "aborted"))     // 2 3, marker 4
	e.Owned = func() bool { return false }
	if _, err := c.commit(e, 10*time.Second); err == nil {
		t.Fatal("the epoch was committed")
	}
	if err := c.producer.Fence(b.ctx); err != nil {
		t.Fatal(err)
	}
	s := newCollector(0)
	b.fetcher(c.client).Add(record.TopicPartition{Topic: topic}, 0, s)
	s.reach(b, 5)
	if len(s.records) != 1 || string(s.records[0].Value) != "committed" {
		t.Errorf("%d records, the first %v", len(s.records), s.records[:1])
	}
	// An open transaction holds the position back, not the end.
	if err := c.producer.Begin(b.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.producer.Produce(b.ctx, []*record.Outbox{box(topic, 0, "open")}); err != nil {
		t.Fatal(err)
	}
	s.await(b, "the end moves", func() bool { return s.batches[len(s.batches)-1].End == 6 })
	if next := s.next(); next != 5 {
		t.Errorf("the position is %d, within an open transaction", next)
	}
}

func TestAnEmptyPartitionIsHeardOfOnce(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 2, nil)
	config := b.config()
	config.FetchMaxWait = 5 * time.Millisecond
	f := b.fetcher(b.connect(config))
	empty, busy := newCollector(0), newCollector(0)
	f.Add(record.TopicPartition{Topic: topic, Partition: 0}, 0, empty)
	f.Add(record.TopicPartition{Topic: topic, Partition: 1}, 0, busy)
	empty.reach(b, 0)
	for n := range 20 {
		b.fill(topic, 1, n, 1)
		busy.reach(b, int64(n+1))
	}
	empty.mu.Lock()
	defer empty.mu.Unlock()
	if len(empty.batches) != 1 {
		t.Errorf("%d batches of an empty partition", len(empty.batches))
	}
}

func TestAFullSinkPausesItsOwnPartitionOnly(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 2, nil)
	config := b.config()
	config.FetchMaxWait = 10 * time.Second // a resumed partition must not wait for it
	f := b.fetcher(b.connect(config))
	full, free := newCollector(1), newCollector(0)
	b.fill(topic, 0, 0, 10)
	f.Add(record.TopicPartition{Topic: topic, Partition: 0}, 0, full)
	full.reach(b, 10)
	f.Add(record.TopicPartition{Topic: topic, Partition: 1}, 0, free)
	b.fill(topic, 0, 10, 10)
	b.fill(topic, 1, 0, 200)
	free.reach(b, 200)
	full.mu.Lock()
	if next := full.next(); next != 10 {
		t.Errorf("a full sink was offered records up to %d", next)
	}
	full.records = nil
	full.mu.Unlock()
	f.Wake()
	begin := time.Now()
	full.reach(b, 20)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v to go on after the sink had room", took)
	}
}

func TestAddingAnewReadsFromThere(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 1, nil)
	tp := record.TopicPartition{Topic: topic}
	b.fill(topic, 0, 0, 100)
	f := b.fetcher(b.connect(b.config()))
	first, second := newCollector(0), newCollector(0)
	f.Add(tp, 0, first)
	first.reach(b, 100)
	f.Add(tp, 40, second)
	second.reach(b, 100)
	b.fill(topic, 0, 100, 10)
	second.reach(b, 110)
	second.wantRun(t, 40, 110)
	first.mu.Lock()
	defer first.mu.Unlock()
	if got := first.next(); got > 110 {
		t.Errorf("the old sink is at %d", got)
	}
}

func TestARemovedPartitionIsNotRead(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 2, nil)
	f := b.fetcher(b.connect(b.config()))
	removed, kept := newCollector(0), newCollector(0)
	f.Add(record.TopicPartition{Topic: topic, Partition: 0}, 0, removed)
	f.Add(record.TopicPartition{Topic: topic, Partition: 1}, 0, kept)
	removed.reach(b, 0)
	kept.reach(b, 0)
	f.Remove(record.TopicPartition{Topic: topic, Partition: 0})
	b.fill(topic, 1, 0, 1)
	kept.reach(b, 1) // the request that was on its way is answered
	b.fill(topic, 0, 0, 10)
	b.fill(topic, 1, 1, 10)
	kept.reach(b, 11)
	removed.mu.Lock()
	defer removed.mu.Unlock()
	if len(removed.records) > 0 {
		t.Errorf("%d records after Remove", len(removed.records))
	}
}

func TestAnOffsetThatIsNotInTheLogFailsItsPartitionOnly(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 3, nil)
	client := b.connect(b.config())
	f := b.fetcher(client)
	for p := range int32(3) {
		b.fill(topic, p, 0, 100)
	}
	if err := client.Purge(topic, map[int32]record.Offset{0: 60}); err != nil {
		t.Fatal(err)
	}
	early, late, good := newCollector(0), newCollector(0), newCollector(0)
	f.Add(record.TopicPartition{Topic: topic, Partition: 0}, 10, early)
	f.Add(record.TopicPartition{Topic: topic, Partition: 1}, 500, late)
	f.Add(record.TopicPartition{Topic: topic, Partition: 2}, 0, good)
	for s, want := range map[*collector]OffsetGone{
		early: {record.TopicPartition{Topic: topic, Partition: 0}, 10, 60, 100},
		late:  {record.TopicPartition{Topic: topic, Partition: 1}, 500, 0, 100},
	} {
		var gone *OffsetGone
		if err := s.fails(b); !errors.As(err, &gone) || *gone != want {
			t.Errorf("%v, want %v", err, &want)
		}
	}
	good.reach(b, 100)
	b.fill(topic, 2, 100, 10)
	good.reach(b, 110)
}

func TestAMissingTopicIsReported(t *testing.T) {
	b := newBench(t, 1)
	f := b.fetcher(b.connect(b.config()))
	f.patience = 50 * time.Millisecond
	s := newCollector(0)
	f.Add(record.TopicPartition{Topic: b.name + ".nowhere"}, 0, s)
	if err := s.fails(b); !strings.Contains(err.Error(), "nowhere-0 has not existed") {
		t.Error(err)
	}
}

func TestReadingFollowsTheLeaders(t *testing.T) {
	b := faultyBench(t, 3)
	topic := b.topic("in", 4, nil)
	f := b.fetcher(b.connect(b.config()))
	var sinks []*collector
	for p := range int32(4) {
		sinks = append(sinks, newCollector(0))
		f.Add(record.TopicPartition{Topic: topic, Partition: p}, 0, sinks[p])
	}
	const rounds = 10
	for round := range rounds {
		for p, s := range sinks {
			b.fill(topic, int32(p), 20*round, 20)
			if round%3 == p%3 {
				s.reach(b, int64(20*(round+1)))
			}
		}
		b.broker.MoveLeaders()
		if round%4 == 3 {
			b.broker.CutConnections()
		}
	}
	for _, s := range sinks {
		s.reach(b, 20*rounds)
		s.wantRun(t, 0, 20*rounds)
	}
}

func TestDeniedAccessFailsThePartition(t *testing.T) {
	b := faultyBench(t, 1)
	topic, other := b.topic("in", 1, nil), b.topic("other", 1, nil)
	f := b.fetcher(b.connect(b.config()))
	const topicAuthorizationFailed = 29
	defer b.broker.FailTopic(topic, devbroker.Fetch, devbroker.Always, topicAuthorizationFailed).Remove()
	denied, allowed := newCollector(0), newCollector(0)
	f.Add(record.TopicPartition{Topic: topic}, 0, denied)
	f.Add(record.TopicPartition{Topic: other}, 0, allowed)
	if err := denied.fails(b); !errors.Is(err, eos.ErrConfig) {
		t.Error(err)
	}
	b.fill(other, 0, 0, 10)
	allowed.reach(b, 10)
}

// spoiler is a dialer that damages what brokers say about records with the word POISON in them.
type spoiler struct {
	inner interface {
		Dial(network, address string) (net.Conn, error)
	}
}

type spoiledConn struct{ net.Conn }

func (d spoiler) Dial(network, address string) (net.Conn, error) {
	c, err := d.inner.Dial(network, address)
	return spoiledConn{c}, err
}

func (c spoiledConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	copy(p, bytes.ReplaceAll(p[:n], []byte("POISON"), []byte("POISOM")))
	return n, err
}

func spoil(c *sarama.Config) { c.Net.Proxy.Dialer = spoiler{c.Net.Proxy.Dialer} }

func TestADamagedBatchFailsItsPartitionOnly(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("in", 3, nil)
	client := b.connect(b.config())
	f := b.fetcher(client)
	spoil(f.config)
	for p := range int32(3) {
		b.fill(topic, p, 0, 100)
	}
	if err := b.inspect.ProduceTo(b.ctx, topic, 1, devbroker.Record{Value: []byte("POISON")}); err != nil {
		t.Fatal(err)
	}
	sinks := []*collector{newCollector(0), newCollector(0), newCollector(0)}
	for p, first := range []record.Offset{0, 100, 0} {
		f.Add(record.TopicPartition{Topic: topic, Partition: int32(p)}, first, sinks[p])
	}
	if err := sinks[1].fails(b); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), topic+"-1@100: ") {
		t.Error(err)
	}
	for _, p := range []int32{0, 2} {
		sinks[p].reach(b, 100)
		b.fill(topic, p, 100, 50)
		sinks[p].reach(b, 150)
		sinks[p].wantRun(t, 0, 150)
	}
	r, err := client.NewReader(record.TopicPartition{Topic: topic, Partition: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	spoil(r.config)
	if _, err := r.Read(b.ctx, 100); !errors.Is(err, errDamaged) {
		t.Errorf("a restore: %v", err)
	}
}
