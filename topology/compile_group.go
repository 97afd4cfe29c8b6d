package topology

import (
	"errors"
	"fmt"

	"millrace/record"
	"millrace/topology/aggregate"
	"millrace/topology/expr"
	"millrace/topology/window"
)

// grouped compiles a step with group_by and aggregate.
func (b *builder) grouped(p *stepPlan, ins []*stream) {
	s := p.spec
	name := s.Name.Value
	before := b.errorCount()
	a := &aggregatePlan{step: p}
	p.aggregate = a
	if len(s.GroupBy) == 0 {
		b.failText(codeContract, s.Name, fmt.Sprintf("step %s has a window or aggregates without group_by", name), "add group_by:")
	}
	if len(s.Aggregate) == 0 {
		b.failText(codeContract, s.Name, fmt.Sprintf("step %s groups without aggregate", name), "add aggregate:, for example { count: count() }")
	}
	b.windows(a)
	b.contracts(a)
	b.lateSink(a, ins)
	calls := b.calls(s)
	for _, in := range ins {
		port := b.groupPort(p, in, calls)
		if port == nil {
			continue
		}
		if len(p.ports) == 0 {
			b.shape(a, port, calls)
		} else {
			b.agree(a, port, calls)
		}
		p.ports = append(p.ports, port)
		in.consumers = append(in.consumers, port)
	}
	if b.errorCount() > before {
		return // without outs, so that the steps behind bring no errors of their own
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

// groupPort compiles a grouped step for one of its inputs; nil after findings.
func (b *builder) groupPort(p *stepPlan, in *stream, calls []call) *portPlan {
	s := p.spec
	name := s.Name.Value
	before := b.errorCount()
	port := &portPlan{step: p, in: in, where: b.condition(s.Where, in, "where of step "+name)}
	for _, g := range s.GroupBy {
		port.group = append(port.group, b.program(g.Expr, in, "group_by of step "+name))
	}
	for _, c := range calls {
		var arg, fold *expr.Program
		where := "aggregate " + c.name + " of step " + name
		if n := len(c.call.Args); n > 0 {
			last := c.call.Args[n-1]
			if c.call.Name == "fold" {
				fold = b.fold(c, last, in, where)
			} else {
				arg = b.argument(c, last, in.scope(), where)
			}
		}
		port.args = append(port.args, arg)
		port.folds = append(port.folds, fold)
	}
	if b.errorCount() > before {
		return nil
	}
	return port
}

// argument compiles an argument of an aggregate; nil after a finding.
func (b *builder) argument(c call, arg aggregate.Arg, scope expr.Scope, where string) *expr.Program {
	p, err := expr.Compile(arg.Text, scope)
	if err != nil {
		var e *expr.Error
		if errors.As(err, &e) {
			e.Offset += arg.Offset // the finding's place is counted from where the call begins
		}
		b.expression(codeExpression, c.text, where, err)
		return nil
	}
	pos, _ := place(c.text, arg.Offset, 0)
	b.plan.compiled = append(b.plan.compiled, compiledText{Text{Value: arg.Text, Pos: pos}, where, p})
	return p
}

// fold compiles a fold's expression with acc of the type that the initial value has.
func (b *builder) fold(c call, arg aggregate.Arg, in *stream, where string) *expr.Program {
	init := b.argument(c, c.call.Args[0], expr.Scope{}, where)
	if init == nil {
		return nil
	}
	t := init.Type()
	if t.Kind <= record.Null {
		t = record.Type{Any: true}
	}
	scope := in.scope()
	scope.Acc = &t
	return b.argument(c, arg, scope, where)
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
			if init := b.argument(c, c.call.Args[0], expr.Scope{}, "aggregate "+c.name); init != nil {
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
			b.failText(codeDuplicate, s.Name, fmt.Sprintf("two result fields of step %s are named %s", name, f.Name), "rename the aggregate, or name the group: group_by: { other: expression }")
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
