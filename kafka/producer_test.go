package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/google/go-cmp/cmp"

	"millrace/devbroker"
	"millrace/eos"
	"millrace/record"
)

func mustCommit(t testing.TB, c *caller, e eos.Epoch) eos.Result {
	t.Helper()
	r, err := c.commit(e, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecordsArriveByteForByte(t *testing.T) {
	b := newBench(t, 1)
	c := b.caller(b.config(), b.topic("in", 1, nil))
	out := b.topic("out", 1, nil)
	at := time.Now().UnixMilli()
	long := bytes.Repeat([]byte("x"), 200<<10) // more than a batch
	want := []devbroker.Record{
		{Timestamp: at, Key: []byte("k"), Value: []byte("v"), Headers: []record.Header{{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("b"), Value: nil}, {Key: []byte("a"), Value: []byte{}}}},
		{Timestamp: at + 5, Key: []byte("tombstone")},
		{Timestamp: at - 86_400_000, Key: []byte("empty"), Value: []byte{}}, // older than the first of its batch
		{Timestamp: at + 7, Value: []byte("no key")},
		{Timestamp: 0, Key: []byte{}, Value: []byte("empty key, 1970")},
		{Timestamp: at + 8, Key: []byte("long"), Value: long},
		{Timestamp: at + 9, Key: []byte{0, 255, 10}, Value: []byte{0xff, 0, 0xfe}},
	}
	o := &record.Outbox{To: record.TopicPartition{Topic: out}}
	for i := range want {
		want[i].Offset = int64(i)
		o.Append(want[i].Key, want[i].Value, want[i].Headers, want[i].Timestamp)
	}
	r := mustCommit(t, c, c.epoch(1, o))
	if end := r.Ends[o.To]; end != int64(len(want)) {
		t.Errorf("end offset %d, want %d", end, len(want))
	}
	if diff := cmp.Diff(want, b.committed(out)); diff != "" {
		t.Error(diff)
	}
	if got := c.offset(); got != (record.Committed{Next: 1, Metadata: "epoch 1"}) {
		t.Errorf("committed %+v", got)
	}
}

func TestTimesThatBrokersRefuseAreWrittenAsTheNearestThatTheyTake(t *testing.T) {
	b := newBench(t, 1)
	c := b.caller(b.config(), b.topic("in", 1, nil))
	out := b.topic("out", 1, nil)
	now := time.Now()
	o := &record.Outbox{To: record.TopicPartition{Topic: out}}
	o.Append(nil, []byte("before 1970"), nil, -1_000_000)
	o.Append(nil, []byte("no time"), nil, record.NoTime)
	o.Append(nil, []byte("next year"), nil, now.Add(365*24*time.Hour).UnixMilli())
	mustCommit(t, c, c.epoch(1, o))
	got := b.committed(out)
	if got[0].Timestamp != 0 || got[1].Timestamp != 0 {
		t.Errorf("timestamps %d and %d, want 0", got[0].Timestamp, got[1].Timestamp)
	}
	if ahead := time.UnixMilli(got[2].Timestamp).Sub(now); ahead < 49*time.Minute || ahead > 52*time.Minute {
		t.Errorf("the future is written as %v from now", ahead)
	}
}

func TestBoxesOfAPartitionKeepTheirOrder(t *testing.T) {
	b := newBench(t, 1)
	c := b.caller(b.config(), b.topic("in", 1, nil))
	out := b.topic("out", 2, nil)
	e := c.epoch(1, box(out, 0, "a", "b"), box(out, 1, "x"), box(out, 0, "c"))
	e.Parts[0].Changelogs = []*record.Outbox{box(out, 1, "y", "z"), {To: record.TopicPartition{Topic: out, Partition: 0}}}
	r := mustCommit(t, c, e)
	if diff := cmp.Diff([]string{"a", "b", "c", "x", "y", "z"}, values(b.committed(out))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]record.Offset{3, 3}, r.ChangelogEnds(e.Parts[0])); diff != "" {
		t.Errorf("changelog ends: %s", diff)
	}
	// The next epoch's ends count the marker of the first.
	r = mustCommit(t, c, c.epoch(2, box(out, 0, "d")))
	if got := r.Ends[record.TopicPartition{Topic: out}]; got != 5 {
		t.Errorf("end %d, want 5", got)
	}
}

func TestEmptyEpochsCommitOffsetsOnly(t *testing.T) {
	b := newBench(t, 1)
	c := b.caller(b.config(), b.topic("in", 1, nil))
	mustCommit(t, c, c.epoch(1))
	mustCommit(t, c, c.epoch(2))
	if got := c.offset().Next; got != 2 {
		t.Errorf("offset %d, want 2", got)
	}
}

func TestBigEpochs(t *testing.T) {
	for _, compression := range []string{"none", "lz4", "zstd", "gzip", "snappy"} {
		t.Run(compression, func(t *testing.T) {
			b := newBench(t, 3)
			config := b.config()
			config.Compression = compression
			c := b.caller(config, b.topic("in", 1, nil))
			const partitions, each, epochs = 16, 2100, 3 // 100 800 records, 5 batches a partition and epoch
			out := b.topic("out", partitions, nil)
			want := map[int32][]string{}
			for n := range int64(epochs) {
				var boxes []*record.Outbox
				for p := range int32(partitions) {
					o := &record.Outbox{To: record.TopicPartition{Topic: out, Partition: p}}
					for i := range each {
						v := fmt.Sprintf("epoch %d partition %d record %d %s", n, p, i, strings.Repeat(".", 60))
						o.Append([]byte(v[:20]), []byte(v), nil, time.Now().UnixMilli())
						want[p] = append(want[p], v)
					}
					boxes = append(boxes, o)
				}
				r := mustCommit(t, c, c.epoch(n+1, boxes...))
				for p := range int32(partitions) {
					if got, want := r.Ends[boxes[p].To], (n+1)*each+n; got != want {
						t.Errorf("epoch %d partition %d: end %d, want %d", n, p, got, want)
					}
				}
			}
			got := map[int32][]string{}
			for _, r := range b.committed(out) {
				got[r.Partition] = append(got[r.Partition], string(r.Value))
			}
			if !cmp.Equal(want, got) {
				for p := range int32(partitions) {
					t.Errorf("partition %d: %d records, want %d, in order", p, len(got[p]), len(want[p]))
				}
			}
		})
	}
}

// TestBatchesAreSentAgainInOrder breaks epochs of many batches a partition in ways that sending again heals.
func TestBatchesAreSentAgainInOrder(t *testing.T) {
	const notLeader, timedOut, notEnoughReplicasAfterAppend = 6, 7, 20
	faults := map[string]func(*devbroker.Broker){
		"error codes":                   func(b *devbroker.Broker) { b.Fail(devbroker.Produce, 4, notLeader) },
		"time-out after the work":       func(b *devbroker.Broker) { b.Fail(devbroker.Produce, 4, timedOut) },
		"few replicas after the work":   func(b *devbroker.Broker) { b.Fail(devbroker.Produce, 4, notEnoughReplicasAfterAppend) },
		"lost requests":                 func(b *devbroker.Broker) { b.DropRequest(devbroker.Produce, 4) },
		"lost responses":                func(b *devbroker.Broker) { b.DropResponse(devbroker.Produce, 4) },
		"leaders move":                  (*devbroker.Broker).MoveLeaders,
		"connections are cut":           (*devbroker.Broker).CutConnections,
		"lost responses of moved ones":  func(b *devbroker.Broker) { b.DropResponse(devbroker.Produce, 2); b.MoveLeaders() },
		"a lost response and its echos": func(b *devbroker.Broker) { b.DropResponse(devbroker.Produce, 1) },
	}
	for name, inject := range faults {
		for _, exactlyOnce := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/exactly once %v", name, exactlyOnce), func(t *testing.T) {
				t.Parallel()
				b := faultyBench(t, 3)
				config := b.config()
				config.ExactlyOnce, config.MaxBatchBytes = exactlyOnce, 500
				c := b.caller(config, b.topic("in", 1, nil))
				out := b.topic("out", 6, nil)
				var want []string
				boxes := make([]*record.Outbox, 6)
				for n := range int64(4) {
					for p := range boxes {
						boxes[p] = box(out, int32(p))
						for i := range 200 {
							boxes[p].Append(nil, fmt.Appendf(nil, "epoch %d partition %d record %d", n, p, i), nil, time.Now().UnixMilli())
						}
					}
					met := b.broker.Count(devbroker.Produce)
					done := make(chan struct{})
					go func() { // in the middle of the epoch
						defer close(done)
						if met.Wait(b.ctx, 5) == nil {
							inject(b.broker)
						}
					}()
					r := mustCommit(t, c, c.epoch(n+1, boxes...))
					<-done
					for p := range boxes {
						end := 200 * (n + 1)
						if exactlyOnce {
							end += n // markers
						}
						if got := r.Ends[boxes[p].To]; got != end {
							t.Errorf("epoch %d partition %d: end %d, want %d", n, p, got, end)
						}
					}
				}
				for p := range boxes {
					for n := range 4 {
						for i := range 200 {
							want = append(want, fmt.Sprintf("epoch %d partition %d record %d", n, p, i))
						}
					}
				}
				if diff := cmp.Diff(want, values(b.committed(out))); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestAtLeastOnceWritesWithoutATransaction(t *testing.T) {
	b := newBench(t, 3)
	config := b.config()
	config.ExactlyOnce = false
	c := b.caller(config, b.topic("in", 1, nil))
	out := b.topic("out", 4, nil)
	for n := range int64(5) {
		r := mustCommit(t, c, c.epoch(n+1, box(out, 0, fmt.Sprint(n)), box(out, 3, fmt.Sprint(n))))
		if got := r.Ends[record.TopicPartition{Topic: out, Partition: 3}]; got != n+1 {
			t.Errorf("end %d, want %d: no markers", got, n+1)
		}
	}
	if diff := cmp.Diff(strings.Fields("0 1 2 3 4 0 1 2 3 4"), values(b.committed(out))); diff != "" {
		t.Error(diff)
	}
	if got := c.offset(); got != (record.Committed{Next: 5, Metadata: "epoch 5"}) {
		t.Errorf("committed %+v", got)
	}
}

func TestUnknownCompressionIsRefused(t *testing.T) {
	_, err := NewProducer(&Client{config: Config{Compression: "brotli"}}, nil)
	if err == nil || !strings.Contains(err.Error(), `"brotli"`) {
		t.Errorf("%v", err)
	}
}

func TestACommitThatRunsOutOfTimeSaysWhatWasMissing(t *testing.T) {
	b := faultyBench(t, 1)
	c := b.caller(b.config(), b.topic("in", 1, nil))
	out := b.topic("out", 1, nil)
	const notEnoughReplicas = 19
	defer b.broker.Fail(devbroker.Produce, devbroker.Always, notEnoughReplicas).Remove()
	_, err := c.commit(c.epoch(1, box(out, 0, "1")), 300*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), out+"-0") || !strings.Contains(err.Error(), "in-sync replicas") {
		t.Errorf("%v", err)
	}
}

func TestADuplicateIsAcknowledgedWithoutItsOffset(t *testing.T) {
	out := record.TopicPartition{Topic: "out"}
	streams := streams([]*record.Outbox{box(out.Topic, 0, "a", "b")}, bounds{1 << 10, math.MaxInt64})
	d := &delivery{producer: &Producer{client: &Client{}}, streams: streams, waiting: 1, pending: 1}
	response := &sarama.ProduceResponse{Blocks: map[string]map[int32]*sarama.ProduceResponseBlock{
		out.Topic: {0: {Err: sarama.ErrDuplicateSequenceNumber, Offset: -1}}}}
	if err := d.take(answer{request: &request{sent: []sent{{streams[0], 0}}}, response: response}); err != nil {
		t.Fatal(err)
	}
	if d.pending != 0 || streams[0].end != -1 {
		t.Errorf("%d partitions are not acknowledged; the end is %d", d.pending, streams[0].end)
	}
}
