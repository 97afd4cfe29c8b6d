package kafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"millrace/devbroker"
	"millrace/eos"
	"millrace/record"
)

var compacted = map[string]string{"cleanup.policy": "compact"}

func TestInternalTopicsAreCreatedOnceAndNeverAltered(t *testing.T) {
	b := newBench(t, 1)
	c := b.connect(b.config())
	spec := TopicSpec{Name: b.name + ".changelog", Partitions: 3, Replication: 1, Config: compacted}
	created, err := c.EnsureTopic(b.ctx, spec)
	if err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	if n, err := c.Partitions(spec.Name); err != nil || n != 3 {
		t.Errorf("%d partitions, %v", n, err)
	}
	for range 2 {
		if created, err = c.EnsureTopic(b.ctx, spec); err != nil || created {
			t.Errorf("again: created %v, %v", created, err)
		}
	}
	wider := spec
	wider.Partitions = 4
	if _, err = c.EnsureTopic(b.ctx, wider); err == nil || !strings.Contains(err.Error(), spec.Name+" has 3 partitions, the job needs 4") {
		t.Errorf("other partitions: %v", err)
	}
	other := spec
	other.Config = map[string]string{"cleanup.policy": "delete"}
	if _, err = c.EnsureTopic(b.ctx, other); err == nil || !strings.Contains(err.Error(), "has cleanup.policy=compact, and must have delete") {
		t.Errorf("other policy: %v", err)
	}
	if n, err := c.Partitions(spec.Name); err != nil || n != 3 {
		t.Errorf("it has %d partitions now, %v", n, err)
	}
}

func TestATopicThatCannotBeCreatedSaysWhy(t *testing.T) {
	b := newBench(t, 1)
	c := b.connect(b.config())
	if b.broker != nil { // it takes any replication factor of itself
		const invalidReplicationFactor = 38
		b.broker.Fail(devbroker.CreateTopics, 1, invalidReplicationFactor)
	}
	_, err := c.EnsureTopic(b.ctx, TopicSpec{Name: b.name, Partitions: 1, Replication: 99, Config: compacted})
	if !errors.Is(err, eos.ErrConfig) || !strings.Contains(err.Error(), "create topic "+b.name+" with 1 partitions, replication factor 99, map[cleanup.policy:compact]") {
		t.Errorf("%v", err)
	}
}

// Brokers with ZooKeeper delete a topic long after they said so: meanwhile it cannot be created, and nobody knows it.
func TestATopicThatIsBeingDeletedIsCreatedAfterwards(t *testing.T) {
	b := faultyBench(t, 1)
	c := b.connect(b.config())
	const alreadyExists = 36
	b.broker.Fail(devbroker.CreateTopics, 2, alreadyExists)
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	spec := TopicSpec{Name: b.name + ".changelog", Partitions: 3, Replication: 1, Config: compacted}
	if created, err := c.EnsureTopic(ctx, spec); err != nil || !created {
		t.Fatalf("created %v, %v", created, err)
	}
	if n, err := c.Partitions(spec.Name); err != nil || n != 3 {
		t.Errorf("%d partitions, %v", n, err)
	}
}

func TestCreationSurvivesABusyCluster(t *testing.T) {
	b := faultyBench(t, 3)
	c := b.connect(b.config())
	const notController, requestTimedOut = 41, 7
	for _, code := range []int16{notController, requestTimedOut} {
		b.broker.Fail(devbroker.CreateTopics, 1, code)
		spec := TopicSpec{Name: b.name + "." + string(rune('a'+code)), Partitions: 2, Replication: 1, Config: compacted}
		if _, err := c.EnsureTopic(b.ctx, spec); err != nil {
			t.Errorf("code %d: %v", code, err)
		}
	}
}

func TestStableOffsetsWaitForTheOpenTransaction(t *testing.T) {
	b := newBench(t, 1)
	c := b.caller(b.config(), b.topic("in", 2, nil))
	tp := record.TopicPartition{Topic: c.input}
	never := record.TopicPartition{Topic: c.input, Partition: 1}
	mustCommit(t, c, c.epoch(1))
	if err := c.producer.Begin(b.ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.producer.CommitOffsets(b.ctx, c.epoch(2).Parts[0].Offsets, func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(b.ctx, 300*time.Millisecond)
	defer cancel()
	if got, err := c.client.StableOffsets(short, []record.TopicPartition{tp}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with an open transaction: %v, %v", got, err)
	}
	if err := c.producer.Commit(b.ctx); err != nil {
		t.Fatal(err)
	}
	got, err := c.client.StableOffsets(b.ctx, []record.TopicPartition{tp, never})
	if err != nil || got[tp] != (record.Committed{Next: 2, Metadata: "epoch 2"}) || got[never].Next != -1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.client.StableOffsets(b.ctx, nil); err != nil || len(got) > 0 {
		t.Errorf("of nothing: %v, %v", got, err)
	}
}

func TestAnUnknownGroupHasNoOffsets(t *testing.T) {
	b := newBench(t, 1)
	tp := record.TopicPartition{Topic: b.topic("in", 1, nil)}
	got, err := b.connect(b.config()).StableOffsets(b.ctx, []record.TopicPartition{tp})
	if err != nil || got[tp].Next != -1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTheEndOfALogCountsOpenTransactions(t *testing.T) {
	b := newBench(t, 1)
	c := b.caller(b.config(), b.topic("in", 1, nil))
	tp := record.TopicPartition{Topic: b.topic("out", 1, nil)}
	if err := c.producer.Begin(b.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.producer.Produce(b.ctx, []*record.Outbox{box(tp.Topic, 0, "a", "b")}); err != nil {
		t.Fatal(err)
	}
	if end, err := c.client.EndOffset(b.ctx, tp); err != nil || end != 2 {
		t.Errorf("end %d, %v", end, err)
	}
	if start, err := c.client.StartOffset(b.ctx, tp); err != nil || start != 0 {
		t.Errorf("start %d, %v", start, err)
	}
}

func TestPurgeMovesTheStart(t *testing.T) {
	b := newBench(t, 3)
	c := b.connect(b.config())
	topic := b.topic("repartition", 4, nil)
	for p := range int32(4) {
		b.fill(topic, p, 0, 10)
	}
	if err := c.Purge(topic, map[int32]record.Offset{0: 3, 2: 10}); err != nil {
		t.Fatal(err)
	}
	for p, want := range []record.Offset{3, 0, 10, 0} {
		if start, err := c.StartOffset(b.ctx, record.TopicPartition{Topic: topic, Partition: int32(p)}); err != nil || start != want {
			t.Errorf("partition %d starts at %d, want %d; %v", p, start, want, err)
		}
	}
	if err := c.Purge(topic, map[int32]record.Offset{1: 99}); err == nil || !strings.Contains(err.Error(), topic) {
		t.Errorf("beyond the end: %v", err)
	}
}

func TestTombstoneRetentionIsRead(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("changelog", 1, map[string]string{"cleanup.policy": "compact", "delete.retention.ms": "90000"})
	got, ok := b.connect(b.config()).DeleteRetention(b.ctx, topic)
	if !ok || got != 90*time.Second {
		t.Errorf("%v, %v", got, ok)
	}
}

func TestTheClusterIsDescribed(t *testing.T) {
	b := newBench(t, 3)
	topic := b.topic("in", 5, nil)
	c := b.connect(b.config())
	if brokers, cluster := c.Describe(); brokers < 1 || b.broker != nil && brokers != 3 || cluster == "" {
		t.Errorf("%d brokers, cluster %q", brokers, cluster)
	}
	found, err := c.Existing([]string{topic, b.name + ".missing"})
	if err != nil || len(found) != 1 || found[topic] != 5 {
		t.Errorf("%v, %v", found, err)
	}
	if found, err = c.Existing(nil); err != nil || len(found) > 0 {
		t.Errorf("of nothing: %v, %v", found, err)
	}
}

func TestATopicMadeAnewHasAnotherIdentity(t *testing.T) {
	b := newBench(t, 1)
	if b.broker == nil {
		t.Skip("a real broker deletes topics in its own time; the name is free only then")
	}
	topic := b.topic("changelog", 1, nil)
	c := b.connect(b.config())
	tp := record.TopicPartition{Topic: topic}
	first, err := c.TopicID(b.ctx, tp)
	if err != nil || first == "" {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := c.TopicID(b.ctx, tp); again != first || err != nil {
		t.Errorf("first %q, then %q, %v", first, again, err)
	}
	if err := b.broker.DeleteTopic(topic); err != nil {
		t.Fatal(err)
	}
	if err := b.broker.CreateTopic(topic, 1, nil); err != nil {
		t.Fatal(err)
	}
	if anew, err := c.TopicID(b.ctx, tp); anew == first || anew == "" || err != nil {
		t.Errorf("made anew: %q as before, %v", anew, err)
	}
}

func TestConnectTellsWhichBrokerSaidWhat(t *testing.T) {
	b := newBench(t, 1)
	config := b.config()
	config.Brokers = []string{"127.0.0.1:1", config.Brokers[0]}
	b.connect(config) // one that answers is enough
	config.Brokers = []string{"127.0.0.1:1", "127.0.0.1:2"}
	_, err := Connect(config)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1: ") || !strings.Contains(err.Error(), "127.0.0.1:2: ") {
		t.Errorf("%v", err)
	}
}

func TestEveryConnectionNoticesPeersThatVanish(t *testing.T) {
	config, err := Config{}.sarama()
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := config.Net.Proxy.Dialer.(*dialer); !ok || !config.Net.Proxy.Enable || d.tcp.Control == nil || d.tcp.Timeout != config.Net.DialTimeout {
		t.Errorf("the dialer is %+v", config.Net.Proxy.Dialer)
	}
}
