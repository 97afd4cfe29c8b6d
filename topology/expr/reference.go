package expr

import (
	"fmt"

	"github.com/expr-lang/expr/ast"

	"millrace/record"
)

// chain is a.b.c or a["b"].c, taken apart.
type chain struct {
	root     *ast.IdentifierNode
	segments []string
	places   []ast.Node // of the segments
}

// path returns what tree names, if it is a chain of constant keys.
func path(tree ast.Node) (c chain, ok bool) {
	switch t := tree.(type) {
	case *ast.IdentifierNode:
		return chain{root: t}, true
	case *ast.ChainNode:
		return path(t.Node)
	case *ast.MemberNode:
		key, constant := t.Property.(*ast.StringNode)
		if !constant || t.Method {
			return c, false
		}
		if c, ok = path(t.Node); ok {
			c.segments = append(c.segments, key.Value)
			c.places = append(c.places, t.Property)
		}
		return c, ok
	}
	return c, false
}

// reference builds a name, a path or an element of something.
func (b *builder) reference(tree ast.Node) *node {
	c, ok := path(tree)
	if !ok {
		return b.foreign(tree, anything)
	}
	name := c.root.Value
	for i := len(b.variables) - 1; i >= 0; i-- {
		if v := b.variables[i]; v.name == name {
			if len(c.segments) == 0 {
				return &node{tree: tree, typ: v.typ, foreign: true}
			}
			return b.foreign(tree, anything)
		}
	}
	if !b.scope.has(name) {
		return b.fail(c.root.Location(), fmt.Sprintf("unknown name %s", name), b.suggestName(name))
	}
	switch name {
	case "value":
		return b.field(tree, c)
	case "headers":
		return b.header(tree, c)
	case "meta":
		return b.part(tree, c, map[string]node{
			"topic": {op: opTopic, typ: textType}, "partition": {op: opPartition, typ: longType},
			"offset": {op: opOffset, typ: longType},
		})
	case "window":
		time := record.Type{Kind: record.Time}
		return b.part(tree, c, map[string]node{"start": {op: opWindowStart, typ: time}, "end": {op: opWindowEnd, typ: time}})
	}
	if len(c.segments) > 0 {
		return b.foreign(tree, anything)
	}
	return b.single(tree, name)
}

func (b *builder) suggestName(name string) string {
	if b.scope.Value != nil {
		// The commonest mistake is a field without its `value.`.
		if _, ok := b.scope.Value.find(name); ok {
			return fmt.Sprintf("did you mean \"value.%s\"?", name)
		}
	}
	return suggest(name, "the names", b.scope.names())
}

// single builds a name that is a value by itself.
func (b *builder) single(tree ast.Node, name string) *node {
	n := &node{tree: tree}
	switch name {
	case "key":
		switch n.op, n.typ = opKey, b.scope.Key; n.typ.Kind {
		case record.String, record.Bytes, record.Long:
			n.typ.Nullable = true
		default:
			return b.fail(tree.Location(), fmt.Sprintf("a key of type %s cannot be read", n.typ), "use a field of the value")
		}
	case "timestamp":
		n.op, n.typ = opTimestamp, record.Type{Kind: record.Time}
	default:
		n.op, n.typ = opAcc, *b.scope.Acc
	}
	return b.operator(n)
}

func (b *builder) header(tree ast.Node, c chain) *node {
	if len(c.segments) != 1 {
		return b.fail(tree.Location(), "headers are read one by one", `write headers["name"]`)
	}
	typ := record.Type{Kind: record.String, Nullable: true}
	return b.operator(&node{op: opHeader, name: c.segments[0], typ: typ, tree: tree})
}

// part builds meta.x and window.x.
func (b *builder) part(tree ast.Node, c chain, parts map[string]node) *node {
	var known []string
	for name := range parts {
		known = append(known, name)
	}
	what := "the parts of " + c.root.Value
	if len(c.segments) != 1 {
		return b.fail(tree.Location(), c.root.Value+" is not a value by itself", suggest("", what, known))
	}
	n, ok := parts[c.segments[0]]
	if !ok {
		message := fmt.Sprintf("%s has no part %s", c.root.Value, c.segments[0])
		return b.fail(c.places[0].Location(), message, suggest(c.segments[0], what, known))
	}
	n.tree = tree
	return b.operator(&n)
}

// field builds a path into the value. What lies deeper than the layout can go is looked up in the field's value.
func (b *builder) field(tree ast.Node, c chain) *node {
	layout := b.scope.Value
	depth := layout.depth(c.segments)
	slot, typ, err := layout.Slot(c.segments[:depth])
	if err != nil {
		at := tree
		if depth > 0 {
			at = c.places[depth-1]
		}
		problem := err.(*Error)
		return b.fail(at.Location(), problem.Message, problem.Hint)
	}
	n := b.operator(&node{op: opField, slot: slot, typ: typ, tree: tree})
	for i := depth; i < len(c.segments); i++ {
		if !n.typ.Any && n.typ.Kind != record.Map {
			return b.fail(c.places[i].Location(), fmt.Sprintf("%s has no field %s", n.typ, c.segments[i]), "")
		}
		// Optional, since below a null or missing map every field is missing.
		member := &ast.MemberNode{Node: b.surface(n), Property: c.places[i], Optional: true}
		member.SetLocation(c.places[i].Location())
		lookup := &ast.ChainNode{Node: member}
		lookup.SetLocation(c.places[i].Location())
		n = &node{tree: lookup, typ: anything, foreign: true}
	}
	return n
}
