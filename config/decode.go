package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/topology"
)

// stepName is safe as a part of a topic's name, as a label and as a folder.
var stepName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// notYet answers people who know a word from our documentation's outlook, or from another engine.
var notYet = map[string]string{
	"tables": "tables are not available in this version", "join": "joins are not available in this version",
	"dedup": "deduplication is not available in this version", "duplicates": "deduplication is not available in this version",
	"top": "top-n is not available in this version", "pattern": "patterns are not available in this version",
	"skew": "two-stage aggregation is not available in this version", "gap": "session windows are not available in this version",
	"max_duration": "session windows are not available in this version", "envelope": "envelopes are not available in this version",
	"schema_registry": "the schema registry is not available in this version", "grace": "the word is allowed_lateness",
	"isolation_level": "read_committed is not a setting: anything else would break exactly_once",
	"group_id":        "the group is the application_id", "properties": "Kafka's properties have settings of their own here; see the reference",
}

// decoder reads `topology:` from the nodes themselves: order, case and places matter there, and a key that nothing
// reads is an error. It checks forms only; what the words mean is the topology's business.
type decoder struct{ expander }

// object checks that a node is a map with no other keys than the known ones.
func (x expander) object(n *node, what string, known ...string) bool {
	if n.shape != mapNode {
		x.wrongShape(n, what, "a map")
		return false
	}
	for _, e := range n.entries {
		if slices.Contains(known, e.key.text) {
			continue
		}
		hint, ok := notYet[e.key.text]
		if !ok {
			hint = didYouMean(e.key.text, known)
		}
		x.found.at(e.key, codeUnknownKey, fmt.Sprintf("unknown key %q in %s", e.key.text, what), hint)
	}
	return true
}

func (x expander) wrongShape(n *node, what, want string) {
	got := shapeNames[n.shape]
	if n.isNull() {
		got = "nothing"
	}
	x.found.at(n, codeShape, fmt.Sprintf("%s is %s, not %s", what, want, got), "")
}

// literal returns a scalar as written: expressions, and everything else that is not expanded.
func (x expander) literal(n *node, what string) topology.Text {
	if n == nil {
		return topology.Text{}
	}
	if n.shape != scalarNode || n.isNull() {
		x.wrongShape(n, what, "plain text")
		return topology.Text{Pos: n.pos}
	}
	return topology.Text{Value: n.raw, Pos: n.pos}
}

// text returns a scalar with its references expanded.
func (x expander) text(n *node, what string) topology.Text {
	t := x.literal(n, what)
	if n != nil && n.shape == scalarNode {
		x.resolve(n)
		t.Value = n.text
	}
	return t
}

func (d decoder) word(parent *node, key, what string) topology.Text {
	return d.text(parent.get(key), key+" of "+what)
}

func (d decoder) expression(parent *node, key, what string) topology.Text {
	return d.literal(parent.get(key), key+" of "+what)
}

func (d decoder) flag(parent *node, key, what string) bool {
	n := parent.get(key)
	if n == nil {
		return false
	}
	switch t := d.word(parent, key, what); t.Value {
	case "true":
		return true
	case "false":
	default:
		d.found.at(n, codeValue, fmt.Sprintf("%s of %s is %q, neither true nor false", key, what, n.raw), "")
	}
	return false
}

// span reads a duration. Forever is allowed where state is kept; a negative one only for the offset of a window.
func (d decoder) span(parent *node, key, what string) topology.Span {
	n := parent.get(key)
	if n == nil {
		return topology.Span{}
	}
	t := d.word(parent, key, what)
	s := topology.Span{Set: true, Pos: t.Pos}
	if n.shape != scalarNode || n.isNull() {
		return s
	}
	if key == "ttl" && t.Value == "forever" {
		s.Forever = true
		return s
	}
	value, err := ParseDuration(t.Value)
	switch {
	case err != nil:
		d.found.at(n, codeValue, quoteSource(err.Error(), Origin{node: n}), "")
	case value < 0 && key != "offset":
		d.found.at(n, codeRange, fmt.Sprintf("%s of %s is negative", key, what), "")
		value = 0
	}
	s.Value = value
	return s
}

// texts reads one scalar or a list of them.
func (d decoder) texts(n *node, what string, one func(*node, string) topology.Text) []topology.Text {
	if n == nil {
		return nil
	}
	if n.shape != listNode {
		return []topology.Text{one(n, what)}
	}
	if len(n.items) == 0 {
		d.found.at(n, codeShape, what+" is an empty list", "")
	}
	var list []topology.Text
	for _, item := range n.items {
		list = append(list, one(item, what))
	}
	return list
}

// named reads a map of expressions, or one expression, or a list of them, whose names are the last parts of their paths.
func (d decoder) named(n *node, what string) []topology.Named {
	if n == nil {
		return nil
	}
	var list []topology.Named
	if n.shape != mapNode {
		for _, expr := range d.texts(n, what, d.literal) {
			list = append(list, topology.Named{Name: lastPart(expr), Expr: expr})
		}
		return list
	}
	if len(n.entries) == 0 {
		d.found.at(n, codeShape, what+" is an empty map", "")
	}
	for _, e := range n.entries {
		list = append(list, topology.Named{Name: topology.Text{Value: e.key.text, Pos: e.key.pos}, Expr: d.literal(e.value, e.key.text+" in "+what)})
	}
	return list
}

var plainPath = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\??\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// lastPart names a path after its last part; an expression that is no path has no name of its own.
func lastPart(expr topology.Text) topology.Text {
	if !plainPath.MatchString(expr.Value) {
		return topology.Text{Pos: expr.Pos}
	}
	at := strings.LastIndexByte(expr.Value, '.') + 1
	expr.Pos.Col += at
	expr.Value = expr.Value[at:]
	return expr
}

// members reads a map of named things in the order of the file.
func (d decoder) members(n *node, section string, read func(name topology.Text, n *node)) {
	if n == nil {
		return
	}
	if n.shape != mapNode {
		d.wrongShape(n, section+":", "a map of names")
		return
	}
	for _, e := range n.entries {
		if !stepName.MatchString(e.key.text) {
			d.found.at(e.key, codeName, fmt.Sprintf("%q is not a name for one of the %s", e.key.text, section),
				"a lower-case letter, then lower-case letters, digits and '_', at most 63: it names topics and folders for ever")
		}
		read(topology.Text{Value: e.key.text, Pos: e.key.pos}, e.value)
	}
}

// topic reads the name of a topic.
func (d decoder) topic(parent *node, what string) topology.Text {
	t := d.word(parent, "topic", what)
	if n := parent.get("topic"); n != nil && n.shape == scalarNode && t.Value != "" && !topicName.MatchString(t.Value) && !strings.Contains(t.Value, "${") {
		d.found.at(n, codeName, fmt.Sprintf("%q is not the name of a topic", n.raw), "letters, digits, '.', '_' and '-', at most 249")
	}
	return t
}

// millis reads a time: milliseconds since the epoch, or RFC 3339.
func (x expander) millis(n *node, what string) (int64, bool) {
	t := x.literal(n, what)
	if t.Value == "" {
		return 0, false
	}
	if ms, err := parseMillis(t.Value); err == nil {
		return ms, true
	}
	x.found.at(n, codeValue, fmt.Sprintf("%s: %q is not a time", what, t.Value), "write milliseconds since the epoch, or RFC 3339 as in 2026-11-29T12:00:00Z")
	return 0, false
}

func parseMillis(text string) (int64, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return ms, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return at.UnixMilli(), err
}
