package topology

import (
	"time"

	"millrace/record"
	"millrace/topology/aggregate"
	"millrace/topology/expr"
	"millrace/topology/window"
)

// Plan is a checked job: what runs where, compiled. It is read-only; a task works with an Instance of its subtopology.
type Plan struct {
	ApplicationID string
	Subtopologies []*Subtopology
	// Unknown lists the steps whose source does not declare its key, so that only its records tell whether the step
	// must repartition. Until they are answered (Options.Keyed) the plan repartitions.
	Unknown []*KeyQuestion

	sources    []*sourcePlan
	steps      []*stepPlan
	sinks      []*sinkPlan
	topics     []*topicUse
	deadLetter *topicUse // nil: no dead-letter topic
	errors     errorPlan
	compiled   []compiledText // for explain: which run natively
}

// compiledText is an expression with the place that it was written at.
type compiledText struct {
	text    Text
	where   string // as in "where of step x"
	program *expr.Program
}

// Subtopology is a set of steps joined without a topic between them. One of its tasks works on one partition of each of
// its inputs.
type Subtopology struct {
	Number int
	Inputs []*Input
	Stores []string // names of its stateful steps, in the order of their stores

	plan       *Plan
	ports      []*portPlan // roots are found through the inputs' streams
	aggregates []*aggregatePlan
	shuffles   []*shufflePlan // repartition topics that it writes to
}

// Input is a topic that a subtopology reads.
type Input struct {
	Topic string
	// Source is the source's name; empty for a repartition topic.
	Source string
	// Step is the step that the repartition topic belongs to; empty for a source.
	Step string

	source  *sourcePlan
	shuffle *shufflePlan
}

// Policy is what a bad record gets.
type Policy uint8

// The policies.
const (
	Fail Policy = iota
	Skip
	DeadLetter
	PartitionTime // of records without a usable time only: they get the newest time of their partition
)

type errorPlan struct{ deserialization, processing, production Policy }

type sourcePlan struct {
	spec             *SourceSpec
	number           int
	out              *stream
	time             *expr.Program // nil: the record's own
	invalidTimestamp Policy
	sub              *Subtopology
}

// A stream is the rows that a source or a step puts out, all of one layout.
type stream struct {
	layout    *expr.Layout
	fields    []record.Field // of a derived row; nil for a source's
	raw       *sourcePlan    // set while rows still carry a record's bytes unchanged
	key       record.Type
	keyedBy   []string // the expressions whose texts, joined, are the key; nil: unknown
	sourceKey bool     // the key is the record's own: what was said about it may be false
	windowed  bool
	consumers []*portPlan
	sinks     []*sinkUse
	from      *stepPlan // nil: a source
}

type stepPlan struct {
	spec      *StepSpec
	outs      []*stream
	aggregate *aggregatePlan // nil: stateless
	ports     []*portPlan
}

// A portPlan is one step reading one stream.
type portPlan struct {
	step    *stepPlan
	in      *stream
	where   *expr.Program
	selects []*expr.Program // nil: the row goes on unchanged
	out     *stream         // of a stateless step

	group  []*expr.Program
	args   []*expr.Program // one an aggregate; nil for count() and fold
	folds  []*expr.Program // one an aggregate; nil for all but fold
	keyed  bool            // the record's key is the group's key
	verify bool            // … as far as we were told: every record is checked
	ship   *shufflePlan    // not keyed: rows go through this repartition topic
}

// shufflePlan is the repartition topic between the ports of a step and its aggregation.
type shufflePlan struct {
	topic   *topicUse
	step    *stepPlan
	ports   []*portPlan // in the order of the number that their rows carry
	combine bool        // rows are aggregated before they are sent
	from    *Subtopology
	sub     *Subtopology
	reason  string
}

type aggregatePlan struct {
	step     *stepPlan
	store    int // in its subtopology
	windows  *window.Spec
	slices   bool // rows are kept by slice, windows are merged from them
	key      groupKey
	items    []aggregate.Item
	set      *aggregate.Set // of the plan, for types; tasks make their own
	emit     emitMode
	late     latePolicy
	ttl      int64          // ms; 0: rows are kept for ever or end with their window
	fields   []record.Field // of the result row, before select
	having   *expr.Program
	selects  []*expr.Program
	out      *stream
	sub      *Subtopology
	upstream []*stream
	revision bool // result rows carry revision and final
}

type emitMode uint8

const (
	emitFinal emitMode = iota
	emitCorrections
	emitChanges
)

type latePolicy struct {
	to *sinkUse // nil: drop
}

type sinkPlan struct {
	spec   *SinkSpec
	topic  *topicUse
	upsert bool
}

// sinkUse is one stream going to one sink.
type sinkUse struct {
	sink    *sinkPlan
	fields  []record.Field // nil: the record's bytes go through
	key     *expr.Program
	headers []headerUse
}

type headerUse struct {
	name  []byte
	value *expr.Program
}

// KeyQuestion asks whether the records of a source have the group's key as their key.
type KeyQuestion struct {
	Step, Source, Topic, Expression string
	Pos                             Pos
	port                            *portPlan
}

// Options of Compile.
type Options struct {
	Formats Formats
	// Keyed answers the plan's KeyQuestions, by step: true if the records' key is the group's key.
	Keyed map[string]bool
}

// Repartitions returns the repartition topics' names with the subtopology that each is written by and read by.
func (p *Plan) Repartitions() []Repartition {
	var all []Repartition
	for _, s := range p.Subtopologies {
		for _, sh := range s.shuffles {
			all = append(all, Repartition{Topic: sh.topic.name, Step: sh.step.spec.Name.Value, From: sh.from.Number, To: sh.sub.Number})
		}
	}
	return all
}

// Repartition is an internal topic between two subtopologies.
type Repartition struct {
	Topic, Step string
	From, To    int
}

// ChangelogTopic names the changelog of a step's store.
func (p *Plan) ChangelogTopic(step string) string { return p.ApplicationID + "-" + step + "-changelog" }

// SourceTopics returns the topics that the job reads from outside, each once.
func (p *Plan) SourceTopics() []string {
	var topics []string
	seen := map[string]bool{}
	for _, s := range p.sources {
		if t := s.spec.Topic.Value; s.sub != nil && !seen[t] {
			seen[t] = true
			topics = append(topics, t)
		}
	}
	return topics
}

// OutputTopics returns the users' topics that the job may write to, each once.
func (p *Plan) OutputTopics() []string {
	var topics []string
	for _, t := range p.topics {
		internal := false
		for _, r := range p.Repartitions() {
			internal = internal || r.Topic == t.name
		}
		if !internal {
			topics = append(topics, t.name)
		}
	}
	return topics
}

// SinkOf names the sink that a topic belongs to; "dead_letter" for the dead-letter topic; empty for internal topics.
func (p *Plan) SinkOf(topic string) string {
	for _, s := range p.sinks {
		if s.topic != nil && s.topic.name == topic {
			return s.spec.Name.Value
		}
	}
	if p.deadLetter != nil && p.deadLetter.name == topic {
		return "dead_letter"
	}
	return ""
}

// StartsLatest tells where an input is read from when the group has no offset: the end instead of the beginning.
func (in *Input) StartsLatest() bool {
	return in.source != nil && in.source.spec.Start.Value == "latest"
}

// IdleTimeout is after how long without a record a partition of the input no longer holds time back; 0: never.
func (in *Input) IdleTimeout() time.Duration {
	if in.source == nil {
		return 0
	}
	return in.source.spec.Watermark.IdleTimeout.Value
}

// AdvanceOnIdle tells whether the wall clock moves time on when all partitions are idle, and how far behind it stays.
func (in *Input) AdvanceOnIdle() (disorder time.Duration, ok bool) {
	if in.source == nil || !in.source.spec.Watermark.AdvanceOnIdle {
		return 0, false
	}
	return in.source.spec.Watermark.MaxOutOfOrderness.Value, true
}
