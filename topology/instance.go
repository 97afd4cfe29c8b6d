package topology

import (
	"fmt"
	"slices"

	"millrace/record"
)

// Env is what an Instance needs of its surroundings.
type Env struct {
	Task    record.TaskID
	Formats Formats
	// Store returns the store of the subtopology's stateful step i.
	Store func(i int) Store
	// Scratch returns an empty store for rows that live within one epoch, and the function that empties it.
	Scratch func() (Store, func())
	// Partitions tells how many partitions a topic that the job writes to has.
	Partitions func(topic string) int32
	// Present tells whether input i has the task's partition: inputs may differ in their number of partitions.
	Present []bool
	// Writers tells how many tasks write to a step's repartition topic.
	Writers func(step string) int32
	// MaxRecordBytes is the largest record that may be written.
	MaxRecordBytes int
}

// Instance is a subtopology at work in one task. The task's goroutine owns it; nothing in it is shared but the plan.
type Instance struct {
	sub        *Subtopology
	env        Env
	clock      *Clock
	inputs     []*inputNode
	aggregates []*aggregator
	shuffles   []*shuffleNode
	out        *Outputs
	deadLetter *deadLetterNode
	tallies    []*tally
	now        int64          // wall clock, ms, as of the task's last look
	current    *record.Record // the record that is being worked on, as it came; nil while windows close
	origin     record.Origin
	result     *record.Row // the result that is being put out; nil otherwise
	streams    map[*stream]*streamNode
}

// RecordError is a record that a policy of `fail` stops the task for.
type RecordError struct {
	Where  string // the step or source
	Origin record.Origin
	Kind   string // deserialization, processing, production, timestamp
	Err    error

	advice string // how to go on
}

func (e *RecordError) Error() string {
	place := "a result"
	if e.Origin.Topic != "" {
		place = fmt.Sprintf("%s-%d@%d", e.Origin.Topic, e.Origin.Partition, e.Origin.Offset)
	}
	return fmt.Sprintf("%s of %s at %s: %v (%s)", e.Kind, place, e.Where, e.Err, e.advice)
}

func (e *RecordError) Unwrap() error { return e.Err }

// Build makes an instance.
func (s *Subtopology) Build(env Env) (*Instance, error) {
	in := &Instance{sub: s, env: env, out: &Outputs{}, streams: map[*stream]*streamNode{}}
	if s.plan.deadLetter != nil {
		in.deadLetter = &deadLetterNode{in: in, topic: s.plan.deadLetter, partitions: env.Partitions(s.plan.deadLetter.name)}
	}
	for _, a := range s.aggregates {
		node, err := newAggregator(in, a)
		if err != nil {
			return nil, err
		}
		in.aggregates = append(in.aggregates, node)
	}
	for _, sh := range s.shuffles {
		node, err := newShuffleNode(in, sh)
		if err != nil {
			return nil, err
		}
		in.shuffles = append(in.shuffles, node)
	}
	var disorder []int64
	for i, input := range s.Inputs {
		node := &inputNode{in: in, plan: input, channel: len(disorder), present: env.Present == nil || env.Present[i]}
		in.inputs = append(in.inputs, node)
		if !node.present {
			continue
		}
		if input.source != nil {
			disorder = append(disorder, input.source.spec.Watermark.MaxOutOfOrderness.Value.Milliseconds())
		} else {
			node.writers = int(env.Writers(input.Step))
			disorder = append(disorder, make([]int64, node.writers)...)
		}
	}
	in.clock = NewClock(disorder)
	in.findHolders()
	for _, node := range in.inputs {
		if err := node.connect(); err != nil {
			return nil, err
		}
	}
	for _, a := range in.aggregates {
		if err := a.connect(); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// Clock is the task's event time.
func (in *Instance) Clock() *Clock { return in.clock }

// Outputs is what the epoch writes so far. The task takes it with Swap.
func (in *Instance) Outputs() *Outputs { return in.out }

// Swap gives the epoch's outputs away and goes on with an empty one.
func (in *Instance) Swap(empty *Outputs) *Outputs {
	full := in.out
	in.out = empty
	return full
}

// SetNow tells the wall clock, ms: only guards against times in the future and idleness look at it.
func (in *Instance) SetNow(ms int64) { in.now = ms }

// Process takes one record of input i through the operators. An error stops the task.
func (in *Instance) Process(i int, from record.TopicPartition, r *record.Record) error {
	in.current = r
	in.origin = record.Origin{Topic: from.Topic, Partition: from.Partition, Offset: r.Offset, Timestamp: r.Timestamp}
	err := in.inputs[i].process(r)
	in.current, in.origin = nil, record.Origin{}
	return err
}

// Reopen takes up the state as it was restored: which windows are open, and the clock's time.
func (in *Instance) Reopen() {
	for _, a := range in.aggregates {
		a.reopen()
	}
	in.release()
	for _, s := range in.shuffles {
		s.toldIdle = in.clock.AllIdle() // as the last Freeze has told
		s.waking = in.clock.Guard() > record.NoTime && in.clock.Guard() >= in.clock.Watermark()
	}
}

// findHolders finds out for every step which aggregations in this task its rows come from: these hold its time back.
func (in *Instance) findHolders() {
	for _, a := range in.aggregates {
		if a.plan.step.ports[0].ship != nil {
			continue // its rows come through a topic, and bring their time along
		}
		for _, s := range a.plan.upstream {
			a.holders = append(a.holders, in.aggregatesBefore(s)...)
		}
	}
	for _, sh := range in.shuffles {
		for _, p := range sh.plan.ports {
			sh.holders = append(sh.holders, in.aggregatesBefore(p.in)...)
		}
	}
}

// aggregatesBefore returns the aggregations that a stream's rows come from, through whatever stateless steps.
func (in *Instance) aggregatesBefore(s *stream) (found []*aggregator) {
	if s.from == nil {
		return nil
	}
	if s.from.aggregate != nil {
		return []*aggregator{in.aggregator(s.from.aggregate)}
	}
	for _, p := range s.from.ports {
		if p.out == s {
			found = append(found, in.aggregatesBefore(p.in)...)
		}
	}
	return found
}

// advance carries the clock's watermark to the operators, in the order of the rows' way.
func (in *Instance) advance() {
	for _, a := range in.aggregates {
		a.watermark = max(a.watermark, in.watermarkBehind(a.holders))
		if a.plan.windows != nil {
			a.promiseWindows()
		}
	}
}

// release is advance at an epoch's beginning, when the changes of the one before are out.
func (in *Instance) release() {
	for _, a := range in.aggregates {
		a.watermark = max(a.watermark, in.watermarkBehind(a.holders))
		if a.plan.windows == nil {
			a.promise = a.watermark
		}
	}
	in.advance()
}

// watermarkBehind is how far time is where rows come from these aggregations: the task's, if there are none.
func (in *Instance) watermarkBehind(holders []*aggregator) int64 {
	w := in.clock.Watermark()
	for _, a := range holders {
		w = min(w, a.promise)
	}
	return w
}

// Advance moves the watermark by decree; see Clock.Advance.
func (in *Instance) Advance(to int64) {
	if in.clock.Advance(to) {
		in.advance()
	}
}

// AdvanceInput moves the watermark of input i, which is a source, by decree; the other inputs may still hold the task's back.
func (in *Instance) AdvanceInput(i int, to int64) {
	if n := in.inputs[i]; n.present && in.clock.AdvanceChannel(n.channel, to) {
		in.advance()
	}
}

// SetIdle marks the channels of input i as idle.
func (in *Instance) SetIdle(i int) {
	n := in.inputs[i]
	if n.present && n.plan.source != nil && !in.clock.Idle(n.channel) {
		if in.clock.SetIdle(n.channel) {
			in.advance()
		}
	}
}

// Due tells whether windows wait to be closed. They must be, by Fire, before the next record is processed.
func (in *Instance) Due() bool {
	for _, a := range in.aggregates {
		if a.due() {
			return true
		}
	}
	return false
}

// Fire closes windows that are due, about limit rows of them: the task may end an epoch in between. Steps fire in the
// order of the rows' way, so that results of one are in the next before that one's windows close.
func (in *Instance) Fire(limit int) error {
	budget := limit
	for _, a := range in.aggregates {
		for a.due() {
			if budget <= 0 {
				return nil
			}
			if err := a.fire(&budget); err != nil {
				return err
			}
			a.schedule()
		}
		in.advance() // what it held back may close windows of the next
	}
	return nil
}

// Freeze ends the epoch: rows of `emit: changes`, rows that were combined before a repartition, and watermarks for the
// tasks behind it go out.
func (in *Instance) Freeze() error {
	for _, a := range in.aggregates {
		if a.plan.emit == emitChanges {
			if err := a.emitChanged(); err != nil {
				return err
			}
		}
	}
	in.release()
	for _, s := range in.shuffles {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return nil
}

// tally counts one outcome at one place within an epoch.
type tally struct {
	what          record.Outcome
	where, detail string
	n, bytes      int64
	spread        *record.Spread // nil where only the number counts
}

func (in *Instance) counter(what record.Outcome, where, detail string) *tally {
	for _, t := range in.tallies {
		if t.what == what && t.where == where && t.detail == detail {
			return t
		}
	}
	t := &tally{what: what, where: where, detail: detail}
	in.tallies = append(in.tallies, t)
	return t
}

// spread is a counter of values.
func (in *Instance) spread(what record.Outcome, where string) *record.Spread {
	t := in.counter(what, where, "")
	if t.spread == nil {
		t.spread = &record.Spread{}
	}
	return t.spread
}

// Tallies returns what the epoch has counted, and starts from zero.
func (in *Instance) Tallies() []record.Tally {
	var all []record.Tally
	for _, t := range in.tallies {
		if t.n != 0 {
			all = append(all, record.Tally{What: t.what, Where: t.where, Detail: t.detail, N: t.n, Bytes: t.bytes})
			t.n, t.bytes = 0, 0
		}
		if values := t.spread.Take(); values != nil {
			all = append(all, record.Tally{What: t.what, Where: t.where, Detail: t.detail, Spread: values})
		}
	}
	return all
}

// Open tells how many windows the steps hold rows of; steps without windows are left out.
func (in *Instance) Open() []record.OpenWindows {
	var all []record.OpenWindows
	for _, a := range in.aggregates {
		if a.plan.windows != nil {
			all = append(all, record.OpenWindows{Step: a.name, N: len(a.open)})
		}
	}
	return all
}

// IsIdle tells whether input i holds nobody's time back because it is silent.
func (in *Instance) IsIdle(i int) bool {
	n := in.inputs[i]
	return n.present && n.plan.source != nil && in.clock.Idle(n.channel)
}

// InputTime tells how far event time is on input i: for a repartition topic, its slowest writer.
func (in *Instance) InputTime(i int) record.WatermarkStatus {
	n := in.inputs[i]
	s := record.WatermarkStatus{MaxEventTime: record.NoTime, Watermark: record.NoTime}
	if !n.present {
		return s
	}
	channels := max(n.writers, 1)
	s.Idle = true
	for c := n.channel; c < n.channel+channels; c++ {
		newest, watermark, holding := in.clock.Channel(c)
		if idle := in.clock.Idle(c); !idle {
			if s.Idle || watermark < s.Watermark {
				s.Watermark = watermark
			}
			s.Idle = false
		}
		s.MaxEventTime = max(s.MaxEventTime, newest)
		s.Holding = s.Holding || holding
	}
	return s
}

// KeepsTime tells whether a task without stores must keep its clock over a restart: time crosses the repartition topics
// that it writes, and must not go back there; and a record without a time may get its partition's.
func (s *Subtopology) KeepsTime() bool {
	return len(s.shuffles) > 0 || slices.ContainsFunc(s.Inputs, func(in *Input) bool {
		return in.source != nil && in.source.invalidTimestamp == PartitionTime
	})
}
