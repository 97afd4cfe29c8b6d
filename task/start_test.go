package task

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/changelog"
	"millrace/record"
	"millrace/store"
)

// Where to go on reading is decided by the group's offset and the state's, and what is said then.
func TestPositionsFollowOffsetsAndState(t *testing.T) {
	const none = record.Offset(-1)
	cases := map[string]struct {
		group, state record.Offset
		stateless    bool
		twice        bool // at_least_once
		progress     bool // offsets_policy
		latest       bool

		want   record.Offset
		warned string
		failed string
	}{
		"a first start":                          {group: none, state: none, want: 3},
		"a first start at the end":               {group: none, state: none, latest: true, want: 5},
		"a start without a state":                {group: 4, state: none, stateless: true, want: 4},
		"a first start without a state":          {group: none, state: none, stateless: true, want: 3},
		"they agree":                             {group: 4, state: 4, want: 4},
		"they agree on 0":                        {group: 0, state: 0, want: 0},
		"the group's offset has expired":         {group: none, state: 4, want: 4, warned: "MR3004"},
		"the same, and read from the end":        {group: none, state: 4, latest: true, want: 4, warned: "MR3004"},
		"the offset was moved back":              {group: 1, state: 4, failed: "the group's offset is 1, but the state stands for 4"},
		"the offset was moved ahead":             {group: 5, state: 4, failed: "the group's offset is 5, but the state stands for 4"},
		"the changelog was lost":                 {group: 4, state: none, failed: "stands for -1 (-1: none)"},
		"moved back, the state is to be right":   {group: 1, state: 4, progress: true, want: 4, warned: "MR3005"},
		"moved ahead, the state is to be right":  {group: 5, state: 4, progress: true, want: 4, warned: "MR3005"},
		"lost, what there is is to be right":     {group: 4, state: none, progress: true, want: 4, warned: "MR3005"},
		"at least once, state ahead":             {group: 2, state: 4, twice: true, want: 2},
		"at least once, offset ahead":            {group: 5, state: 4, twice: true, failed: "offsets were moved"},
		"at least once, state to be right":       {group: 5, state: 4, twice: true, progress: true, want: 4, warned: "MR3005"},
		"at least once, ahead, but be the right": {group: 2, state: 4, twice: true, progress: true, want: 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, countJob(""))
			b.options.ExactlyOnce, b.options.TakeProgress = !c.twice, c.progress
			b.starts[tp("in", 0)] = 3
			b.logs[tp("in", 0)] = make([]record.Record, 5)
			k := newTask(b.id, b.options)
			if !c.stateless {
				k.state = &store.State{}
			}
			p := &changelog.Progress{Inputs: []changelog.InputOffset{{Topic: "in", Partition: 1, Next: 99}, {Topic: "other", Partition: 0, Next: 98}}}
			if c.state != none {
				p.Inputs = append(p.Inputs, changelog.InputOffset{Topic: "in", Next: c.state})
			}
			k.inputs[0].latest = c.latest
			got, err := k.position(context.Background(), &k.inputs[0], record.Committed{Next: c.group}, p)
			switch {
			case c.failed != "":
				if err == nil || !strings.Contains(err.Error(), c.failed) || !strings.Contains(err.Error(), "in-0") || !strings.Contains(err.Error(), "offsets_policy=progress") {
					t.Errorf("error %v", err)
				}
			case err != nil || got != c.want:
				t.Errorf("position %d, %v, want %d", got, err, c.want)
			}
			warned := strings.Join(b.warned, "\n")
			if c.warned == "" && warned != "" || !strings.HasPrefix(warned, c.warned) {
				t.Errorf("warned %q, want %s", warned, c.warned)
			}
		})
	}
}

// Where a source starts that is read from its end is committed even before the first record.
func TestTheEndOfASourceIsCommittedAsTheStart(t *testing.T) {
	b := newBench(t, countJob(", start: latest"))
	b.input("a 1", "a 2")
	h := b.start(nil)
	h.epoch()
	if got := b.offsets[tp("in", 0)]; got.Next != 2 {
		t.Errorf("committed %+v", got)
	}
	b.input("b 3")
	h = b.start(nil)
	h.round()
	if got := b.results("out"); got != `b={"n":1}` {
		t.Error(got)
	}
}

const changelogTopic = "app-counts-changelog"

// filled is a bench whose rows on disk stand at changelog position 3, flushed at its clock's time.
func filled(t *testing.T) *bench {
	b := newBench(t, countJob(""))
	b.input("a 1", "b 2")
	h := b.start(nil)
	h.round()
	if err := CloseState(b.id, h.TakeState(), b.options); err != nil {
		t.Fatal(err)
	}
	b.told = nil
	return b
}

// The rows on disk are not used when the changelog cannot bring them up to date.
func TestOutdatedRowsAreDiscarded(t *testing.T) {
	cases := map[string]struct {
		change func(b *bench)
		cause  string // empty: they are used
	}{
		"nothing happened":                 {func(*bench) {}, ""},
		"the changelog begins behind them": {func(b *bench) { b.starts[tp(changelogTopic, 0)] = 3 }, ""},
		"the changelog begins after them":  {func(b *bench) { b.starts[tp(changelogTopic, 0)] = 4 }, "which begins at 4"},
		"the changelog ends before them":   {func(b *bench) { b.logs[tp(changelogTopic, 0)] = b.logs[tp(changelogTopic, 0)][:2] }, "which ends at 2"},
		"tombstones may be gone": {func(b *bench) {
			b.retention = time.Hour
			b.now = b.now.Add(54*time.Minute + time.Second)
		}, "deleted rows would come back"},
		"tombstones are still there": {func(b *bench) {
			b.retention = time.Hour
			b.now = b.now.Add(54 * time.Minute)
		}, ""},
		"how long tombstones stay is unknown": {func(b *bench) { b.now = b.now.Add(1000 * time.Hour) }, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := filled(t)
			c.change(b)
			engine := b.engine
			b.options.TakeProgress = true // a changelog that lost records has lost its progress record too
			b.start(nil)
			switch {
			case c.cause == "" && (b.wiped != 0 || len(b.warned) != 0 || b.told[0] != "counts 3-3 reused true"):
				t.Errorf("wiped %d times, warned %v, told %v", b.wiped, b.warned, b.told)
			case c.cause != "" && (b.wiped != 1 || b.engine == engine || !strings.HasPrefix(b.warned[0], "MR3003") || !strings.Contains(b.warned[0], c.cause)):
				t.Errorf("wiped %d times, warned %v", b.wiped, b.warned)
			case c.cause != "" && !strings.HasSuffix(b.told[0], "reused false"):
				t.Errorf("told %v", b.told)
			}
		})
	}
}

func TestAKeptStateMayBeOutdatedToo(t *testing.T) {
	b := newBench(t, countJob(""))
	b.input("a 1", "b 2")
	h := b.start(nil)
	h.round()
	b.starts[tp(changelogTopic, 0)] = 4
	h = b.restart(h)
	if b.wiped != 1 {
		t.Errorf("wiped %d times", b.wiped)
	}
	if got := h.state.Position(0); got != 3 {
		t.Errorf("restored up to %d", got)
	}
}

// A changelog that was made anew and has grown past our position looks like ours; its identity tells.
func TestAChangelogMadeAnewIsKnownByItsIdentity(t *testing.T) {
	for _, c := range []struct {
		before, now string
		wiped       int
	}{{"one", "two", 1}, {"one", "one", 0}, {"one", "", 0}, {"", "two", 0}} {
		b := newBench(t, countJob(""))
		b.ids = map[string]string{changelogTopic: c.before}
		b.input("a 1", "b 2")
		h := b.start(nil)
		h.round()
		b.ids[changelogTopic] = c.now
		b.restart(h)
		if b.wiped != c.wiped {
			t.Errorf("%q, then %q: wiped %d times, want %d; warned %v", c.before, c.now, b.wiped, c.wiped, b.warned)
		}
	}
}

// A changelog that was deleted and made anew is seen, whichever way its offsets look.
func TestALostChangelogIsNotTakenForAnEmptyState(t *testing.T) {
	b := filled(t)
	delete(b.logs, tp(changelogTopic, 0))
	_, err := Start(t.Context(), b.id, b.options, nil)
	if err == nil || !strings.Contains(err.Error(), "a changelog was lost") || b.wiped != 1 {
		t.Errorf("%v, wiped %d times", err, b.wiped)
	}
}

func TestRowsOfAnotherPlanAreRefused(t *testing.T) {
	b := filled(t)
	b.plan = compile(t, strings.Replace(countJob(""), "aggregate: { n: count() }", "aggregate: { n: min(value) }", 1))
	b.options.Plan = b.plan
	_, err := Start(t.Context(), b.id, b.options, nil)
	if err == nil {
		t.Fatal("rows of count() were opened as those of min()")
	}
	for _, want := range []string{"step counts has changed", "min(value)", changelogTopic, "new name", "undo the change", b.plan.Fingerprint("counts")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal does not say %q: %v", want, err)
		}
	}
}

// A task of several stores restores each from its own changelog, from its own position.
func TestSeveralStoresAreRestored(t *testing.T) {
	job := `topology:
  sources: { in: { topic: in, format: string, key: key } }
  steps:
    counts: { from: in, group_by: key, aggregate: { n: count() }, ttl: forever, select: { n: value.n }, to: out }
    newest: { from: in, group_by: key, aggregate: { n: 'max(timestamp)' }, ttl: forever, select: { n: value.n }, to: times }
  sinks: { out: { topic: out }, times: { topic: times } }
`
	job = strings.Replace(job, "'max(timestamp)'", "count()", 1)
	b := newBench(t, job)
	if n := len(b.plan.Subtopologies[0].Stores); n != 2 {
		t.Fatalf("%d stores", n)
	}
	for round := range 3 {
		b.input("a 1", "b 2")
		h := b.start(nil)
		h.round()
		if round == 0 {
			if err := CloseState(b.id, h.TakeState(), b.options); err != nil {
				t.Fatal(err)
			}
		}
		for i, name := range b.plan.Subtopologies[0].Stores {
			if want := record.Offset(3 * (round + 1)); h.state != nil && h.state.Position(i) != want {
				t.Errorf("round %d: %s is at %d, want %d", round, name, h.state.Position(i), want)
			}
		}
	}
	for _, topic := range []string{"out", "times"} {
		if got := b.results(topic); got != `a={"n":3} b={"n":3}` {
			t.Errorf("%s: %s", topic, got)
		}
	}
	if got := strings.Join(b.told[len(b.told)-4:], ", "); got != "counts 3-6 reused true, counts replayed 2, newest 3-6 reused true, newest replayed 2" {
		t.Errorf("told %s", got)
	}
}

// The changelog's end is asked for after the offsets are stable: what was committed before them then lies below it.
func TestOffsetsAreReadBeforeTheChangelogsEnd(t *testing.T) {
	b := filled(t)
	b.asked = nil
	b.start(nil)
	if len(b.asked) < 2 || b.asked[0] != "offsets" || b.asked[1] != "end of "+changelogTopic+"-0" {
		t.Errorf("asked for %v", b.asked)
	}
}

// An input that lacks the task's partition is left out.
func TestInputsMayDifferInTheirPartitions(t *testing.T) {
	b := newBench(t, `topology:
  sources: { in: { topic: in, format: string, key: key }, more: { topic: more, format: string, key: key } }
  steps:
    counts: { from: [in, more], group_by: key, aggregate: { n: count() }, ttl: forever, select: { n: value.n }, to: out }
  sinks: { out: { topic: out } }
`)
	b.options.Partitions = func(topic string) int32 { return map[string]int32{"in": 2, "more": 1, "out": 1}[topic] }
	b.id.Partition = 1
	b.input("a 1")
	h := b.start(nil)
	if r := h.Readings(); len(r) != 1 || r[0].From != tp("in", 1) {
		t.Fatalf("readings %+v", r)
	}
	h.offer()
	h.work()
	p, err := h.Freeze()
	if err != nil || len(p.Offsets) != 1 {
		t.Errorf("offsets %+v, %v", p, err)
	}
}

// What is told of a restore has an end also when the task goes to another process at its beginning: whoever waits until
// nothing is restored any more would wait for ever.
func TestAnEndIsToldOfEveryRestore(t *testing.T) {
	b := filled(t)
	b.engine = store.NewMemory()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Start(ctx, b.id, b.options, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if want := []string{"counts 0-3 reused false", b.id.String() + " counts given up"}; !slices.Equal(b.told, want) {
		t.Errorf("told %q, want %q", b.told, want)
	}
}
