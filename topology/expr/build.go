package expr

import (
	"fmt"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"millrace/record"
)

// builder turns a syntax tree into typed nodes, bottom up. Where a part needs the virtual machine, it rewrites the tree
// instead: every operand that is ours becomes a call of it, so that both kinds of parts nest in any order.
type builder struct {
	src       string
	scope     Scope
	variables []variable
	seen      map[ast.Node]*node // a < b < c has b twice in the tree, and it must be rewritten once
	calls     []*node            // what the virtual machine calls back, by number
	interpret bool               // run every operator on the virtual machine; tests compare the two ways
	err       *Error             // the first
}

// variable is what `let` declares.
type variable struct {
	name string
	typ  record.Type
}

func (b *builder) fail(at file.Location, message, hint string) *node {
	if b.err == nil {
		b.err = (&Error{Message: message, Hint: hint}).place(b.src, at)
	}
	return &node{op: opConst, typ: anything, tree: &ast.NilNode{}}
}

func (b *builder) build(tree ast.Node) *node {
	if n, ok := b.seen[tree]; ok {
		return n
	}
	n := b.dispatch(tree)
	b.seen[tree] = n
	return n
}

func (b *builder) dispatch(tree ast.Node) *node {
	switch t := tree.(type) {
	case *ast.NilNode:
		return b.literal(tree, record.NullValue(), nothing)
	case *ast.BoolNode:
		return b.literal(tree, record.BoolValue(t.Value), boolean)
	case *ast.IntegerNode:
		return b.literal(tree, record.LongValue(int64(t.Value)), longType)
	case *ast.FloatNode:
		return b.literal(tree, record.DoubleValue(t.Value), doubleType)
	case *ast.StringNode:
		return b.literal(tree, record.StringValue([]byte(t.Value)), textType)
	case *ast.BytesNode:
		return b.literal(tree, record.BytesValue(t.Value), record.Type{Kind: record.Bytes})
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode:
		return b.reference(tree)
	case *ast.UnaryNode:
		return b.unary(t)
	case *ast.BinaryNode:
		return b.binary(t)
	case *ast.ConditionalNode:
		return b.condition(t)
	case *ast.CallNode:
		return b.call(t)
	case *ast.BuiltinNode:
		return b.builtin(t)
	case *ast.VariableDeclaratorNode:
		return b.variable(t)
	case *ast.ArrayNode:
		return b.foreign(tree, record.Type{Kind: record.List})
	case *ast.MapNode:
		return b.foreign(tree, record.Type{Kind: record.Map})
	case *ast.SliceNode:
		return b.foreign(tree, b.build(t.Node).typ)
	}
	return b.foreign(tree, anything)
}

func (b *builder) literal(tree ast.Node, v record.Value, t record.Type) *node {
	return &node{op: opConst, val: v, typ: t, tree: tree, literal: true}
}

// foreign leaves tree to the virtual machine, with its operands built.
func (b *builder) foreign(tree ast.Node, t record.Type) *node {
	for _, slot := range operands(tree) {
		*slot = b.surface(b.build(*slot))
	}
	return &node{tree: tree, typ: t, foreign: true}
}

// surface returns n as a tree that the virtual machine can run.
func (b *builder) surface(n *node) ast.Node {
	if n.foreign || n.literal {
		return n.tree
	}
	return b.callback(n, n.tree.Location(), n.typ, nil)
}

// callback returns a tree that calls n with the operands in arguments.
func (b *builder) callback(n *node, at file.Location, t record.Type, arguments []ast.Node) ast.Node {
	environment, number := &ast.IdentifierNode{Value: "$env"}, &ast.IntegerNode{Value: len(b.calls)}
	callee := &ast.IdentifierNode{Value: callbackName(t)}
	call := &ast.CallNode{Callee: callee, Arguments: append([]ast.Node{environment, number}, arguments...)}
	for _, part := range []ast.Node{environment, number, callee, call} {
		part.SetLocation(at)
	}
	b.calls = append(b.calls, n)
	return call
}

// operator returns n, or, if it has a foreign operand, a foreign node that calls it.
func (b *builder) operator(n *node) *node {
	mixed := b.interpret
	for _, kid := range n.kids {
		mixed = mixed || kid.foreign
	}
	if !mixed {
		return n
	}
	var arguments []ast.Node
	own := *n
	own.kids = make([]*node, len(n.kids))
	for i, kid := range n.kids {
		own.kids[i] = kid
		if kid.foreign || (b.interpret && !kid.constant()) {
			own.kids[i] = &node{op: opArgument, slot: len(arguments), typ: anything, tree: kid.tree}
			arguments = append(arguments, enclose(b.surface(kid)))
		}
	}
	call := b.callback(&own, n.tree.Location(), n.typ, arguments)
	return &node{tree: call, typ: n.typ, foreign: true}
}

// enclose keeps a ?. inside an operand from leaving the whole call: where it meets null, it jumps to the end of its chain.
func enclose(tree ast.Node) ast.Node {
	for at := tree; ; {
		switch t := at.(type) {
		case *ast.MemberNode:
			if t.Optional {
				chain := &ast.ChainNode{Node: tree}
				chain.SetLocation(tree.Location())
				return chain
			}
			at = t.Node
		case *ast.SliceNode:
			at = t.Node
		case *ast.CallNode:
			at = t.Callee
		default:
			return tree
		}
	}
}

// lazy returns n, whose operands must not all be evaluated, or leaves the choice to the virtual machine: rebuild then
// returns the tree for the operands' trees.
func (b *builder) lazy(n *node, rebuild func(operands []ast.Node) ast.Node) *node {
	mixed := b.interpret
	for _, kid := range n.kids {
		mixed = mixed || kid.foreign
	}
	if !mixed {
		return n
	}
	operands := make([]ast.Node, len(n.kids))
	for i, kid := range n.kids {
		operands[i] = b.surface(kid)
	}
	tree := rebuild(operands)
	tree.SetLocation(n.tree.Location())
	return &node{tree: tree, typ: n.typ, foreign: true}
}

func (b *builder) condition(t *ast.ConditionalNode) *node {
	cond := b.truth(t.Cond)
	yes, no := b.build(t.Exp1), b.build(t.Exp2)
	typ := unify(yes.typ, no.typ)
	n := &node{op: opCondition, typ: typ, tree: t, kids: []*node{cond, b.convert(yes, typ), b.convert(no, typ)}}
	return b.lazy(n, func(o []ast.Node) ast.Node {
		return &ast.ConditionalNode{Ternary: t.Ternary, Cond: o[0], Exp1: o[1], Exp2: o[2]}
	})
}

// truth builds a condition: its result is true or false, never null.
func (b *builder) truth(tree ast.Node) *node {
	n := b.build(tree)
	if n.typ.Kind == record.Bool && !n.typ.Any && n.op >= opTruth && n.op <= opMatches && !n.foreign {
		return n
	}
	if !n.typ.Any && n.typ.Kind != record.Bool && n.typ.Kind != record.Null {
		return b.fail(tree.Location(), fmt.Sprintf("a condition must be boolean, and this is %s", n.typ), "")
	}
	return b.operator(&node{op: opTruth, typ: boolean, kids: []*node{n}, tree: tree})
}

// convert makes a number of n if t says so; branches of different numeric types meet this way.
func (b *builder) convert(n *node, t record.Type) *node {
	if t.Any || !numeric(t.Kind) || n.typ.Kind == t.Kind || !numeric(n.typ.Kind) || n.typ.Any {
		return n
	}
	if n.constant() {
		if v, ok := convertConstant(n.val, t.Kind); ok {
			return &node{op: opConst, val: v, typ: record.Type{Kind: t.Kind}, tree: n.tree}
		}
	}
	o := opToDouble
	if t.Kind == record.Decimal {
		o = opToDecimal
	}
	return b.operator(&node{op: o, typ: record.Type{Kind: t.Kind, Nullable: n.typ.Nullable}, kids: []*node{n}, tree: n.tree})
}

func (b *builder) variable(t *ast.VariableDeclaratorNode) *node {
	if b.scope.has(t.Name) {
		return b.fail(t.Location(), fmt.Sprintf("%s is taken: it names part of the record", t.Name), "choose another name")
	}
	value := b.build(t.Value)
	t.Value = b.surface(value)
	b.variables = append(b.variables, variable{t.Name, value.typ})
	body := b.build(t.Expr)
	b.variables = b.variables[:len(b.variables)-1]
	t.Expr = b.surface(body)
	return &node{tree: t, typ: body.typ, foreign: true}
}

// operands are the places of a node's operands, for kinds of nodes that are always foreign.
func operands(tree ast.Node) []*ast.Node {
	var places []*ast.Node
	list := func(nodes []ast.Node) {
		for i := range nodes {
			places = append(places, &nodes[i])
		}
	}
	switch t := tree.(type) {
	case *ast.MemberNode:
		places = []*ast.Node{&t.Node, &t.Property}
	case *ast.ChainNode:
		places = []*ast.Node{&t.Node}
	case *ast.SliceNode:
		places = []*ast.Node{&t.Node}
		if t.From != nil {
			places = append(places, &t.From)
		}
		if t.To != nil {
			places = append(places, &t.To)
		}
	case *ast.CallNode:
		list(t.Arguments)
	case *ast.BuiltinNode:
		list(t.Arguments)
	case *ast.PredicateNode:
		places = []*ast.Node{&t.Node}
	case *ast.BinaryNode:
		places = []*ast.Node{&t.Left, &t.Right}
	case *ast.SequenceNode:
		list(t.Nodes)
	case *ast.ArrayNode:
		list(t.Nodes)
	case *ast.MapNode:
		list(t.Pairs)
	case *ast.PairNode:
		places = []*ast.Node{&t.Key, &t.Value}
	}
	return places
}
