package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"millrace/record"
	"millrace/topology/window"
)

// Fingerprint identifies what the rows of a step's store mean. A store is used again only by a step with the same one:
// another group, window or aggregate would read its rows as something that they are not. Names of fields, and what comes
// before and after the rows (where, having, select, emit, late, sinks), are no part of it.
func (p *Plan) Fingerprint(step string) string {
	text := p.Describe(step)
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
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

// Continues refuses state that was written under another plan: written has the fingerprints of the steps' stores then. A
// step without one is new.
func (p *Plan) Continues(steps []string, written map[string]string) error {
	for _, step := range steps {
		was, ok := written[step]
		if now := p.Fingerprint(step); ok && was != now {
			return fmt.Errorf("step %s has changed: its state was written under plan %s, now it is %s (%s). The ways out: give the step a new name, and it starts with new state; "+
				"or undo the change; or stop all replicas and delete %s and the other internal topics of application %s, its group and its state directories, to build everything anew from the input",
				step, was, now, p.Describe(step), p.ChangelogTopic(step), p.ApplicationID)
		}
	}
	return nil
}

func (a *aggregatePlan) describe() string {
	var group []string
	for i, text := range groupTexts(a.step.spec) {
		group = append(group, text+" "+stored(a.key.fields[i].Type))
	}
	parts := []string{"group_by " + strings.Join(group, ", ")}
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
	for _, item := range a.items {
		var args []string
		for _, arg := range item.Call.Args {
			args = append(args, normal(arg.Text))
		}
		text := fmt.Sprintf("%s(%s)", item.Call.Name, strings.Join(args, ", "))
		if len(args) > 0 {
			text += " of " + stored(item.Arg)
		}
		if item.Call.Limit > 0 {
			text += fmt.Sprintf(" limit %d", item.Call.Limit)
		}
		if item.Call.Precision > 0 {
			text += fmt.Sprintf(" precision %d", item.Call.Precision)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// stored is a type as far as stored bytes depend on it: neither on nulls, which are not stored, nor on how times are written.
func stored(t record.Type) string {
	if t.Any {
		return "any"
	}
	return t.Kind.String()
}

// Shape is the fingerprint of the whole plan: what members of a group must agree on to share its tasks.
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
