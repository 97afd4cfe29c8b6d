package kafka

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"millrace/record"
)

func TestAReaderReadsToTheEndOfACompactedLog(t *testing.T) {
	b := faultyBench(t, 1)
	topic := b.topic("changelog", 1, map[string]string{"cleanup.policy": "compact"})
	c := b.caller(b.config(), b.topic("in", 1, nil))
	for n := range int64(30) {
		o := &record.Outbox{To: record.TopicPartition{Topic: topic}}
		o.Append([]byte("same"), fmt.Append(nil, n), nil, time.Now().UnixMilli())
		mustCommit(t, c, c.epoch(n+1, o))
	}
	b.broker.Compact()
	tp := record.TopicPartition{Topic: topic}
	end, err := c.client.EndOffset(b.ctx, tp)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.client.NewReader(tp)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var last string
	reads := 0
	start, err := c.client.StartOffset(b.ctx, tp)
	if err != nil {
		t.Fatal(err)
	}
	for next := start; next < end; reads++ {
		batch, err := r.Read(b.ctx, next)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range batch.Records {
			last = string(rec.Value)
		}
		next = batch.Next
	}
	if last != "29" || reads > 20 {
		t.Errorf("the last value is %q after %d reads", last, reads)
	}
}

func TestAReaderTellsThatItsOffsetIsGone(t *testing.T) {
	b := newBench(t, 1)
	topic := b.topic("changelog", 1, nil)
	client := b.connect(b.config())
	b.fill(topic, 0, 0, 100)
	if err := client.Purge(topic, map[int32]record.Offset{0: 70}); err != nil {
		t.Fatal(err)
	}
	r, err := client.NewReader(record.TopicPartition{Topic: topic})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var gone *OffsetGone
	if _, err := r.Read(b.ctx, 3); !errors.As(err, &gone) || gone.Start != 70 || gone.End != 100 {
		t.Errorf("%v", err)
	}
	if batch, err := r.Read(b.ctx, 70); err != nil || batch.Next != 100 {
		t.Errorf("next %d, %v", batch.Next, err)
	}
	if batch, err := r.Read(b.ctx, 100); err != nil || batch.Next != 100 || len(batch.Records) > 0 {
		t.Errorf("at the end: %d records, next %d, %v", len(batch.Records), batch.Next, err)
	}
}
