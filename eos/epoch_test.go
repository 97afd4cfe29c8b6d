package eos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"millrace/record"

	"github.com/google/go-cmp/cmp"
)

// scripted is a Producer that notes its calls and fails at the one it is told to.
type scripted struct {
	calls   []string
	failAt  string
	boxes   []*record.Outbox // of all calls
	failNth int              // the call of that name that fails; 0: the first
	offsets []InputOffset
	owned   bool // as the epoch said it under the gate
}

var errScripted = errors.New("as scripted")

func (s *scripted) call(name string) error {
	s.calls = append(s.calls, name)
	if name != s.failAt {
		return nil
	}
	if s.failNth--; s.failNth > 0 {
		return nil
	}
	return errScripted
}

func (s *scripted) Begin(context.Context) error { return s.call("begin") }

func (s *scripted) Produce(_ context.Context, boxes []*record.Outbox) (map[record.TopicPartition]record.Offset, error) {
	s.boxes = append(s.boxes, boxes...)
	ends := map[record.TopicPartition]record.Offset{}
	for _, b := range boxes {
		ends[b.To] += record.Offset(b.Count)
	}
	return ends, s.call("produce")
}

func (s *scripted) CommitOffsets(_ context.Context, offsets []InputOffset, owned func() bool) error {
	s.offsets, s.owned = offsets, owned()
	return s.call("offsets")
}

func (s *scripted) Commit(context.Context) error { return s.call("commit") }

func tp(topic string, partition int32) record.TopicPartition {
	return record.TopicPartition{Topic: topic, Partition: partition}
}

func box(to record.TopicPartition, records int) *record.Outbox {
	b := &record.Outbox{To: to}
	for i := range records {
		b.Append([]byte(fmt.Sprint(i)), nil, nil, 0)
	}
	return b
}

// twoTasks is an epoch of a task with two stores and one without any.
func twoTasks() Epoch {
	return Epoch{Number: 7, Owned: func() bool { return true }, Parts: []Part{
		{Task: record.TaskID{Partition: 1}, Outputs: []*record.Outbox{box(tp("out", 0), 2), box(tp("out", 1), 0)},
			Changelogs: []*record.Outbox{box(tp("a-changelog", 1), 3), box(tp("b-changelog", 1), 1)},
			Offsets:    []InputOffset{{tp("in", 1), 10, ""}, {tp("other", 1), 20, ""}}},
		{Task: record.TaskID{Partition: 2}, Outputs: []*record.Outbox{box(tp("out", 0), 1)}, Offsets: []InputOffset{{tp("in", 2), 30, "note"}}},
	}}
}

func TestCommitGoesStepByStep(t *testing.T) {
	s := &scripted{}
	r, err := Commit(t.Context(), s, twoTasks())
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"begin", "produce", "offsets", "commit"}; !slices.Equal(s.calls, want) {
		t.Errorf("called %v, want %v", s.calls, want)
	}
	if r.Ends[tp("out", 0)] != 3 || r.Produce < 0 || r.Offsets < 0 || r.End < 0 {
		t.Errorf("result %+v", r)
	}
	if !s.owned {
		t.Error("the producer was not handed the epoch's question")
	}
}

// After an error nothing is done any more: a later step would decide a transaction that is only half there.
func TestCommitStopsAtTheFirstError(t *testing.T) {
	all := []string{"begin", "produce", "offsets", "commit"}
	for i, step := range all {
		s := &scripted{failAt: step}
		_, err := Commit(t.Context(), s, twoTasks())
		if !errors.Is(err, errScripted) {
			t.Errorf("%s: error %v", step, err)
		}
		if !slices.Equal(s.calls, all[:i+1]) {
			t.Errorf("%s failed, and %v were called", step, s.calls)
		}
	}
}

func TestCommitCarriesWhatTheTasksDid(t *testing.T) {
	s := &scripted{}
	if _, err := Commit(t.Context(), s, twoTasks()); err != nil {
		t.Fatal(err)
	}
	var boxes []string
	for _, b := range s.boxes {
		boxes = append(boxes, fmt.Sprint(b.To, "×", b.Count))
	}
	// Empty outputs are left out. Changelogs never are: they hold at least the progress record.
	want := []string{"out-0×2", "out-0×1", "a-changelog-1×3", "b-changelog-1×1"}
	if diff := cmp.Diff(want, boxes); diff != "" {
		t.Errorf("boxes:\n%s", diff)
	}
	offsets := []InputOffset{{tp("in", 1), 10, ""}, {tp("other", 1), 20, ""}, {tp("in", 2), 30, "note"}}
	if diff := cmp.Diff(offsets, s.offsets); diff != "" {
		t.Errorf("offsets:\n%s", diff)
	}
}

// Without a transaction the changelog must not know of results that were never written.
func TestResultsFirst(t *testing.T) {
	e := twoTasks()
	e.ResultsFirst = true
	s := &scripted{}
	r, err := Commit(t.Context(), s, e)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"begin", "produce", "produce", "offsets", "commit"}; !slices.Equal(s.calls, want) {
		t.Errorf("called %v", s.calls)
	}
	if r.Ends[tp("out", 0)] != 3 || r.Ends[tp("a-changelog", 1)] != 3 || r.Ends[tp("b-changelog", 1)] != 1 {
		t.Errorf("ends %v", r.Ends)
	}
	for nth := 1; nth <= 2; nth++ {
		s := &scripted{failAt: "produce", failNth: nth}
		if _, err := Commit(t.Context(), s, e); !errors.Is(err, errScripted) || len(s.calls) != 1+nth {
			t.Errorf("write %d failed: %v, called %v", nth, err, s.calls)
		}
	}
	e.Parts = e.Parts[1:] // no changelogs: nothing to keep apart
	s = &scripted{}
	if _, err := Commit(t.Context(), s, e); err != nil || len(s.calls) != 4 {
		t.Errorf("%v, called %v", err, s.calls)
	}
}

func TestOwnershipIsAskedWhenTheOffsetsAreCommitted(t *testing.T) {
	e, asked := twoTasks(), 0
	e.Owned = func() bool { asked++; return false }
	s := &scripted{failAt: "offsets"}
	_, err := Commit(t.Context(), s, e)
	if err == nil || s.owned || asked != 1 {
		t.Errorf("asked %d times, answered %v, error %v", asked, s.owned, err)
	}
}

func TestChangelogEndsFollowTheStores(t *testing.T) {
	p := twoTasks().Parts[0]
	r := Result{Ends: map[record.TopicPartition]record.Offset{tp("b-changelog", 1): 9, tp("a-changelog", 2): 5, tp("out", 0): 1}}
	if got := r.ChangelogEnds(p); !slices.Equal(got, []record.Offset{-1, 9}) {
		t.Errorf("ends %v", got)
	}
	if got := r.ChangelogEnds(Part{}); len(got) != 0 {
		t.Errorf("ends %v of a task without stores", got)
	}
}
