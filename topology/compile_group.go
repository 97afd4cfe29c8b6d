package topology

import (
	"fmt"
	"strings"
	"time"

	"millrace/record"
	"millrace/topology/aggregate"
	"millrace/topology/expr"
	"millrace/topology/window"
)

// grouped compiles a step with group_by and aggregate.
func (b *builder) grouped(p *stepPlan, ins []*stream) {
	s := p.spec
	name := s.Name.Value
	if len(s.GroupBy) == 0 {
		b.fail(codeContract, s.Name.Pos, len(name), fmt.Sprintf("step %s aggregates without group_by", name), "add group_by:")
		return
	}
	if len(s.Aggregate) == 0 {
		b.fail(codeContract, s.Name.Pos, len(name), fmt.Sprintf("step %s groups without aggregate", name), "add aggregate:, for example { count: count() }")
		return
	}
	a := &aggregatePlan{step: p}
	p.aggregate = a
	calls := b.calls(s)
	for i, in := range ins {
		port := b.groupPort(p, in, calls)
		if port == nil {
			return
		}
		if i == 0 {
			b.shape(a, port, calls)
		} else {
			b.agree(a, port, calls)
		}
		p.ports = append(p.ports, port)
		in.consumers = append(in.consumers, port)
	}
	b.windows(a)
	b.contracts(a)
	if a.set == nil || b.failed() {
		return
	}
	a.slices = a.windows != nil && a.windows.Kind == window.Hopping && a.set.Mergeable() && a.emit != emitCorrections
	b.keyedOrShuffled(p)
	b.result(a)
}

type call struct {
	name string
	text Text
	call aggregate.Call
}

func (b *builder) calls(s *StepSpec) []call {
	var calls []call
	for _, n := range s.Aggregate {
		c, err := aggregate.Parse(n.Expr.Value)
		if err != nil {
			b.expression(codeAggregate, n.Expr, "aggregate "+n.Name.Value+" of step "+s.Name.Value, err)
			continue
		}
		calls = append(calls, call{n.Name.Value, n.Expr, c})
	}
	return calls
}

func (b *builder) groupPort(p *stepPlan, in *stream, calls []call) *portPlan {
	s := p.spec
	name := s.Name.Value
	port := &portPlan{step: p, in: in, where: b.condition(s.Where, in, "where of step "+name)}
	for _, g := range s.GroupBy {
		program := b.program(g.Expr, in, "group_by of step "+name)
		if program == nil {
			return nil
		}
		port.group = append(port.group, program)
	}
	for _, c := range calls {
		var arg, fold *expr.Program
		where := "aggregate " + c.name + " of step " + name
		if n := len(c.call.Args); n > 0 {
			last := c.call.Args[n-1]
			text := Text{Value: last.Text, Pos: c.text.Pos}
			text.Pos.Col += last.Offset
			if c.call.Name == "fold" {
				fold = b.fold(c, text, in, where)
				if fold == nil {
					return nil
				}
			} else if arg = b.program(text, in, where); arg == nil {
				return nil
			}
		}
		port.args = append(port.args, arg)
		port.folds = append(port.folds, fold)
	}
	return port
}

// fold compiles a fold's expression with acc of the type that the initial value has.
func (b *builder) fold(c call, text Text, in *stream, where string) *expr.Program {
	init := b.foldInit(c, where)
	if init == nil {
		return nil
	}
	t := init.Type()
	if t.Kind <= record.Null {
		t = record.Type{Any: true}
	}
	scope := in.scope()
	scope.Acc = &t
	return b.compiled(text, where, func() (*expr.Program, error) { return expr.Compile(text.Value, scope) })
}

func (b *builder) foldInit(c call, where string) *expr.Program {
	text := Text{Value: c.call.Args[0].Text, Pos: c.text.Pos}
	text.Pos.Col += c.call.Args[0].Offset
	return b.compiled(text, where, func() (*expr.Program, error) { return expr.Compile(text.Value, expr.Scope{}) })
}

// shape takes the group's fields and the aggregates' types from the first input.
func (b *builder) shape(a *aggregatePlan, port *portPlan, calls []call) {
	for i, program := range port.group {
		g := a.step.spec.GroupBy[i]
		field := record.Field{Name: g.Name.Value, Type: program.Type()}
		if field.Name == "" {
			if g.Expr.Value == "key" {
				field.Name = "key"
			} else if path, ok := program.FieldPath(); ok && len(path) > 0 {
				field.Name = path[len(path)-1]
			} else {
				b.failText(codeContract, g.Expr, fmt.Sprintf("group_by of step %s needs a name for this expression", a.step.spec.Name.Value), "write group_by: { name: expression }")
			}
		}
		if field.Type.Kind == record.List || field.Type.Kind == record.Map {
			b.failText(codeExpression, g.Expr, fmt.Sprintf("group_by of step %s is a %s", a.step.spec.Name.Value, field.Type), "group by plain values")
		}
		a.key.fields = append(a.key.fields, field)
	}
	if len(calls) != len(a.step.spec.Aggregate) {
		return
	}
	a.items = b.items(port, calls)
	set, err := aggregate.NewSet(a.items)
	if err != nil {
		b.aggregateError(a, err)
		return
	}
	a.set = set
}

func (b *builder) aggregateError(a *aggregatePlan, err error) {
	at := a.step.spec.Aggregate[0]
	if e, ok := err.(*aggregate.Error); ok {
		for _, n := range a.step.spec.Aggregate {
			if n.Name.Value == e.Item {
				at = n
			}
		}
	}
	b.expression(codeAggregate, at.Expr, "aggregate "+at.Name.Value+" of step "+a.step.spec.Name.Value, err)
}

func (b *builder) items(port *portPlan, calls []call) []aggregate.Item {
	var items []aggregate.Item
	for i, c := range calls {
		item := aggregate.Item{Name: c.name, Call: c.call}
		if port.args[i] != nil {
			item.Arg = port.args[i].Type()
		}
		if f := port.folds[i]; f != nil {
			item.Arg, item.Eval = f.Type(), f.Bind()
			if init := b.foldInit(c, c.name); init != nil {
				v, err := init.Bind()(&record.Row{})
				if err != nil {
					b.expression(codeAggregate, c.text, "aggregate "+c.name, err)
				}
				item.Init = v
			}
		}
		items = append(items, item)
	}
	return items
}

// agree checks that a further input gives the same types as the first.
func (b *builder) agree(a *aggregatePlan, port *portPlan, calls []call) {
	for i, program := range port.group {
		if want := a.key.fields[i].Type; program.Type().Kind != want.Kind || program.Type().Any != want.Any {
			b.failText(codeTypes, a.step.spec.GroupBy[i].Expr, fmt.Sprintf("group_by of step %s is %s for one input and %s for another", a.step.spec.Name.Value, want, program.Type()), "make the inputs agree")
		}
	}
	for i, item := range a.items {
		var t record.Type
		if port.args[i] != nil {
			t = port.args[i].Type()
		} else if port.folds[i] != nil {
			t = port.folds[i].Type()
		} else {
			continue
		}
		if t.Kind != item.Arg.Kind || t.Any != item.Arg.Any {
			b.failText(codeTypes, calls[i].text, fmt.Sprintf("aggregate %s of step %s takes %s from one input and %s from another", item.Name, a.step.spec.Name.Value, item.Arg, t), "make the inputs agree")
		}
	}
}

func (b *builder) windows(a *aggregatePlan) {
	w := a.step.spec.Window
	name := a.step.spec.Name.Value
	if w == nil {
		return
	}
	spec := window.Spec{Size: w.Size.Value.Milliseconds(), Advance: w.Advance.Value.Milliseconds(), Offset: w.Offset.Value.Milliseconds(), Lateness: w.AllowedLateness.Value.Milliseconds()}
	if b.choice(w.Type, "window type of step "+name, "tumbling", "hopping") == 1 {
		spec.Kind = window.Hopping
		if !w.Advance.Set {
			b.fail(codeContract, w.Pos, 0, fmt.Sprintf("hopping window of step %s has no advance", name), "add advance:, how far apart the windows start")
			return
		}
	} else {
		if w.Advance.Set {
			b.fail(codeCombine, w.Advance.Pos, 0, fmt.Sprintf("tumbling window of step %s has an advance", name), "write type: hopping for overlapping windows")
		}
		spec.Advance = spec.Size
	}
	if w.Type.Value == "" {
		b.fail(codeContract, w.Pos, 0, fmt.Sprintf("window of step %s has no type", name), "add type: tumbling or type: hopping")
	}
	if !w.Size.Set {
		b.fail(codeContract, w.Pos, 0, fmt.Sprintf("window of step %s has no size", name), "add size:, for example 1m")
		return
	}
	if w.TimeZone.Value != "" {
		location, err := time.LoadLocation(w.TimeZone.Value)
		if err != nil {
			b.failText(codeWindow, w.TimeZone, fmt.Sprintf("time zone %q of step %s is not known", w.TimeZone.Value, name), "use an IANA name such as Europe/Berlin")
		} else {
			spec.Location = location
		}
	}
	if err := spec.Validate(); err != nil {
		b.fail(codeWindow, w.Pos, 0, fmt.Sprintf("step %s: %v", name, err), "")
		return
	}
	a.windows = &spec
}

// contracts checks what must be written: how late is too late, and how long state is kept.
func (b *builder) contracts(a *aggregatePlan) {
	s := a.step.spec
	name := s.Name.Value
	modes := []string{"final", "final_with_corrections", "changes"}
	if s.Window == nil {
		modes = []string{"changes"}
		if s.Late != nil {
			b.fail(codeCombine, s.Late.Pos, 0, fmt.Sprintf("step %s has late: but no window", name), "remove it: without a window nothing is late")
		}
		switch {
		case !s.TTL.Set && !s.TTL.Forever:
			b.fail(codeContract, s.Name.Pos, len(name), fmt.Sprintf("step %s keeps a row a group and does not say how long", name), "add ttl: 24h, or ttl: forever if the groups are bounded")
		case !s.TTL.Forever:
			a.ttl = max(s.TTL.Value.Milliseconds(), 1)
		}
		b.choice(s.Emit, "emit of step "+name+", which has no window,", modes...)
		a.emit = emitChanges
		return
	}
	if s.TTL.Set || s.TTL.Forever {
		b.fail(codeCombine, s.TTL.Pos, 0, fmt.Sprintf("step %s has a ttl beside a window", name), "remove ttl: a window's rows end with it")
	}
	a.emit = emitMode(b.choice(s.Emit, "emit of step "+name, modes...))
	a.revision = a.emit == emitCorrections
	switch {
	case s.Late == nil:
		b.fail(codeContract, s.Window.Pos, 0, fmt.Sprintf("step %s has a window and does not say what late records get", name), "add late: { to: SINK } or late: { policy: drop }")
	case s.Late.To.Value != "":
		if sink := b.sink(s.Late.To, "late of step "+name); sink != nil {
			a.late.to = &sinkUse{sink: sink}
		}
	case s.Late.Policy.Value != "drop":
		b.fail(codeContract, s.Late.Pos, 0, fmt.Sprintf("late of step %s is %q", name, s.Late.Policy.Value), "write late: { to: SINK } or late: { policy: drop }")
	}
}

// keyedOrShuffled decides whether the step's rows are already where their group lives.
func (b *builder) keyedOrShuffled(p *stepPlan) {
	a := p.aggregate
	var reasons []string
	for _, port := range p.ports {
		if reason := b.keyed(p, port); reason != "" {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == 0 {
		return
	}
	name := p.spec.Name.Value
	shuffle := &shufflePlan{step: p, topic: b.topic(b.plan.ApplicationID + "-" + name + "-repartition"), reason: strings.Join(reasons, "; ")}
	shuffle.combine = a.set.Mergeable() && a.ttl == 0 && (a.windows == nil || a.windows.Kind == window.Tumbling || a.slices)
	for _, port := range p.ports {
		port.keyed, port.verify, port.ship = false, false, shuffle
		shuffle.ports = append(shuffle.ports, port)
	}
}

// keyed tells, with an empty reason, that the key of the port's rows is the group's key.
func (b *builder) keyed(p *stepPlan, port *portPlan) (reason string) {
	var texts []string
	for _, g := range p.spec.GroupBy {
		texts = append(texts, normal(g.Expr.Value))
	}
	group := strings.Join(texts, ", ")
	if len(texts) == 1 && texts[0] == "key" {
		port.keyed = true
		return ""
	}
	if port.in.keyedBy != nil {
		if strings.Join(port.in.keyedBy, ", ") == group {
			port.keyed, port.verify = true, port.in.sourceKey
			return ""
		}
		return fmt.Sprintf("the key is %s, group_by is %s", strings.Join(port.in.keyedBy, ", "), group)
	}
	if port.in.raw == nil || len(texts) > 1 {
		return fmt.Sprintf("the key is not known, group_by is %s", group)
	}
	learnt, ok := b.options.Keyed[p.spec.Name.Value]
	if !ok {
		src := port.in.raw.spec
		b.plan.Unknown = append(b.plan.Unknown, &KeyQuestion{Step: p.spec.Name.Value, Source: src.Name.Value, Topic: src.Topic.Value, Expression: group, Pos: p.spec.GroupBy[0].Expr.Pos, port: port})
		return fmt.Sprintf("source %s does not declare its key", src.Name.Value)
	}
	if learnt {
		port.keyed, port.verify = true, true
		return ""
	}
	return fmt.Sprintf("the records' key is not %s", group)
}

// result lays out the rows that the aggregation puts out.
func (b *builder) result(a *aggregatePlan) {
	s := a.step.spec
	name := s.Name.Value
	fields := append([]record.Field(nil), a.key.fields...)
	time := record.Type{Kind: record.Time, Form: b.timeForm(a)}
	if a.windows != nil {
		fields = append(fields, record.Field{Name: "window_start", Type: time}, record.Field{Name: "window_end", Type: time})
	}
	fields = append(fields, a.set.Fields()...)
	if a.revision {
		fields = append(fields, record.Field{Name: "revision", Type: record.Type{Kind: record.Long}}, record.Field{Name: "final", Type: record.Type{Kind: record.Bool}})
	}
	seen := map[string]bool{}
	for _, f := range fields {
		if seen[f.Name] {
			b.fail(codeDuplicate, s.Name.Pos, len(name), fmt.Sprintf("two result fields of step %s are named %s", name, f.Name), "rename the aggregate, or name the group: group_by: { other: expression }")
		}
		seen[f.Name] = true
	}
	a.fields = fields
	row := &stream{layout: expr.NewRowLayout(fields), fields: fields, key: record.Type{Kind: record.String}, windowed: a.windows != nil}
	for _, f := range a.key.fields {
		row.keyedBy = append(row.keyedBy, "value."+f.Name)
	}
	a.having = b.condition(s.Having, row, "having of step "+name)
	out := row
	if len(s.Select) > 0 {
		programs, selected := b.selection(s.Select, row, name)
		a.selects = programs
		out = &stream{layout: expr.NewRowLayout(selected), fields: selected, key: row.key, keyedBy: selectedKey(row, s.Select), windowed: row.windowed}
	}
	a.out = out
	a.step.outs = []*stream{out}
}

// timeForm is how window bounds are written: as the source writes its own times.
func (b *builder) timeForm(a *aggregatePlan) record.TimeForm {
	for _, port := range a.step.ports {
		if raw := port.in.raw; raw != nil && raw.time != nil && raw.time.Type().Kind == record.Time {
			return raw.time.Type().Form
		}
	}
	return record.EpochMillis
}
