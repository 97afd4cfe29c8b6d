package kafka

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"millrace/devbroker"
	"millrace/eos"
	"millrace/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a cluster with what a test needs to speak to it. With MILLRACE_TEST_BROKERS=host:port the tests that inject no
// faults run against that cluster.
type bench struct {
	t       testing.TB
	ctx     context.Context
	addr    string
	broker  *devbroker.Broker // nil: a real cluster
	inspect *devbroker.Client
	name    string // of topics, group and transactional id
}

var benches atomic.Int64

// newBench is for tests that run against any cluster.
func newBench(t testing.TB, brokers int) *bench {
	t.Helper()
	if addr := os.Getenv("MILLRACE_TEST_BROKERS"); addr != "" {
		return benchAt(t, addr, nil)
	}
	return faultyBench(t, brokers)
}

// faultyBench is for tests that need the development broker's faults.
func faultyBench(t testing.TB, brokers int) *bench {
	t.Helper()
	if os.Getenv("MILLRACE_TEST_BROKERS") != "" {
		t.Skip("needs the development broker's faults")
	}
	broker, err := devbroker.Start(devbroker.Options{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return benchAt(t, broker.Addr(), broker)
}

func benchAt(t testing.TB, addr string, broker *devbroker.Broker) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	inspect, err := devbroker.NewClient(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inspect.Close)
	name := strings.NewReplacer("/", ".", " ", "_", "=", "_", ",", "_", "{", "", "}", "", ":", "_").Replace(t.Name())
	name = fmt.Sprintf("%s.%d.%d", name[max(0, len(name)-100):], time.Now().UnixMilli(), benches.Add(1))
	return &bench{t: t, ctx: ctx, addr: addr, broker: broker, inspect: inspect, name: name}
}

// topic creates a topic of the test's own.
func (b *bench) topic(suffix string, partitions int32, configs map[string]string) string {
	b.t.Helper()
	topic := b.name + "." + suffix
	if err := b.inspect.CreateTopic(b.ctx, topic, partitions, configs); err != nil {
		b.t.Fatal(err)
	}
	return topic
}

func (b *bench) config() Config {
	return Config{Brokers: strings.Split(b.addr, ","), ClientID: "test", Group: b.name, TransactionalID: b.name,
		SessionTimeout: 6 * time.Second, Heartbeat: 50 * time.Millisecond, RebalanceTimeout: 5 * time.Second,
		FetchMaxBytes: 8 << 20, FetchMaxWait: 200 * time.Millisecond, MaxBatchBytes: 64 << 10, TransactionTimeout: 4 * time.Second, ExactlyOnce: true}
}

func (b *bench) connect(c Config) *Client {
	b.t.Helper()
	client, err := Connect(c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := client.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return client
}

// committed returns the committed records of a topic, once no transaction is open on it: a real broker answers EndTxn
// before the markers are written.
func (b *bench) committed(topic string) []devbroker.Record {
	b.t.Helper()
	records, err := b.inspect.WaitCommitted(b.ctx, topic, func([]devbroker.Record) bool {
		ends, err := b.inspect.EndOffsets(b.ctx, topic)
		if err != nil {
			return false
		}
		stable, err := b.inspect.StableOffsets(b.ctx, topic)
		return err == nil && maps.Equal(ends, stable)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if records, err = b.inspect.ReadCommitted(b.ctx, topic); err != nil {
		b.t.Fatal(err)
	}
	return records
}

// within fails the test with what when done does not come in time.
func (b *bench) within(done <-chan struct{}, what string) {
	b.t.Helper()
	select {
	case <-done:
	case <-b.ctx.Done():
		b.t.Fatalf("%s: %v", what, b.ctx.Err())
	}
}

// caller plays the part of the process around a Producer: one member of the group, one epoch after the other, and the
// one recovery path.
type caller struct {
	*bench
	client   *Client
	member   *groupMember
	producer *Producer
	input    string
	recovers int // how often an epoch had to be decided from what the brokers say
}

func (b *bench) caller(c Config, input string) *caller {
	b.t.Helper()
	client := b.connect(c)
	m := b.join(client, input)
	m.assigned()
	p, err := NewProducer(client, m.Membership)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(p.Close)
	return &caller{bench: b, client: client, member: m, producer: p, input: input}
}

// epoch is the n-th epoch of a caller; it writes its number and moves the input's offset to it.
func (c *caller) epoch(n int64, outputs ...*record.Outbox) eos.Epoch {
	return eos.Epoch{Number: n, Owned: func() bool { return true }, Parts: []eos.Part{{Outputs: outputs,
		Offsets: []eos.InputOffset{{TopicPartition: record.TopicPartition{Topic: c.input}, Next: n, Metadata: fmt.Sprintf("epoch %d", n)}}}}}
}

// commit carries the epoch through within a bound.
func (c *caller) commit(e eos.Epoch, bound time.Duration) (eos.Result, error) {
	ctx, cancel := context.WithTimeout(c.ctx, bound)
	defer cancel()
	return eos.Commit(ctx, c.producer, e)
}

// offset returns the group's stable offset of the input.
func (c *caller) offset() record.Committed {
	c.t.Helper()
	tp := record.TopicPartition{Topic: c.input}
	offsets, err := c.client.StableOffsets(c.ctx, []record.TopicPartition{tp})
	if err != nil {
		c.t.Fatal(err)
	}
	return offsets[tp]
}

// testSeed is a seed that a person wants to be used; 0: none.
func testSeed() uint64 {
	n, _ := strconv.ParseUint(os.Getenv("MILLRACE_TEST_SEED"), 10, 64) // What is no number is no wish.
	return n
}

func box(topic string, partition int32, values ...string) *record.Outbox {
	o := &record.Outbox{To: record.TopicPartition{Topic: topic, Partition: partition}}
	for _, v := range values {
		o.Append(nil, []byte(v), nil, time.Now().UnixMilli())
	}
	return o
}

func values(records []devbroker.Record) []string {
	var all []string
	for _, r := range records {
		all = append(all, string(r.Value))
	}
	return all
}

// groupMember is a Membership that runs, with all that it has heard.
type groupMember struct {
	*Membership
	bench *bench
	ran   chan struct{} // closed when Run has returned
	err   error         // of Run
	stop  func()

	mu      sync.Mutex
	changed chan struct{}
	owned   []record.TopicPartition
	calls   int   // of Assigned
	present int32 // generation
	losses  []error
	hook    func(owned []record.TopicPartition, generation int32) // called in Assigned
}

// join starts a member; it is stopped with the test, or by stop.
func (b *bench) join(client *Client, topics ...string) *groupMember {
	b.t.Helper()
	return b.joinWith(client, nil, topics...)
}

func (b *bench) joinWith(client *Client, hook func([]record.TopicPartition, int32), topics ...string) *groupMember {
	b.t.Helper()
	g := &groupMember{bench: b, changed: make(chan struct{}), ran: make(chan struct{}), hook: hook}
	m, err := client.NewMembership(topics, &spread{client: client, topics: topics}, g)
	if err != nil {
		b.t.Fatal(err)
	}
	g.Membership = m
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(g.ran)
		g.err = m.Run(ctx)
	}()
	g.stop = sync.OnceFunc(func() {
		cancel()
		<-g.ran
		if err := m.Close(); err != nil {
			b.t.Logf("close membership: %v", err)
		}
	})
	b.t.Cleanup(g.stop)
	return g
}

func (g *groupMember) Assigned(partitions []record.TopicPartition, generation int32) {
	g.mu.Lock()
	hook := g.hook
	g.mu.Unlock()
	if hook != nil {
		hook(partitions, generation)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owned, g.present = partitions, generation
	g.calls++
	g.tell()
}

func (g *groupMember) Lost(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.owned = nil
	g.losses = append(g.losses, cause)
	g.tell()
}

func (g *groupMember) tell() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// await waits until enough holds of what the member has heard.
func (g *groupMember) await(what string, enough func() bool) {
	g.bench.t.Helper()
	for {
		g.mu.Lock()
		ok, changed := enough(), g.changed
		g.mu.Unlock()
		if ok {
			return
		}
		g.bench.within(changed, "wait until "+what)
	}
}

// assigned waits until the member owns something.
func (g *groupMember) assigned() { g.bench.t.Helper(); g.owns(1) }

func (g *groupMember) owns(atLeast int) {
	g.bench.t.Helper()
	g.await(fmt.Sprintf("%d partitions are assigned", atLeast), func() bool { return len(g.owned) >= atLeast })
}

// spread is a planner that deals the partitions out evenly, moves as few as it can, and takes none away from an owner
// within one generation.
type spread struct {
	client *Client
	topics []string
}

func (s *spread) UserData() []byte { return nil }

func (s *spread) Plan(members []GroupMember) (map[string][]record.TopicPartition, error) {
	owner := map[record.TopicPartition]string{}
	for _, m := range members {
		for _, tp := range m.Owned {
			owner[tp] = m.ID
		}
	}
	plan := map[string][]record.TopicPartition{}
	n := 0
	for _, topic := range s.topics {
		partitions, err := s.client.Partitions(topic)
		if err != nil {
			return nil, err
		}
		for p := range partitions {
			tp := record.TopicPartition{Topic: topic, Partition: p}
			to := members[n%len(members)].ID
			n++
			if owner[tp] == "" || owner[tp] == to {
				plan[to] = append(plan[to], tp)
			}
		}
	}
	return plan, nil
}
