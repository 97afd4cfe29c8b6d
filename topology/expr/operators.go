package expr

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/expr-lang/expr/ast"

	"millrace/record"
)

func (b *builder) unary(t *ast.UnaryNode) *node {
	if t.Operator == "!" || t.Operator == "not" {
		return b.operator(&node{op: opNot, typ: boolean, kids: []*node{b.truth(t.Node)}, tree: t})
	}
	n := b.build(t.Node)
	if !n.typ.Any && !numeric(n.typ.Kind) && (n.typ.Kind != record.Duration || t.Operator == "+") {
		return b.fail(t.Location(), fmt.Sprintf("%s needs a number, and this is %s", t.Operator, n.typ), "")
	}
	if t.Operator == "+" {
		return n
	}
	if n.constant() {
		if v, err := negate(n.val); err == nil {
			return &node{op: opConst, val: v, typ: n.typ, tree: t}
		}
	}
	return b.operator(&node{op: opNegate, typ: n.typ, kids: []*node{n}, tree: t})
}

func (b *builder) binary(t *ast.BinaryNode) *node {
	switch t.Operator {
	case "&&", "and", "||", "or":
		n := &node{op: opNames[t.Operator], typ: boolean, tree: t, kids: []*node{b.truth(t.Left), b.truth(t.Right)}}
		return b.lazy(n, rebuildBinary(t.Operator))
	case "??":
		l, r := b.build(t.Left), b.build(t.Right)
		typ := unify(l.typ, r.typ)
		if !typ.Any {
			typ.Nullable = r.typ.Nullable
		}
		n := &node{op: opCoalesce, typ: typ, tree: t, kids: []*node{b.convert(l, typ), b.convert(r, typ)}}
		return b.lazy(n, rebuildBinary(t.Operator))
	case "in":
		return b.membership(t)
	case "matches":
		return b.matches(t)
	case "..":
		return b.foreign(t, record.Type{Kind: record.List})
	}
	o, ok := opNames[t.Operator]
	if !ok {
		return b.fail(t.Location(), "unknown operator "+t.Operator, "")
	}
	n := &node{op: o, tree: t, kids: []*node{b.build(t.Left), b.build(t.Right)}}
	n.kids = b.alignConstants(n.kids)
	if n.typ, ok = b.resultType(n); !ok {
		l, r := n.kids[0].typ, n.kids[1].typ
		return b.fail(t.Location(), fmt.Sprintf("%s does not work between %s and %s", t.Operator, l, r), conversionHint(o, l, r))
	}
	return b.operator(n)
}

func rebuildBinary(operator string) func([]ast.Node) ast.Node {
	return func(o []ast.Node) ast.Node { return &ast.BinaryNode{Operator: operator, Left: o[0], Right: o[1]} }
}

func (b *builder) resultType(n *node) (record.Type, bool) {
	l, r := n.kids[0].typ, n.kids[1].typ
	switch n.op {
	case opEqual, opUnequal:
		return boolean, equatable(l, r)
	case opLess, opLessEqual, opGreater, opGreaterEqual:
		return boolean, orderable(l, r)
	case opContains, opStartsWith, opEndsWith:
		return boolean, textual(l) && textual(r)
	}
	return arithmeticType(n.op, l, r)
}

func textual(t record.Type) bool { return t.Any || t.Kind == record.String }

func conversionHint(o op, l, r record.Type) string {
	switch {
	case l.Kind == record.Null || r.Kind == record.Null:
		return "compare with nil by == or !=, replace null by ??"
	case o == opModulo:
		return "% needs whole numbers: wrap in int()"
	case (l.Kind == record.Time && numeric(r.Kind)) || (r.Kind == record.Time && numeric(l.Kind)):
		return `write durations as duration("10s") and times as date("2026-01-02T15:04:05Z"), or take .UnixMilli()`
	case (l.Kind == record.String && numeric(r.Kind)) || (r.Kind == record.String && numeric(l.Kind)):
		return "convert one side with int(), float(), decimal() or string()"
	}
	return ""
}

// alignConstants gives a numeric literal the type of the other operand, so that decimal arithmetic stays exact and
// comparisons need no conversion per record.
func (b *builder) alignConstants(kids []*node) []*node {
	aligned := slices.Clone(kids)
	for i, n := range kids {
		other := kids[1-i].typ
		if !n.constant() || other.Any || !numeric(other.Kind) || !numeric(n.typ.Kind) {
			continue
		}
		if v, ok := convertConstant(n.val, other.Kind); ok && v.Kind != n.val.Kind {
			aligned[i] = &node{op: opConst, val: v, typ: record.Type{Kind: v.Kind}, tree: n.tree}
		}
	}
	return aligned
}

// membership builds `x in [..]`; only a list of constants is ours.
func (b *builder) membership(t *ast.BinaryNode) *node {
	x := b.build(t.Left)
	list, ok := t.Right.(*ast.ArrayNode)
	if !ok {
		return b.foreign(t, boolean)
	}
	set := make([]record.Value, 0, len(list.Nodes))
	for _, element := range list.Nodes {
		n := b.build(element)
		if !n.constant() {
			return b.foreign(t, boolean)
		}
		if !equatable(x.typ, n.typ) {
			return b.fail(element.Location(), fmt.Sprintf("%s can never be in a list with this %s", x.typ, n.typ), "")
		}
		v := n.val
		if numeric(x.typ.Kind) {
			v, _ = convertConstant(v, x.typ.Kind) // one that cannot be converted is compared as it is
		}
		set = append(set, v)
	}
	return b.operator(&node{op: opIn, typ: boolean, kids: []*node{x}, set: set, tree: t})
}

func (b *builder) matches(t *ast.BinaryNode) *node {
	x := b.build(t.Left)
	text, ok := t.Right.(*ast.StringNode)
	if !ok {
		return b.foreign(t, boolean)
	}
	pattern, err := regexp.Compile(text.Value)
	if err != nil {
		return b.fail(text.Location(), err.Error(), "the syntax is that of RE2")
	}
	if !textual(x.typ) {
		return b.fail(t.Location(), fmt.Sprintf("matches needs a string, and this is %s", x.typ), "")
	}
	return b.operator(&node{op: opMatches, typ: boolean, pattern: pattern, kids: []*node{x}, tree: t})
}
