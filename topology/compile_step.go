package topology

import (
	"fmt"
	"slices"
	"strings"

	"millrace/record"
	"millrace/topology/expr"
)

// step compiles a step after the steps that it reads.
func (b *builder) step(s *StepSpec) {
	name := s.Name.Value
	if _, done := b.streams[name]; done {
		return
	}
	if b.visiting[name] {
		return // inputs reports the circle
	}
	b.visiting[name] = true
	defer delete(b.visiting, name)
	ins := b.inputs(s)
	p := &stepPlan{spec: s}
	b.plan.steps = append(b.plan.steps, p)
	if len(ins) == 0 {
		b.streams[name] = nil
		return
	}
	if len(s.GroupBy) > 0 || len(s.Aggregate) > 0 || s.Window != nil {
		b.grouped(p, ins)
	} else {
		b.stateless(p, ins)
	}
	for _, out := range p.outs {
		out.from = p
		for _, to := range s.To {
			b.use(to, out, "step "+name)
		}
	}
	b.streams[name] = p.outs
}

// inputs resolves `from:`.
func (b *builder) inputs(s *StepSpec) []*stream {
	var ins []*stream
	if len(s.From) == 0 {
		b.fail(codeContract, s.Name.Pos, len(s.Name.Value), fmt.Sprintf("step %s reads nothing", s.Name.Value), "add from: with a source or a step")
	}
	for i, from := range s.From {
		if slices.ContainsFunc(s.From[:i], func(t Text) bool { return t.Value == from.Value }) {
			b.failText(codeDuplicate, from, fmt.Sprintf("step %s reads %s twice", s.Name.Value, from.Value), "name it once")
			continue
		}
		if b.visiting[from.Value] {
			b.failText(codeCycle, from, fmt.Sprintf("step %s reads %s, which reads %s in turn", s.Name.Value, from.Value, s.Name.Value), "break the circle: a job's steps form a graph without loops")
			continue
		}
		if i := slices.IndexFunc(b.spec.Steps, func(x StepSpec) bool { return x.Name.Value == from.Value }); i >= 0 {
			b.step(&b.spec.Steps[i])
		}
		streams, ok := b.streams[from.Value]
		if !ok {
			b.failText(codeUnknown, from, fmt.Sprintf("step %s reads %q, which is no source and no step", s.Name.Value, from.Value), nearest(from.Value, b.readable()))
			continue
		}
		b.used[from.Value] = true
		ins = append(ins, streams...)
	}
	return ins
}

func (b *builder) readable() []string {
	var names []string
	for _, s := range b.spec.Sources {
		names = append(names, s.Name.Value)
	}
	for _, s := range b.spec.Steps {
		names = append(names, s.Name.Value)
	}
	return names
}

// stateless compiles where and select. Without select the rows go on as they came, each input in its own layout.
func (b *builder) stateless(p *stepPlan, ins []*stream) {
	s := p.spec
	name := s.Name.Value
	for _, extra := range []struct {
		t    Text
		what string
	}{{s.Having, "having"}, {s.Emit, "emit"}} {
		if extra.t.Value != "" {
			b.failText(codeCombine, extra.t, fmt.Sprintf("step %s has %s but no aggregate", name, extra.what), "use where: to filter rows, or add group_by: and aggregate:")
		}
	}
	if s.Late != nil {
		b.fail(codeCombine, s.Late.Pos, 4, fmt.Sprintf("step %s has late: but no window", name), "remove it: without a window nothing is late")
	}
	var shared *stream
	for _, in := range ins {
		port := &portPlan{step: p, in: in, where: b.condition(s.Where, in, "where of step "+name)}
		if len(s.Select) == 0 {
			port.out = &stream{layout: in.layout, fields: in.fields, raw: in.raw, key: in.key, keyedBy: in.keyedBy, sourceKey: in.sourceKey, windowed: in.windowed}
			p.outs = append(p.outs, port.out)
		} else {
			programs, fields := b.selection(s.Select, in, name)
			if shared == nil {
				shared = &stream{layout: expr.NewRowLayout(fields), fields: fields, key: in.key, keyedBy: selectedKey(in, s.Select), sourceKey: in.sourceKey, windowed: in.windowed}
				p.outs = append(p.outs, shared)
			} else if !sameFields(shared.fields, fields) {
				b.failText(codeTypes, s.Select[0].Expr, fmt.Sprintf("step %s selects other types from its inputs: %s and %s", name, fieldList(shared.fields), fieldList(fields)), "make the expressions give the same types for all inputs")
			} else if !slices.Equal(shared.keyedBy, selectedKey(in, s.Select)) {
				shared.keyedBy = nil
			}
			port.selects, port.out = programs, shared
		}
		p.ports = append(p.ports, port)
		in.consumers = append(in.consumers, port)
	}
}

func (b *builder) selection(selects []Named, in *stream, step string) ([]*expr.Program, []record.Field) {
	var programs []*expr.Program
	var fields []record.Field
	for _, n := range selects {
		p := b.program(n.Expr, in, "select of step "+step)
		if p == nil {
			continue
		}
		programs = append(programs, p)
		fields = append(fields, record.Field{Name: n.Name.Value, Type: p.Type()})
	}
	return programs, fields
}

// selectedKey tells what the key is called after a select: the key itself is not changed by it.
func selectedKey(in *stream, selects []Named) []string {
	if in.keyedBy == nil {
		return nil
	}
	renamed := make([]string, len(in.keyedBy))
	for i, k := range in.keyedBy {
		if k == "key" {
			renamed[i] = k
		}
		for _, n := range selects {
			if normal(n.Expr.Value) == k {
				renamed[i] = "value." + n.Name.Value
			}
		}
		if renamed[i] == "" {
			return nil
		}
	}
	return renamed
}

func fieldList(fields []record.Field) string {
	var parts []string
	for _, f := range fields {
		parts = append(parts, f.Name+" "+f.Type.String())
	}
	return strings.Join(parts, ", ")
}
