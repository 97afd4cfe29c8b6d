package devbroker

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a broker with one client, both closed with the test.
func bench(t *testing.T, o Options) (*Broker, *Client, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	b, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b, newClient(t, b), ctx
}

func newClient(t *testing.T, b *Broker) *Client {
	t.Helper()
	c, err := NewClient(b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// transactor is a transactional producer that gives up soon, so that injected faults are seen.
func transactor(t *testing.T, b *Broker, id string) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.TransactionalID(id), kgo.RequestRetries(1),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RetryBackoffFn(func(int) time.Duration { return 0 }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func transact(t *testing.T, c *kgo.Client, commit kgo.TransactionEndTry, topic, value string) error {
	t.Helper()
	if err := c.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return c.EndTransaction(t.Context(), commit)
}

func values(records []Record) []string {
	var all []string
	for _, r := range records {
		all = append(all, string(r.Value))
	}
	return all
}
