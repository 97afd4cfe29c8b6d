package devbroker

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/record"
)

func TestRestartGoesOnWhereItWasStopped(t *testing.T) {
	dir := t.TempDir()
	b, c, ctx := bench(t, Options{DataDir: dir, Topics: map[string]int32{"in": 2}})
	if err := c.ProduceTo(ctx, "in", 1, Record{Key: []byte("k"), Value: []byte("before"), Timestamp: 7}); err != nil {
		t.Fatal(err)
	}
	offsets := kadm.Offsets{}
	offsets.AddOffset("in", 1, 1, -1)
	if _, err := c.adm.CommitOffsets(ctx, "group", offsets); err != nil {
		t.Fatal(err)
	}
	b.Close()

	// More topics than before: those that exist keep what they have.
	_, c, ctx = bench(t, Options{DataDir: dir, Topics: map[string]int32{"in": 5, "new": 1}})
	if err := c.ProduceTo(ctx, "in", 1, Record{Value: []byte("after")}); err != nil {
		t.Fatal(err)
	}
	records, err := c.ReadCommitted(ctx, "in")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"before", "after"}, values(records)); diff != "" {
		t.Errorf("records after the restart:\n%s", diff)
	}
	committed, err := c.CommittedOffsets(ctx, "group")
	want := map[record.TopicPartition]int64{{Topic: "in", Partition: 1}: 1}
	if diff := cmp.Diff(want, committed); err != nil || diff != "" {
		t.Errorf("committed offsets: %v\n%s", err, diff)
	}
	ends, err := c.EndOffsets(ctx, "in")
	if diff := cmp.Diff(map[int32]int64{0: 0, 1: 2}, ends); err != nil || diff != "" {
		t.Errorf("end offsets: %v\n%s", err, diff)
	}
}

func TestStartOnATakenPortSaysWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Start(Options{Port: l.Addr().(*net.TCPAddr).Port})
	if err == nil || !strings.Contains(err.Error(), "choose another port") {
		t.Errorf("Start on a taken port: %v", err)
	}
}

func TestPortIsTheFirstBrokers(t *testing.T) {
	first, err := Start(Options{})
	if err != nil {
		t.Fatal(err)
	}
	port := first.Ports()[0]
	first.Close()
	first.Close() // A second call does nothing.
	b, _, _ := bench(t, Options{Port: port})
	if got := b.Ports(); !slices.Equal(got, []int{port}) {
		t.Errorf("ports %v, want [%d]", got, port)
	}
}

func TestReadCommittedPassesOverAbortedAndOpenTransactions(t *testing.T) {
	b, c, ctx := bench(t, Options{Topics: map[string]int32{"out": 1}})
	producer := transactor(t, b, "tx")
	for _, step := range []struct {
		commit kgo.TransactionEndTry
		value  string
	}{{kgo.TryAbort, "aborted"}, {kgo.TryCommit, "committed"}, {kgo.TryAbort, "aborted too"}} {
		if err := transact(t, producer, step.commit, "out", step.value); err != nil {
			t.Fatal(err)
		}
	}
	if err := producer.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := producer.ProduceSync(ctx, &kgo.Record{Topic: "out", Value: []byte("open")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	records, err := c.ReadCommitted(ctx, "out")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"committed"}, values(records)); diff != "" {
		t.Errorf("committed records:\n%s", diff)
	}
	if end, stable := b.EndOffset("out", 0), b.StableOffset("out", 0); end != 7 || stable != 6 {
		t.Errorf("end %d, stable %d; want 7 and 6", end, stable)
	}
}

func TestReadCommittedOfACompactedTopicWithAGapAtItsStart(t *testing.T) {
	b, c, ctx := bench(t, Options{})
	if err := c.CreateTopic(ctx, "table", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"1", "2", "3", "4"} {
		if err := c.Produce(ctx, "table", Record{Key: []byte("k"), Value: []byte(v)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.DeleteRecords("table", 0, 1); err != nil {
		t.Fatal(err)
	}
	b.Compact()
	records, err := c.ReadCommitted(ctx, "table")
	if err != nil {
		t.Fatal(err)
	}
	if len(records) == 0 || string(records[len(records)-1].Value) != "4" || records[0].Offset == 0 {
		t.Errorf("records %+v: want 4 last and none at offset 0", records)
	}
}

func TestRecordsKeepKeyHeadersTimeAndTombstones(t *testing.T) {
	_, c, ctx := bench(t, Options{Topics: map[string]int32{"t": 3}})
	want := []Record{
		{Partition: 2, Offset: 0, Timestamp: 1000, Key: []byte("a"), Value: []byte("v"),
			Headers: []record.Header{{Key: []byte("h"), Value: []byte("x")}}},
		{Partition: 2, Offset: 1, Timestamp: 2000, Key: []byte("a")},
	}
	if err := c.ProduceTo(ctx, "t", 2, want...); err != nil {
		t.Fatal(err)
	}
	got, err := c.WaitCommitted(ctx, "t", func(r []Record) bool { return len(r) == 2 })
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("records: %v\n%s", err, diff)
	}
}

func TestUnknownTopicIsAnErrorThatNamesIt(t *testing.T) {
	_, c, ctx := bench(t, Options{})
	if _, err := c.ReadCommitted(ctx, "nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("ReadCommitted of an unknown topic: %v", err)
	}
}

func TestGroupStateFollowsTheMembers(t *testing.T) {
	b, _, ctx := bench(t, Options{Topics: map[string]int32{"in": 1}})
	if state, members := b.GroupState("g"); state != "Dead" || len(members) != 0 {
		t.Errorf("unknown group is %s %v, want Dead", state, members)
	}
	member, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("in"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	if err := newClient(t, b).Produce(ctx, "in", Record{Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	if fetches := member.PollFetches(ctx); fetches.NumRecords() != 1 {
		t.Fatalf("the member read %d records: %v", fetches.NumRecords(), fetches.Err())
	}
	if state, members := b.GroupState("g"); state != "Stable" || len(members) != 1 {
		t.Errorf("group with a member is %s %v, want Stable with one", state, members)
	}
}
