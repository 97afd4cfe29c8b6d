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
	switch {
	case len(ins) == 0: // inputs has said why
	case len(s.GroupBy) > 0 || len(s.Aggregate) > 0 || s.Window != nil:
		b.grouped(p, ins)
	default:
		b.stateless(p, ins)
	}
	if len(p.outs) == 0 {
		for _, to := range s.To {
			b.sink(to, "step "+name)
		}
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
		b.failText(codeContract, s.Name, fmt.Sprintf("step %s reads nothing", s.Name.Value), "add from: with a source or a step")
	}
	for i, from := range s.From {
		if slices.ContainsFunc(s.From[:i], func(t Text) bool { return t.Value == from.Value }) {
			b.failText(codeDuplicate, from, fmt.Sprintf("step %s reads %s twice", s.Name.Value, from.Value), "name it once")
			continue
		}
		b.used[from.Value] = true
		if b.visiting[from.Value] {
			message := fmt.Sprintf("step %s reads %s, which reads %s in turn", s.Name.Value, from.Value, s.Name.Value)
			if from.Value == s.Name.Value {
				message = fmt.Sprintf("step %s reads itself", s.Name.Value)
			}
			b.failText(codeCycle, from, message, "break the circle: a job's steps form a graph without loops")
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
	b.statelessWords(s)
	before := b.errorCount()
	var shared *stream
	for _, in := range ins {
		port := &portPlan{step: p, in: in, where: b.condition(s.Where, in, "where of step "+name)}
		if len(s.Select) == 0 {
			port.out = &stream{layout: in.layout, fields: in.fields, raw: in.raw, key: in.key, keyedBy: in.keyedBy, sourceKey: in.sourceKey, windowed: in.windowed}
			p.outs = append(p.outs, port.out)
		} else {
			programs, fields := b.selection(s.Select, in, name)
			selected := &stream{layout: expr.NewRowLayout(fields), fields: fields, key: in.key, keyedBy: selectedKey(in, s.Select), sourceKey: in.sourceKey, windowed: in.windowed}
			if shared == nil {
				shared = selected
				p.outs = append(p.outs, shared)
			} else if b.errorCount() == before {
				b.join(s, shared, selected)
			}
			port.selects, port.out = programs, shared
		}
		p.ports = append(p.ports, port)
		in.consumers = append(in.consumers, port)
	}
}

// statelessWords reports what only a grouped step can have.
func (b *builder) statelessWords(s *StepSpec) {
	name := s.Name.Value
	for _, extra := range []struct {
		pos    Pos
		length int
		what   string
	}{{s.Having.Pos, len(s.Having.Value), "having"}, {s.Emit.Pos, len(s.Emit.Value), "emit"}, {s.TTL.Pos, 0, "ttl"}} {
		if extra.length > 0 || extra.what == "ttl" && s.TTL.Set {
			b.fail(codeCombine, extra.pos, extra.length, fmt.Sprintf("step %s has %s but no aggregate", name, extra.what), "use where: to filter rows, or add group_by: and aggregate:")
		}
	}
	if s.Late != nil {
		b.fail(codeCombine, s.Late.Pos, 0, fmt.Sprintf("step %s has late: but no window", name), "remove it: without a window nothing is late")
	}
}

// join adds the rows that a step selects from a further input to those of the first. What is said of the rows
// must hold for all of them.
func (b *builder) join(s *StepSpec, shared, further *stream) {
	name := s.Name.Value
	if !sameFields(shared.fields, further.fields) {
		b.failText(codeTypes, s.Select[0].Expr, fmt.Sprintf("step %s selects other types from its inputs: %s and %s", name, fieldList(shared.fields), fieldList(further.fields)),
			"make the expressions give the same types for all inputs")
	}
	if shared.key.Kind != further.key.Kind {
		b.failText(codeTypes, s.Name, fmt.Sprintf("the keys of step %s's inputs are %s and %s", name, shared.key, further.key), "give the sources one key_format, or read them in steps of their own")
	}
	if !slices.Equal(shared.keyedBy, further.keyedBy) {
		shared.keyedBy = nil
	}
	for i := range shared.fields {
		shared.fields[i].Type.Nullable = shared.fields[i].Type.Nullable || further.fields[i].Type.Nullable
	}
	shared.sourceKey = shared.sourceKey || further.sourceKey
	shared.windowed = shared.windowed && further.windowed
}

// selection compiles select. A field whose expression is wrong may be anything, so that it brings no further findings.
func (b *builder) selection(selects []Named, in *stream, step string) ([]*expr.Program, []record.Field) {
	programs := make([]*expr.Program, len(selects))
	fields := make([]record.Field, len(selects))
	for i, n := range selects {
		fields[i] = record.Field{Name: n.Name.Value, Type: record.Type{Any: true}}
		if programs[i] = b.program(n.Expr, in, "select of step "+step); programs[i] != nil {
			fields[i].Type = programs[i].Type()
		}
		if slices.ContainsFunc(fields[:i], func(f record.Field) bool { return f.Name == n.Name.Value }) {
			b.failText(codeDuplicate, n.Name, fmt.Sprintf("two fields in select of step %s are named %s", step, n.Name.Value), "rename one")
		}
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
