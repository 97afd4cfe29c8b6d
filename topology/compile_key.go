package topology

import (
	"fmt"
	"slices"
	"strings"

	"millrace/topology/window"
)

// keyedOrShuffled decides whether the step's rows are already where their group lives.
func (b *builder) keyedOrShuffled(p *stepPlan) {
	a := p.aggregate
	var reasons []string
	var open []*KeyQuestion
	certain := false
	for _, port := range p.ports {
		reason, question := b.keyed(p, port)
		switch {
		case question != nil:
			open = append(open, question)
			reason = fmt.Sprintf("source %s does not declare its key", question.Source)
		case reason == "":
			continue
		default:
			certain = true
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == 0 {
		return
	}
	if !certain { // otherwise the answers would change nothing
		b.plan.Unknown = append(b.plan.Unknown, open...)
	}
	shuffle := &shufflePlan{step: p, topic: b.topic(b.plan.RepartitionTopic(p.spec.Name.Value)), reason: strings.Join(reasons, "; ")}
	shuffle.combine = a.set.Mergeable() && a.ttl == 0 && (a.windows == nil || a.windows.Kind == window.Tumbling || a.slices)
	for _, port := range p.ports {
		port.keyed, port.verify, port.ship = false, false, shuffle
		shuffle.ports = append(shuffle.ports, port)
	}
}

// keyed tells, with neither a reason nor a question, that the key of the port's rows is the group's key.
func (b *builder) keyed(p *stepPlan, port *portPlan) (reason string, question *KeyQuestion) {
	texts := groupTexts(p.spec)
	group := strings.Join(texts, ", ")
	in := port.in
	switch {
	case len(texts) == 1 && texts[0] == "key":
		port.keyed = true
		return "", nil
	case in.keyedBy != nil && strings.Join(in.keyedBy, ", ") == group:
		port.keyed, port.verify = true, in.sourceKey
		return "", nil
	case in.keyedBy != nil:
		return fmt.Sprintf("the key is %s, group_by is %s", strings.Join(in.keyedBy, ", "), group), nil
	case in.raw == nil || len(texts) > 1:
		return fmt.Sprintf("the key is not known, group_by is %s", group), nil
	}
	src := in.raw.spec
	learnt, ok := b.options.Keyed[p.spec.Name.Value]
	switch {
	case !ok:
		return "", &KeyQuestion{Step: p.spec.Name.Value, Source: src.Name.Value, Topic: src.Topic.Value, Expression: group, Pos: p.spec.GroupBy[0].Expr.Pos, port: port}
	case learnt:
		port.keyed, port.verify = true, true
		return "", nil
	}
	return fmt.Sprintf("the records' key is not %s", group), nil
}

// groupTexts are the expressions of group_by, in a form that can be compared.
func groupTexts(s *StepSpec) []string {
	var texts []string
	for _, g := range s.GroupBy {
		texts = append(texts, normal(g.Expr.Value))
	}
	return texts
}
