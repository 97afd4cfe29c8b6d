package rebalance

import (
	"slices"
	"strings"
	"testing"

	"millrace/record"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func tp(topic string, partition int32) record.TopicPartition {
	return record.TopicPartition{Topic: topic, Partition: partition}
}

// twoInputs is a layout of n tasks that read two topics, and n that read one.
func twoInputs(n int32) *Layout {
	l := &Layout{Shape: "s1"}
	for p := range n {
		l.Tasks = append(l.Tasks, TaskPartitions{record.TaskID{Partition: p}, []record.TopicPartition{tp("a", p), tp("b", p)}})
	}
	for p := range n {
		l.Tasks = append(l.Tasks, TaskPartitions{record.TaskID{Subtopology: 1, Partition: p}, []record.TopicPartition{tp("c", p)}})
	}
	return l
}

func (l *Layout) peer(id string, generation int32, owned ...record.TaskID) Peer {
	p := Peer{ID: id, UserData: l.EncodeUserData(owned), Generation: generation}
	for _, t := range l.Tasks {
		if slices.Contains(owned, t.Task) {
			p.Owned = append(p.Owned, t.Partitions...)
		}
	}
	return p
}

func TestATaskIsOursWithAllItsPartitions(t *testing.T) {
	l := twoInputs(2)
	if got := l.TasksOf([]record.TopicPartition{tp("a", 0), tp("b", 1), tp("c", 1), tp("d", 0)}); !slices.Equal(got, []record.TaskID{{Subtopology: 1, Partition: 1}}) {
		t.Errorf("half of an input's partitions made tasks %v", got)
	}
	if got := l.TasksOf([]record.TopicPartition{tp("b", 0), tp("a", 0)}); !slices.Equal(got, []record.TaskID{{}}) {
		t.Errorf("tasks %v", got)
	}
	if got := l.TasksOf(nil); got != nil {
		t.Errorf("tasks %v of nothing", got)
	}
}

// Every partition of the job goes to exactly one member, those of one task together.
func TestPlansAreInPartitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := twoInputs(rapid.Int32Range(1, 8).Draw(t, "partitions"))
		var peers []Peer
		for _, id := range []string{"x", "y", "z"}[:rapid.IntRange(1, 3).Draw(t, "members")] {
			peers = append(peers, l.peer(id, -1))
		}
		plan, err := l.Plan(peers)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[record.TopicPartition]bool{}
		n := 0
		for _, p := range peers {
			if plan[p.ID] == nil {
				t.Fatalf("%s is not in the plan", p.ID)
			}
			n += len(l.TasksOf(plan[p.ID]))
			for _, partition := range plan[p.ID] {
				if seen[partition] {
					t.Fatalf("%s goes to two members", partition)
				}
				seen[partition] = true
			}
		}
		if n != len(l.Tasks) {
			t.Fatalf("%d of %d tasks are whole", n, len(l.Tasks))
		}
	})
}

// What a member owned in an older generation may be another's by now: it neither keeps it nor holds it back.
func TestStaleOwnershipIsIgnored(t *testing.T) {
	l := twoInputs(2)
	all := []record.TaskID{{Partition: 0}, {Partition: 1}, {Subtopology: 1, Partition: 0}, {Subtopology: 1, Partition: 1}}
	plan, err := l.Plan([]Peer{l.peer("fresh", 5, all...), l.peer("a stale one", 4, all...)})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.TasksOf(plan["fresh"]); len(got) != 2 {
		t.Errorf("fresh keeps %v of its tasks", got)
	}
	if got := l.TasksOf(plan["a stale one"]); len(got) != 0 {
		t.Errorf("stale gets %v, on which fresh still works", got)
	}
	// A member that has just started knows no generation, and says that it owns nothing.
	plan, err = l.Plan([]Peer{l.peer("new", -1), l.peer("fresh", 5, all[:2]...)})
	if err != nil {
		t.Fatal(err)
	}
	if got, rest := l.TasksOf(plan["fresh"]), l.TasksOf(plan["new"]); !slices.Equal(got, all[:2]) || !slices.Equal(rest, all[2:]) {
		t.Errorf("fresh %v, new %v", got, rest)
	}
}

func TestLocalRowsTravelInTheUserData(t *testing.T) {
	l := twoInputs(2)
	a, b := l.peer("a", -1), l.peer("b", -1)
	a.UserData = l.EncodeUserData([]record.TaskID{{Partition: 1}, {Subtopology: 1, Partition: 1}})
	b.UserData = l.EncodeUserData([]record.TaskID{{Partition: 0}, {Subtopology: 1, Partition: 0}, {Subtopology: 99, Partition: 7}})
	plan, err := l.Plan([]Peer{a, b})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]record.TopicPartition{"a": {tp("a", 1), tp("b", 1), tp("c", 1)}, "b": {tp("a", 0), tp("b", 0), tp("c", 0)}}
	if diff := gocmp.Diff(want, plan); diff != "" {
		t.Error(diff)
	}
}

// A later version may say more; what it says of tasks that nobody can read is left out.
func TestUserDataOfALaterVersionIsRead(t *testing.T) {
	l := twoInputs(1)
	p := l.peer("a", -1)
	p.UserData = []byte(`{"v":9,"shape":"s1","local":["0_0","later","-1_2"],"more":{"x":1}}`)
	if plan, err := l.Plan([]Peer{p}); err != nil || len(plan["a"]) != 3 {
		t.Errorf("%v, %v", plan, err)
	}
}

func TestStrangersAreRefused(t *testing.T) {
	l := twoInputs(1)
	for data, want := range map[string]string{
		"": "no millrace", "\x00\x01\x02": "no millrace", "[]": "no millrace", `{"v":1}`: "another job", `{"v":1,"shape":"s2"}`: "another job (s2, ours is s1)",
	} {
		stranger := Peer{ID: "stranger", UserData: []byte(data), Generation: -1}
		plan, err := l.Plan([]Peer{l.peer("a", -1), stranger})
		if err == nil || plan != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "stranger") {
			t.Errorf("%q: %v", data, err)
		}
	}
}
