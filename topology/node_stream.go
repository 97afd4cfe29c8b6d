package topology

import (
	"errors"
	"fmt"

	"millrace/record"
	"millrace/topology/expr"
)

// streamNode hands rows to all that reads a stream.
type streamNode struct {
	ports []*portNode
	sinks []*sinkNode
	out   *tally // of the step; nil for a source
}

func (s *streamNode) deliver(r *record.Row) error {
	if s.out != nil {
		s.out.n++
	}
	for _, k := range s.sinks {
		if err := k.write(r); err != nil {
			return err
		}
	}
	for _, p := range s.ports {
		if err := p.process(r); err != nil {
			return err
		}
	}
	return nil
}

// node returns the stream's node, made with everything behind it at its first use.
func (in *Instance) node(s *stream) (*streamNode, error) {
	if n := in.streams[s]; n != nil {
		return n, nil
	}
	n := &streamNode{}
	in.streams[s] = n
	if s.from != nil {
		n.out = in.counter(record.Out, s.from.spec.Name.Value, "")
	}
	for _, use := range s.sinks {
		k, err := newSinkNode(in, use)
		if err != nil {
			return nil, err
		}
		n.sinks = append(n.sinks, k)
	}
	for _, plan := range s.consumers {
		p, err := newPortNode(in, plan)
		if err != nil {
			return nil, err
		}
		n.ports = append(n.ports, p)
	}
	return n, nil
}

// portNode is a step reading a stream.
type portNode struct {
	in      *Instance
	plan    *portPlan
	step    string
	where   func(*record.Row) (bool, error)
	selects []expr.Eval
	row     record.Row // of a select
	out     *streamNode

	group     []expr.Eval
	args      []expr.Eval
	folds     []expr.Eval
	values    []record.Value // of the group
	aggregate *aggregator    // keyed
	shuffle   *shuffleNode   // not keyed
	encoder   Encoder        // of a derived input, for the late topic and the repartition topic

	received, filtered, nullKey *tally
}

func newPortNode(in *Instance, plan *portPlan) (*portNode, error) {
	p := &portNode{in: in, plan: plan, step: plan.step.spec.Name.Value}
	p.received = in.counter(record.In, p.step, "")
	p.filtered = in.counter(record.Filtered, p.step, "")
	p.nullKey = in.counter(record.Dropped, p.step, "null_key")
	if plan.where != nil {
		p.where = plan.where.BindBool()
	}
	p.selects = bindAll(plan.selects)
	p.group, p.args, p.folds = bindAll(plan.group), bindAll(plan.args), bindAll(plan.folds)
	p.values = make([]record.Value, len(p.group))
	p.row.Fields = make([]record.Value, len(p.selects))
	var err error
	if plan.in.fields != nil && plan.step.aggregate != nil {
		if p.encoder, err = in.env.Formats.Encoder("json", plan.in.fields); err != nil {
			return nil, err
		}
	}
	if plan.step.aggregate == nil {
		p.out, err = in.node(plan.out)
		return p, err
	}
	if plan.ship != nil {
		for _, s := range in.shuffles {
			if s.plan == plan.ship {
				p.shuffle = s
			}
		}
		return p, nil
	}
	p.aggregate = in.aggregator(plan.step.aggregate)
	return p, nil
}

func (in *Instance) aggregator(plan *aggregatePlan) *aggregator {
	for _, a := range in.aggregates {
		if a.plan == plan {
			return a
		}
	}
	return nil
}

func bindAll(programs []*expr.Program) []expr.Eval {
	evals := make([]expr.Eval, len(programs))
	for i, p := range programs {
		if p != nil {
			evals[i] = p.Bind()
		}
	}
	return evals
}

func (p *portNode) process(r *record.Row) error {
	p.received.n++
	if p.where != nil {
		ok, err := p.where(r)
		if err != nil {
			return p.in.bad(p.in.sub.plan.errors.processing, "processing", p.step, err)
		}
		if !ok {
			p.filtered.n++
			return nil
		}
	}
	switch {
	case p.aggregate != nil:
		return p.bad(p.aggregate.add(p, r))
	case p.shuffle != nil:
		return p.bad(p.shuffle.send(p, r))
	case len(p.selects) == 0:
		return p.out.deliver(r)
	}
	return p.project(r)
}

func (p *portNode) project(r *record.Row) error {
	for i, s := range p.selects {
		v, err := s(r)
		if err != nil {
			return p.in.bad(p.in.sub.plan.errors.processing, "processing", p.step, err)
		}
		p.row.Fields[i] = v
	}
	p.row.Key, p.row.Headers, p.row.Time, p.row.Window, p.row.From = r.Key, r.Headers, r.Time, r.Window, r.From
	return p.out.deliver(&p.row)
}

// fatal marks an error that no policy may swallow: the store's, or one that a policy has already decided on.
type fatal struct{ error }

func (f fatal) Unwrap() error { return f.error }

// bad applies the processing policy to an error of this record.
func (p *portNode) bad(err error) error {
	if err == nil {
		return nil
	}
	var stop fatal
	var decided *RecordError
	if errors.As(err, &stop) || errors.As(err, &decided) {
		return err
	}
	return p.in.bad(p.in.sub.plan.errors.processing, "processing", p.step, err)
}

// groupKey evaluates the group's key onto dst; ok is false when it is null.
func (p *portNode) groupKey(dst []byte, key groupKey, r *record.Row) (result []byte, ok bool, err error) {
	for i, g := range p.group {
		if p.values[i], err = g(r); err != nil {
			return dst, false, err
		}
	}
	from := len(dst)
	dst, ok = key.append(dst, p.values)
	if !ok {
		p.nullKey.n++
		return dst, false, nil
	}
	if p.plan.verify && !sameKey(p.plan.in.key, r.Key, dst[from:]) {
		return dst, false, fatal{&RecordError{Where: p.step, Origin: p.in.origin, Kind: "processing",
			Err:    fmt.Errorf("the record's key %q is not %s, which is %q, although the source's records are said or were found to be keyed by it", r.Key, p.plan.step.spec.GroupBy[0].Expr.Value, dst[from:]),
			advice: "write the source's true key: in the configuration, or leave it out and remove the group's offsets to have it learnt again"}}
	}
	return dst, true, nil
}

// sameKey compares a record's key with a group's, which is text.
func sameKey(t record.Type, key, group []byte) bool {
	if t.Kind == record.Long && len(key) == 8 {
		n := int64(0)
		for _, b := range key {
			n = n<<8 | int64(b)
		}
		return string(appendText(nil, record.LongValue(n))) == string(group)
	}
	return key != nil && string(key) == string(group)
}
