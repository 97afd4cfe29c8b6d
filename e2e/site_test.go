package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/devbroker"
)

const brokersVariable = "MILLRACE_TEST_BROKERS"

// site is the cluster that a test works on.
type site struct {
	t      *testing.T
	ctx    context.Context
	broker *devbroker.Broker // nil: a real Kafka
	inside bool              // topics are created inside the broker, since the client may not log in
	client *devbroker.Client
	login  []kgo.Opt // of the client
	addr   string
}

// seed is what every test draws from.
func seed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("MILLRACE_E2E_SEED"), 10, 64); err == nil {
		return n
	}
	return 1
}

func realKafka() bool { return os.Getenv(brokersVariable) != "" }

// newSite connects to the real Kafka if there is one, and otherwise starts a broker for this test alone.
func newSite(t *testing.T) *site {
	if realKafka() {
		return (&site{t: t, addr: os.Getenv(brokersVariable)}).connect(4 * time.Minute)
	}
	return newDevSite(t, 1)
}

// newDevSite starts brokers that can be broken. A real Kafka cannot be, so the test is skipped there.
func newDevSite(t *testing.T, brokers int) *site {
	t.Helper()
	if realKafka() {
		t.Skip("the broker has to be broken on purpose, which only works with the one inside the process")
	}
	b, err := devbroker.Start(devbroker.Options{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return (&site{t: t, broker: b, addr: b.Addr()}).connect(3 * time.Minute)
}

func (s *site) connect(limit time.Duration) *site {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	s.t.Cleanup(cancel)
	client, err := devbroker.NewClient(s.addr, s.login...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.ctx, s.client = ctx, client
	s.t.Cleanup(func() { s.client.Close() })
	return s
}

var applications atomic.Int64

// newApplication is a name that no run has had, so that tests can share a cluster and be repeated on it.
func newApplication() string {
	return fmt.Sprintf("e2e-%d-%d", time.Now().UnixNano()/1000, applications.Add(1))
}

// topic creates a topic, which is deleted with the test.
func (s *site) topic(name string, partitions int32) {
	s.t.Helper()
	if s.inside {
		if err := s.broker.CreateTopic(name, partitions, nil); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	if err := s.client.CreateTopic(s.ctx, name, partitions, map[string]string{"retention.ms": "-1"}); err != nil {
		s.t.Fatal(err)
	}
	if !realKafka() {
		return
	}
	s.t.Cleanup(func() { s.remove(name) })
	poll(s.t, 20*time.Second, "the new topic is known", func() bool {
		ends, err := s.client.EndOffsets(s.ctx, name)
		return err == nil && len(ends) == int(partitions)
	})
}

// remove leaves a shared cluster as it was found. What cannot be deleted costs only room.
func (s *site) remove(topic string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.client.DeleteTopic(ctx, topic); err != nil {
		s.t.Log(err)
	}
}

// poll waits until holds says so; it fails the test after the limit.
func poll(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	if !polled(limit, holds) {
		t.Fatalf("not within %s: %s", limit, what)
	}
}

func polled(limit time.Duration, holds func() bool) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}
