package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"millrace/record"
	"millrace/topology/window"
)

// subtopologies groups what is joined without a topic between: sources with the steps that read them, steps with the
// steps that read them, up to the repartition topics.
func (b *builder) subtopologies() {
	g := newGroups()
	for _, s := range b.plan.sources {
		g.add(s)
	}
	for _, p := range b.plan.steps {
		g.add(p)
	}
	for _, p := range b.plan.steps {
		var shipped any
		for _, port := range p.ports {
			origin := b.origin(port.in)
			switch {
			case port.ship == nil:
				g.join(origin, p)
			case shipped != nil:
				g.join(shipped, origin) // one repartition topic is written by one subtopology
			default:
				shipped = origin
			}
		}
	}
	number := map[any]*Subtopology{}
	sub := func(x any) *Subtopology {
		root := g.find(x)
		if number[root] == nil {
			number[root] = &Subtopology{Number: len(b.plan.Subtopologies), plan: b.plan}
			b.plan.Subtopologies = append(b.plan.Subtopologies, number[root])
		}
		return number[root]
	}
	for _, s := range b.plan.sources {
		if b.used[s.spec.Name.Value] {
			b.addSource(sub(s), s)
		}
	}
	for _, p := range b.plan.steps {
		b.addStep(p, sub)
	}
}

// origin is the source or step that a stream comes from.
func (b *builder) origin(s *stream) any {
	if s.from != nil {
		return s.from
	}
	return s.raw
}

func (b *builder) addSource(sub *Subtopology, s *sourcePlan) {
	s.sub = sub
	topic := s.spec.Topic.Value
	for _, other := range b.plan.Subtopologies {
		for _, in := range other.Inputs {
			if in.Topic == topic {
				b.failText(codeDuplicate, s.spec.Topic, fmt.Sprintf("sources %s and %s both read topic %s", in.Source, s.spec.Name.Value, topic), "read it once and let several steps use the source")
				return
			}
		}
	}
	sub.Inputs = append(sub.Inputs, &Input{Topic: topic, Source: s.spec.Name.Value, source: s})
}

func (b *builder) addStep(p *stepPlan, sub func(any) *Subtopology) {
	for _, port := range p.ports {
		at := sub(p)
		if port.ship != nil {
			at = sub(b.origin(port.in))
		}
		at.ports = append(at.ports, port)
	}
	a := p.aggregate
	if a == nil {
		return
	}
	a.sub = sub(p)
	a.store = len(a.sub.Stores)
	a.sub.Stores = append(a.sub.Stores, p.spec.Name.Value)
	a.sub.aggregates = append(a.sub.aggregates, a)
	for _, port := range p.ports {
		a.upstream = append(a.upstream, port.in)
	}
	if shuffle := p.ports[0].ship; shuffle != nil {
		shuffle.sub, shuffle.from = a.sub, sub(b.origin(p.ports[0].in))
		shuffle.from.shuffles = append(shuffle.from.shuffles, shuffle)
		a.sub.Inputs = append(a.sub.Inputs, &Input{Topic: shuffle.topic.name, Step: p.spec.Name.Value, shuffle: shuffle})
	}
}

// groups is a union-find over sources and steps.
type groups struct{ parent map[any]any }

func newGroups() *groups { return &groups{map[any]any{}} }

func (g *groups) add(x any) { g.parent[x] = x }

func (g *groups) find(x any) any {
	for g.parent[x] != x {
		x = g.parent[x]
	}
	return x
}

func (g *groups) join(x, y any) {
	if a, b := g.find(x), g.find(y); a != b {
		g.parent[b] = a
	}
}

// notes tells what is right but worth knowing.
func (b *builder) notes() {
	for _, s := range b.plan.sources {
		if len(s.spec.Fields) == 0 && s.spec.Format.Value != "string" && s.spec.Format.Value != "long" && s.spec.Format.Value != "bytes" && len(s.out.layout.Paths()) > 0 {
			b.warn(warnOpen, s.spec.Name.Pos, fmt.Sprintf("source %s declares no fields: a misspelt field is null instead of an error", s.spec.Name.Value), "declare fields:")
		}
	}
	for _, p := range b.plan.steps {
		a := p.aggregate
		if a == nil {
			continue
		}
		if a.windows != nil {
			b.idleNote(a)
		}
		if ship := p.ports[0].ship; ship != nil && !b.unknown(p) {
			b.note(noteShuffle, p.spec.Name.Pos, fmt.Sprintf("step %s repartitions: %s", p.spec.Name.Value, ship.reason), "")
		}
	}
	for _, q := range b.plan.Unknown {
		b.note(noteUnknown, q.Pos, fmt.Sprintf("source %s does not declare its key: at the first start the records of %s tell whether step %s must repartition", q.Source, q.Topic, q.Step),
			fmt.Sprintf("write key: %s on the source if that is its key", q.Expression))
	}
}

func (b *builder) unknown(p *stepPlan) bool {
	for _, q := range b.plan.Unknown {
		if q.Step == p.spec.Name.Value {
			return true
		}
	}
	return false
}

func (b *builder) idleNote(a *aggregatePlan) {
	for _, in := range a.sub.Inputs {
		if in.source != nil && !in.source.spec.Watermark.IdleTimeout.Set {
			b.warn(warnIdle, in.source.spec.Name.Pos, fmt.Sprintf("source %s has no idle_timeout: one silent partition holds the windows of step %s open for ever", in.Source, a.step.spec.Name.Value),
				"add watermark: { idle_timeout: 30s }")
		}
	}
}

// Fingerprint identifies what the rows of a step's store mean. A store is used again only by a step with the same one:
// another group, window or aggregate would read its rows as something that they are not.
func (p *Plan) Fingerprint(step string) string {
	for _, s := range p.steps {
		if s.spec.Name.Value == step && s.aggregate != nil {
			sum := sha256.Sum256([]byte(s.aggregate.describe()))
			return hex.EncodeToString(sum[:6])
		}
	}
	return ""
}

// Describe tells in words what a step's Fingerprint stands for.
func (p *Plan) Describe(step string) string {
	for _, s := range p.steps {
		if s.spec.Name.Value == step && s.aggregate != nil {
			return s.aggregate.describe()
		}
	}
	return ""
}

func (a *aggregatePlan) describe() string {
	parts := []string{"group_by " + fieldList(a.key.fields)}
	if w := a.windows; w != nil {
		kind := "tumbling"
		if w.Kind == window.Hopping {
			kind = "hopping"
		}
		if a.slices {
			kind += " by slices"
		}
		parts = append(parts, fmt.Sprintf("window %s size %dms advance %dms offset %dms", kind, w.Size, w.Advance, w.Offset))
		if w.Location != nil {
			parts = append(parts, "in "+w.Location.String())
		}
	}
	for i, item := range a.items {
		text := item.Name + " " + item.Call.Name
		if item.Arg.Any || item.Arg.Kind > record.Null {
			text += " of " + item.Arg.String()
		}
		if item.Call.Limit > 0 {
			text += fmt.Sprintf(" limit %d", item.Call.Limit)
		}
		if item.Call.Precision > 0 {
			text += fmt.Sprintf(" precision %d", item.Call.Precision)
		}
		if item.Call.Name == "fold" {
			text += " " + normal(a.step.spec.Aggregate[i].Expr.Value)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// Fingerprint of the whole plan: what members of a group must agree on to share its tasks.
func (p *Plan) Shape() string {
	var text strings.Builder
	for _, s := range p.Subtopologies {
		for _, in := range s.Inputs {
			fmt.Fprintf(&text, "%d<%s;", s.Number, in.Topic)
		}
		for _, store := range s.Stores {
			fmt.Fprintf(&text, "%d=%s:%s;", s.Number, store, p.Fingerprint(store))
		}
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:4])
}
