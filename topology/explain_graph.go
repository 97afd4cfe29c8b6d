package topology

import (
	"fmt"
	"slices"
	"strings"
)

// graph is a plan as a diagram: nodes by subtopology, and arrows.
type graph struct {
	subs  [][]graphNode // by number
	sinks []graphNode
	edges []graphEdge
}

type nodeKind uint8

const (
	topicNode nodeKind = iota
	stepNode
	repartitionNode
	storeNode
)

// graphNode has lines of text for its label. Its id begins with its kind, since a source, a step and a sink may share
// a name, and since the languages of diagrams reserve words.
type graphNode struct {
	id    string
	kind  nodeKind
	label []string
}

// quoted is the label in a language of diagrams.
func (n graphNode) quoted(quote *strings.Replacer, newline string) string {
	var lines []string
	for _, line := range n.label {
		lines = append(lines, quote.Replace(line))
	}
	return strings.Join(lines, newline)
}

type graphEdge struct {
	from, to, label string
	store           bool // not an arrow
}

func (p *Plan) graph() *graph {
	g := &graph{}
	for range p.Subtopologies {
		g.subs = append(g.subs, nil)
	}
	for _, s := range p.sources {
		if s.sub != nil {
			g.put(s.sub, graphNode{"source_" + s.spec.Name.Value, topicNode, []string{s.spec.Topic.Value}})
		}
	}
	home := p.homes()
	for _, step := range p.steps {
		g.step(step, home[step])
	}
	return g
}

func (g *graph) put(sub *Subtopology, n graphNode) {
	g.subs[sub.Number] = append(g.subs[sub.Number], n)
}

func (g *graph) step(step *stepPlan, home *Subtopology) {
	name := step.spec.Name.Value
	id := "step_" + name
	target := id
	label := []string{name}
	if a := step.aggregate; a != nil && a.windows != nil {
		label = append(label, windowWords(a.windows))
	}
	if ship := step.ports[0].ship; ship != nil {
		target = "repartition_" + name
		g.put(ship.from, graphNode{target, repartitionNode, []string{"repartition by", strings.Join(groupTexts(step.spec), ", ")}})
		g.edges = append(g.edges, graphEdge{from: target, to: id})
	}
	g.put(home, graphNode{id, stepNode, label})
	seen := map[string]bool{}
	for _, port := range step.ports {
		from := "source_"
		if port.in.from != nil {
			from = "step_" + port.in.from.spec.Name.Value
		} else {
			from += port.in.raw.spec.Name.Value
		}
		if !seen[from] {
			seen[from] = true
			g.edges = append(g.edges, graphEdge{from: from, to: target})
		}
	}
	result := ""
	if a := step.aggregate; a != nil {
		result = emitWords[a.emit]
		g.put(home, graphNode{"store_" + name, storeNode, []string{name}})
		g.edges = append(g.edges, graphEdge{from: id, to: "store_" + name, store: true})
		if a.late.to != nil {
			g.sink(id, a.late.to.sink, "late")
		}
	}
	for _, stream := range step.outs {
		for _, use := range stream.sinks {
			g.sink(id, use.sink, result)
		}
	}
}

// sink draws an arrow to a sink, once, and the sink itself when it is met for the first time.
func (g *graph) sink(from string, s *sinkPlan, label string) {
	id := "sink_" + s.spec.Name.Value
	if edge := (graphEdge{from: from, to: id, label: label}); !slices.Contains(g.edges, edge) {
		g.edges = append(g.edges, edge)
	}
	if !slices.ContainsFunc(g.sinks, func(n graphNode) bool { return n.id == id }) {
		g.sinks = append(g.sinks, graphNode{id, topicNode, []string{s.topic.name}})
	}
}

var mermaidShapes = [...][2]string{topicNode: {"[[", "]]"}, stepNode: {"[", "]"}, repartitionNode: {"{{", "}}"}, storeNode: {"[(", ")]"}}

func (g *graph) mermaid() string {
	var out strings.Builder
	quote := strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "#", "#35;")
	node := func(indent string, n graphNode) {
		shape := mermaidShapes[n.kind]
		fmt.Fprintf(&out, "%s%s%s\"%s\"%s\n", indent, n.id, shape[0], n.quoted(quote, "<br/>"), shape[1])
	}
	out.WriteString("flowchart LR\n")
	for i, nodes := range g.subs {
		fmt.Fprintf(&out, "  subgraph S%d[\"subtopology %d\"]\n", i, i)
		for _, n := range nodes {
			node("    ", n)
		}
		out.WriteString("  end\n")
	}
	for _, n := range g.sinks {
		node("  ", n)
	}
	for _, e := range g.edges {
		arrow := "-->"
		switch {
		case e.store:
			arrow = "-.-"
		case e.label != "":
			arrow = "-- " + e.label + " -->"
		}
		fmt.Fprintf(&out, "  %s %s %s\n", e.from, arrow, e.to)
	}
	return out.String()
}

var dotShapes = [...]string{topicNode: "cds", stepNode: "box", repartitionNode: "diamond", storeNode: "cylinder"}

func (g *graph) dot(name string) string {
	var out strings.Builder
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	node := func(indent string, n graphNode) {
		fmt.Fprintf(&out, "%s%s [shape=%s, label=\"%s\"];\n", indent, n.id, dotShapes[n.kind], n.quoted(quote, `\n`))
	}
	fmt.Fprintf(&out, "digraph \"%s\" {\n  rankdir=LR;\n", quote.Replace(name))
	for i, nodes := range g.subs {
		fmt.Fprintf(&out, "  subgraph cluster_%d {\n    label=\"subtopology %d\";\n", i, i)
		for _, n := range nodes {
			node("    ", n)
		}
		out.WriteString("  }\n")
	}
	for _, n := range g.sinks {
		node("  ", n)
	}
	for _, e := range g.edges {
		switch {
		case e.store:
			fmt.Fprintf(&out, "  %s -> %s [dir=none, style=dashed];\n", e.from, e.to)
		case e.label != "":
			fmt.Fprintf(&out, "  %s -> %s [label=\"%s\"];\n", e.from, e.to, e.label)
		default:
			fmt.Fprintf(&out, "  %s -> %s;\n", e.from, e.to)
		}
	}
	out.WriteString("}\n")
	return out.String()
}
