package topology

import "fmt"

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
	b.circles()
}

// circles refuses rows that come back to where they were repartitioned: the tasks there would wait for a time that only
// they themselves can move on.
func (b *builder) circles() {
	for _, sub := range b.plan.Subtopologies {
		for _, shuffle := range sub.shuffles {
			if reaches(shuffle.sub, sub, map[*Subtopology]bool{}) {
				name := shuffle.step.spec.Name
				b.failText(codeCycle, name, fmt.Sprintf("step %s repartitions, and a step behind it reads its results together with rows from before the repartition", name.Value),
					"write one of the two to a topic, and read that in a job of its own")
			}
		}
	}
}

func reaches(from, to *Subtopology, seen map[*Subtopology]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	for _, shuffle := range from.shuffles {
		if !seen[shuffle.sub] && reaches(shuffle.sub, to, seen) {
			return true
		}
	}
	return false
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
