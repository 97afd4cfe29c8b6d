package topology

import (
	"fmt"
	"strings"

	"millrace/record"
	"millrace/topology/expr"
)

// Compile checks a job and plans it. All findings are returned at once; the plan is nil if one of them is an error.
func Compile(spec *Spec, o Options) (*Plan, []Finding) {
	b := &builder{spec: spec, options: o, plan: &Plan{ApplicationID: spec.ApplicationID}, streams: map[string][]*stream{}, visiting: map[string]bool{}}
	b.errors()
	b.names()
	b.sinks()
	for i := range spec.Sources {
		b.source(&spec.Sources[i])
	}
	for i := range spec.Steps {
		b.step(&spec.Steps[i])
	}
	b.unused()
	if !b.failed() {
		b.subtopologies()
	}
	if b.failed() {
		return nil, b.ordered()
	}
	b.notes()
	return b.plan, b.ordered()
}

type builder struct {
	finder
	spec     *Spec
	options  Options
	plan     *Plan
	streams  map[string][]*stream // by source or step
	visiting map[string]bool      // steps that are being compiled
	used     map[string]bool
}

func (b *builder) errors() {
	e := b.spec.Errors
	b.plan.errors = errorPlan{b.policy(e.Deserialization, "errors.deserialization"), b.policy(e.Processing, "errors.processing"), b.policy(e.Production, "errors.production")}
	wants := e.Deserialization
	for _, t := range []Text{e.Deserialization, e.Processing, e.Production} {
		if t.Value == "dead_letter" {
			wants = t
		}
	}
	for i := range b.spec.Sources {
		if t := b.spec.Sources[i].InvalidTimestamp; t.Value == "dead_letter" {
			wants = t
		}
	}
	switch {
	case e.DeadLetterTopic.Value != "":
		b.plan.deadLetter = b.topic(e.DeadLetterTopic.Value)
	case wants.Value == "dead_letter":
		b.failText(codeContract, wants, "dead_letter needs a topic", "set errors.dead_letter_topic")
	}
}

// topic returns the plan's use of a topic that it writes to.
func (b *builder) topic(name string) *topicUse {
	for _, t := range b.plan.topics {
		if t.name == name {
			return t
		}
	}
	t := &topicUse{number: len(b.plan.topics), name: name}
	b.plan.topics = append(b.plan.topics, t)
	return t
}

// names checks that sources and steps, which share one namespace, and sinks are each named once, and that no topic of
// the user is one of the job's own.
func (b *builder) names() {
	b.used = map[string]bool{}
	streams, sinks, internal := map[string]Pos{}, map[string]Pos{}, map[string]string{}
	check := func(seen map[string]Pos, t Text, what, others string) {
		if first, ok := seen[t.Value]; ok {
			b.failText(codeDuplicate, t, fmt.Sprintf("%s %q has the name of another %s, at %s", what, t.Value, others, first), "rename one of them")
			return
		}
		seen[t.Value] = t.Pos
	}
	own := func(t Text, what string) {
		if step := internal[t.Value]; step != "" {
			b.failText(codeCombine, t, fmt.Sprintf("%s is an internal topic of step %s, and %s uses it", t.Value, step, what), "use another topic, or rename the step")
		}
	}
	for _, s := range b.spec.Steps {
		internal[b.plan.ChangelogTopic(s.Name.Value)], internal[b.plan.RepartitionTopic(s.Name.Value)] = s.Name.Value, s.Name.Value
	}
	for _, s := range b.spec.Sources {
		check(streams, s.Name, "source", "source or step")
		own(s.Topic, "source "+s.Name.Value)
	}
	for _, s := range b.spec.Steps {
		check(streams, s.Name, "step", "source or step")
	}
	for _, s := range b.spec.Sinks {
		check(sinks, s.Name, "sink", "sink")
		own(s.Topic, "sink "+s.Name.Value)
	}
}

// RepartitionTopic names the repartition topic of a step.
func (p *Plan) RepartitionTopic(step string) string {
	return p.ApplicationID + "-" + step + "-repartition"
}

var formats = []string{"json", "string", "long", "bytes"}

func (b *builder) source(s *SourceSpec) {
	name := s.Name.Value
	format := formats[b.choice(s.Format, "format of source "+name, formats...)]
	p := &sourcePlan{spec: s, number: len(b.plan.sources)}
	var fields []record.Field
	for _, f := range s.Fields {
		fields = append(fields, record.Field{Name: f.Name.Value, Type: f.Type})
	}
	if format != "json" {
		if len(fields) > 0 {
			b.fail(codeCombine, s.Fields[0].Name.Pos, len(s.Fields[0].Name.Value), fmt.Sprintf("source %s: format %s has no fields, its value is `value`", name, format), "remove fields:")
		}
		kind := map[string]record.Kind{"string": record.String, "long": record.Long, "bytes": record.Bytes}[format]
		fields = []record.Field{{Name: "value", Type: record.Type{Kind: kind}}}
	}
	open := len(fields) == 0
	key := []record.Type{{Kind: record.String}, {Kind: record.Long}, {Kind: record.Bytes}}[b.choice(s.KeyFormat, "key_format of source "+name, "string", "long", "bytes")]
	p.out = &stream{layout: expr.NewSourceLayout(fields, open), raw: p, key: key, sourceKey: true}
	if s.Key.Value != "" {
		p.out.keyedBy = []string{normal(s.Key.Value)}
		if normal(s.Key.Value) != "key" {
			b.program(s.Key, p.out, "key of source "+name)
		}
	}
	if s.Timestamp.Value != "" {
		p.time = b.program(s.Timestamp, p.out, "timestamp of source "+name)
		if p.time != nil && !isTime(p.time.Type()) {
			b.failText(codeExpression, s.Timestamp, fmt.Sprintf("timestamp of source %s is %s", name, p.time.Type()), "a time is a timestamp, a timestamp_ms or a long of milliseconds")
		}
	}
	p.invalidTimestamp = Policy(b.choice(s.InvalidTimestamp, "invalid_timestamp of source "+name, "fail", "skip", "dead_letter", "partition_time"))
	if s.InvalidTimestamp.Value == "" {
		p.invalidTimestamp = b.plan.errors.deserialization
	}
	b.choice(s.Start, "start of source "+name, "earliest", "latest")
	if s.Topic.Value == "" {
		b.failText(codeContract, s.Name, fmt.Sprintf("source %s has no topic", name), "add topic:")
	}
	for _, sink := range b.plan.sinks {
		if sink.topic.name == s.Topic.Value {
			b.failText(codeCombine, sink.spec.Topic, fmt.Sprintf("sink %s writes to %s, which source %s reads: the job would feed itself", sink.spec.Name.Value, s.Topic.Value, name), "use another topic")
		}
	}
	if dead := b.spec.Errors.DeadLetterTopic; dead.Value != "" && dead.Value == s.Topic.Value {
		b.failText(codeCombine, dead, fmt.Sprintf("dead letters go to %s, which source %s reads: a bad record would come back for ever", dead.Value, name), "use another topic")
	}
	b.plan.sources = append(b.plan.sources, p)
	b.streams[name] = []*stream{p.out}
}

func isTime(t record.Type) bool {
	return t.Any || t.Kind == record.Time || t.Kind == record.Long
}

// program compiles an expression over a stream; nil after a finding.
func (b *builder) program(t Text, in *stream, where string) *expr.Program {
	return b.compiled(t, where, func() (*expr.Program, error) { return expr.Compile(t.Value, in.scope()) })
}

func (b *builder) condition(t Text, in *stream, where string) *expr.Program {
	if t.Value == "" {
		return nil
	}
	return b.compiled(t, where, func() (*expr.Program, error) { return expr.CompileBool(t.Value, in.scope()) })
}

func (b *builder) compiled(t Text, where string, compile func() (*expr.Program, error)) *expr.Program {
	p, err := compile()
	if err != nil {
		b.expression(codeExpression, t, where, err)
		return nil
	}
	b.plan.compiled = append(b.plan.compiled, compiledText{t, where, p})
	return p
}

func (s *stream) scope() expr.Scope {
	return expr.Scope{Value: s.layout, Key: s.key, Window: s.windowed}
}

// normal is an expression's text without the spaces that do not matter to it. Between quotes they do.
func normal(text string) string {
	var out strings.Builder
	quote, gap := byte(0), false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote == 0 && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			gap = out.Len() > 0
			continue
		case quote == 0 && (c == '"' || c == '\'' || c == '`'):
			quote = c
		case quote == c:
			quote = 0
		}
		if gap {
			out.WriteByte(' ')
			gap = false
		}
		out.WriteByte(c)
		if c == '\\' && quote != 0 && quote != '`' && i+1 < len(text) {
			i++
			out.WriteByte(text[i])
		}
	}
	return out.String()
}

// unused reports what nothing reads or writes: most often a slip.
func (b *builder) unused() {
	written := map[string]bool{}
	for _, s := range b.spec.Steps {
		for _, to := range s.To {
			written[to.Value] = true
		}
		if s.Late != nil {
			written[s.Late.To.Value] = true
		}
		if !b.used[s.Name.Value] && len(s.To) == 0 {
			b.failText(codeContract, s.Name, fmt.Sprintf("step %s goes nowhere", s.Name.Value), "add to: with a sink, or read it from another step")
		}
	}
	for _, s := range b.spec.Sources {
		if !b.used[s.Name.Value] {
			b.warn(warnUnused, s.Name, fmt.Sprintf("source %s is read by no step", s.Name.Value), "add it to a step's from:, or remove it")
		}
	}
	for _, s := range b.spec.Sinks {
		if !written[s.Name.Value] {
			b.warn(warnUnused, s.Name, fmt.Sprintf("sink %s is written by no step", s.Name.Value), "add it to a step's to:, or remove it")
		}
	}
}
