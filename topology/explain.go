package topology

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// ExplainOptions is what an explanation says beyond the plan itself.
type ExplainOptions struct {
	Guarantee      string        // exactly_once or at_least_once
	CommitInterval time.Duration // how much later than computed a reader sees a result
	// ACLs asks for the list of permissions instead of the plan. The format json has both, always.
	ACLs bool
}

// ExplainFormats are the formats of Explain.
var ExplainFormats = []string{"text", "json", "mermaid", "dot"}

// Explain tells what the job is made of: for people, for programs, or as the text of a diagram. The error names a format
// that does not exist or cannot show what was asked for.
func (p *Plan) Explain(format string, o ExplainOptions) (string, error) {
	e := p.explanation(o)
	switch {
	case format == "json":
		var out strings.Builder
		enc := json.NewEncoder(&out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		err := enc.Encode(e)
		return out.String(), err
	case format == "text" && o.ACLs:
		return e.aclText(), nil
	case format == "text":
		return e.text(), nil
	case (format == "mermaid" || format == "dot") && o.ACLs:
		return "", fmt.Errorf("the permissions are no diagram: use format text or json, not %s", format)
	case format == "mermaid":
		return p.graph().mermaid(), nil
	case format == "dot":
		return p.graph().dot(p.ApplicationID), nil
	}
	return "", fmt.Errorf("format %q is not known: use one of %s", format, strings.Join(ExplainFormats, ", "))
}

// explanation is a plan in words. Its JSON keys are stable: people write programs against them.
type explanation struct {
	Application     string         `json:"application"`
	Topology        string         `json:"topology"` // the shape's fingerprint
	Guarantee       string         `json:"guarantee"`
	CommitInterval  string         `json:"commit_interval"`
	Subtopologies   []subInWords   `json:"subtopologies"`
	DeadLetterTopic string         `json:"dead_letter_topic,omitempty"`
	Errors          policyInWords  `json:"errors"`
	Undecided       []undecided    `json:"undecided,omitempty"`
	Expressions     exprsInWords   `json:"expressions"`
	ACLs            []accessInWord `json:"acls"`
}

type policyInWords struct {
	Deserialization string `json:"deserialization"`
	Processing      string `json:"processing"`
	Production      string `json:"production"`
}

type subInWords struct {
	Number       int                `json:"number"`
	Inputs       []string           `json:"inputs"` // a task for each partition of them
	Sources      []sourceInWords    `json:"sources,omitempty"`
	Steps        []stepInWords      `json:"steps,omitempty"`
	Repartitions []repartitionWords `json:"repartitions,omitempty"`
}

// undecided is a step of which only the data can tell whether it repartitions.
type undecided struct {
	Step       string `json:"step"`
	Source     string `json:"source"`
	Topic      string `json:"topic"`
	Expression string `json:"expression"`
}

type exprsInWords struct {
	Native      int           `json:"native"`
	Interpreted int           `json:"interpreted"`
	Slow        []slowInWords `json:"slow,omitempty"` // the interpreted ones
}

type slowInWords struct {
	Where      string `json:"where"`
	Expression string `json:"expression"`
}

var policyWords = []string{"fail", "skip", "dead_letter", "partition_time"}

func (p *Plan) explanation(o ExplainOptions) *explanation {
	e := &explanation{
		Application: p.ApplicationID, Topology: p.Shape(), Guarantee: o.Guarantee, CommitInterval: ShortDuration(o.CommitInterval),
		Errors:      policyInWords{policyWords[p.errors.deserialization], policyWords[p.errors.processing], policyWords[p.errors.production]},
		Expressions: p.expressions(), ACLs: p.access(o),
	}
	if p.deadLetter != nil {
		e.DeadLetterTopic = p.deadLetter.name
	}
	home := p.homes()
	for _, s := range p.Subtopologies {
		sub := subInWords{Number: s.Number}
		for _, in := range s.Inputs {
			sub.Inputs = append(sub.Inputs, in.Topic)
			if in.source != nil {
				sub.Sources = append(sub.Sources, in.source.words())
			}
		}
		for _, step := range p.steps {
			if home[step] == s {
				sub.Steps = append(sub.Steps, p.stepWords(step, o))
			}
		}
		for _, shuffle := range s.shuffles {
			sub.Repartitions = append(sub.Repartitions, shuffle.words())
		}
		e.Subtopologies = append(e.Subtopologies, sub)
	}
	for _, q := range p.Unknown {
		e.Undecided = append(e.Undecided, undecided{q.Step, q.Source, q.Topic, q.Expression})
	}
	return e
}

// homes tells in which subtopology each step does its work: behind its repartition topic, if it has one.
func (p *Plan) homes() map[*stepPlan]*Subtopology {
	home := map[*stepPlan]*Subtopology{}
	for _, s := range p.Subtopologies {
		for _, port := range s.ports {
			if port.ship == nil {
				home[port.step] = s
			} else {
				home[port.step] = port.ship.sub
			}
		}
	}
	return home
}

// expressions counts what was written, not how often it was compiled: a step with two inputs compiles each text twice.
func (p *Plan) expressions() exprsInWords {
	native := map[Pos]bool{}
	for _, c := range p.compiled {
		before, seen := native[c.text.Pos]
		native[c.text.Pos] = c.program.Native() && (before || !seen)
	}
	var e exprsInWords
	listed := map[Pos]bool{}
	for _, c := range p.compiled {
		switch at := c.text.Pos; {
		case listed[at]:
		case native[at]:
			e.Native++
		default:
			e.Interpreted++
			e.Slow = append(e.Slow, slowInWords{c.where, normal(c.text.Value)})
		}
		listed[c.text.Pos] = true
	}
	return e
}

// ShortDuration writes a duration without the zeros at its end: 1m instead of 1m0s.
func ShortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
