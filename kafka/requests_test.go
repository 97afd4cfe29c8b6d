package kafka

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"millrace/devbroker"
	"millrace/record"
)

// Every request of a commit and of a restore is reported once, with what the broker said.
func TestRequestsAreReported(t *testing.T) {
	b := newBench(t, 1)
	var mu sync.Mutex
	got := map[string]int{}
	config := b.config()
	config.Requested = func(api, result string, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		got[api+" "+result]++
		if took <= 0 {
			t.Errorf("%s took %v", api, took)
		}
	}
	c := b.caller(config, b.topic("in", 1, nil))
	out := b.topic("out", 1, nil)
	const notEnoughReplicas = 19
	b.broker.Fail(devbroker.Produce, 1, notEnoughReplicas)
	mustCommit(t, c, c.epoch(1, box(out, 0, "a")))
	tp := record.TopicPartition{Topic: out}
	r, err := c.client.NewReader(tp)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Read(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, request := range []string{"init_producer_id ok", "add_partitions_to_txn ok", "produce error", "produce ok", "add_offsets_to_txn ok", "txn_offset_commit ok", "end_txn ok", "fetch ok"} {
		if got[request] == 0 {
			t.Errorf("%s is not reported: %v", request, got)
		}
	}
	if got["produce error"] != 1 || got["produce ok"] != 1 {
		t.Errorf("reported %v", got)
	}
}

func TestResultsOfRequests(t *testing.T) {
	var last string
	c := &Client{config: Config{Requested: func(_, result string, _ time.Duration) { last = result }}}
	for want, err := range map[string]error{"ok": nil, "error": errors.Join(sarama.ErrNotLeaderForPartition), "unanswered": io.EOF} {
		if c.requested("fetch", time.Now(), err); last != want {
			t.Errorf("%v is %s, want %s", err, last, want)
		}
	}
}
