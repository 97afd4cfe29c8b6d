package topology

import (
	"fmt"
	"slices"
)

// notes tells what is right but worth knowing.
func (b *builder) notes() {
	for _, s := range b.plan.sources {
		if len(s.spec.Fields) == 0 && formatOf(s.spec.Format) == "json" && len(s.out.layout.Paths()) > 0 {
			b.warn(warnOpen, s.spec.Name, fmt.Sprintf("source %s declares no fields: a misspelt field is null instead of an error", s.spec.Name.Value), "declare fields:")
		}
	}
	warned := map[*sourcePlan]bool{}
	for _, p := range b.plan.steps {
		a := p.aggregate
		if a == nil {
			continue
		}
		name := p.spec.Name
		if a.windows != nil {
			b.idleWarnings(p, warned)
			if p.spec.Emit.Value == "" {
				b.note(noteEmission, name, fmt.Sprintf("step %s does not say emit: a window gives one result, once it is final", name.Value), "write emit: final if that is meant")
			}
		}
		if ship := p.ports[0].ship; ship != nil && !b.unknown(p) {
			b.note(noteShuffle, name, fmt.Sprintf("step %s repartitions: %s", name.Value, ship.reason), "")
		}
	}
	for _, q := range b.plan.Unknown {
		b.note(noteUnknown, Text{Value: q.Expression, Pos: q.Pos}, fmt.Sprintf("source %s does not declare its key: at the first start the records of %s tell whether step %s must repartition", q.Source, q.Topic, q.Step),
			fmt.Sprintf("write key: %s on the source if that is its key", q.Expression))
	}
}

func (b *builder) unknown(p *stepPlan) bool {
	return slices.ContainsFunc(b.plan.Unknown, func(q *KeyQuestion) bool { return q.Step == p.spec.Name.Value })
}

// idleWarnings warns, once a source, of partitions that may hold windows open for ever.
func (b *builder) idleWarnings(p *stepPlan, warned map[*sourcePlan]bool) {
	for _, s := range p.sources() {
		if !s.spec.Watermark.IdleTimeout.Set && !warned[s] {
			warned[s] = true
			b.warn(warnIdle, s.spec.Name, fmt.Sprintf("source %s has no idle_timeout: one silent partition holds the windows of step %s open for ever", s.spec.Name.Value, p.spec.Name.Value),
				"add watermark: { idle_timeout: 30s }")
		}
	}
}

// sources are the sources whose records can reach a step, through whatever steps and repartition topics, in the order of
// the file.
func (p *stepPlan) sources() []*sourcePlan {
	var all []*sourcePlan
	seen := map[*stepPlan]bool{}
	var visit func(*stepPlan)
	visit = func(p *stepPlan) {
		seen[p] = true
		for _, port := range p.ports {
			switch from := port.in.from; {
			case from == nil:
				all = append(all, port.in.raw)
			case !seen[from]:
				visit(from)
			}
		}
	}
	visit(p)
	slices.SortFunc(all, func(x, y *sourcePlan) int { return x.number - y.number })
	return slices.Compact(all)
}
