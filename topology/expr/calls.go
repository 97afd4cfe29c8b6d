package expr

import (
	"fmt"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"

	"millrace/record"
)

// method is a method of times or durations that is compiled natively.
type method struct {
	op     op
	of     record.Kind
	result record.Kind
}

var methods = map[string]method{
	"Seconds": {opSeconds, record.Duration, record.Double}, "Minutes": {opMinutes, record.Duration, record.Double},
	"Hours": {opHours, record.Duration, record.Double}, "Milliseconds": {opMilliseconds, record.Duration, record.Long},
	"UnixMilli": {opUnixMilli, record.Time, record.Long},
}

var conversions = map[string]method{
	"int": {op: opToLong, result: record.Long}, "float": {op: opToDouble, result: record.Double},
	"decimal": {op: opToDecimal, result: record.Decimal}, "string": {op: opToString, result: record.String},
}

// results are the types of the library's functions, where they are always the same. The library's own checker is no help
// here: it takes the type of x ? a : b for that of a, whatever b is.
var results = func() map[string]record.Kind {
	of := map[string]record.Kind{}
	for kind, names := range map[record.Kind]string{
		record.Long:   "len count indexOf lastIndexOf findIndex findLastIndex bitand bitor bitxor bitnand bitshl bitshr bitushr bitnot",
		record.Double: "round ceil floor mean median",
		record.String: "upper lower trim trimPrefix trimSuffix replace repeat join toJSON type toBase64 fromBase64",
		record.Bool:   "all any none one hasPrefix hasSuffix",
		record.List:   "split splitAfter filter map sort sortBy take reverse uniq concat flatten keys values toPairs",
		record.Map:    "groupBy fromPairs",
		record.Time:   "date", record.Duration: "duration",
	} {
		for _, name := range strings.Fields(names) {
			of[name] = kind
		}
	}
	return of
}()

// conditions are the functions whose predicate is a condition.
var conditions = map[string]bool{
	"all": true, "any": true, "none": true, "one": true, "filter": true, "find": true, "findIndex": true, "findLast": true,
	"findLastIndex": true, "count": true,
}

func (b *builder) call(t *ast.CallNode) *node {
	switch callee := t.Callee.(type) {
	case *ast.MemberNode:
		return b.method(t, callee)
	case *ast.IdentifierNode:
		if c, ok := conversions[callee.Value]; ok {
			return b.conversion(t, callee.Value, c, t.Arguments)
		}
		if callee.Value == "now" {
			return b.fail(callee.Location(), "now() does not exist: a result must not depend on when a record is processed",
				"use timestamp, the record's own time")
		}
		hint := suggest(callee.Value, "the functions", append([]string{"decimal"}, builtin.Names...))
		return b.fail(callee.Location(), fmt.Sprintf("unknown function %s", callee.Value), hint)
	}
	return b.fail(t.Location(), "only functions and methods can be called", "")
}

func (b *builder) method(t *ast.CallNode, callee *ast.MemberNode) *node {
	base := b.build(callee.Node)
	key, ok := callee.Property.(*ast.StringNode)
	if !ok {
		return b.fail(t.Location(), "a method is called by its name", "")
	}
	name := key.Value
	if m, ok := methods[name]; ok && len(t.Arguments) == 0 {
		if !base.typ.Any && base.typ.Kind != m.of {
			return b.fail(key.Location(), fmt.Sprintf("%s has no method %s: it belongs to %s", base.typ, name, m.of), "")
		}
		typ := record.Type{Kind: m.result, Nullable: base.typ.Nullable || base.typ.Any}
		return b.operator(&node{op: m.op, typ: typ, kids: []*node{base}, tree: t})
	}
	if !base.typ.Any && base.typ.Kind != record.Time && base.typ.Kind != record.Duration {
		return b.fail(key.Location(), fmt.Sprintf("%s has no method %s", base.typ, name), "")
	}
	if name == "Local" {
		return b.fail(key.Location(), "a result must not depend on the machine's time zone", `use .In(timezone("Europe/Paris"))`)
	}
	callee.Node = b.surface(base)
	return b.foreign(t, anything)
}

func (b *builder) builtin(t *ast.BuiltinNode) *node {
	if c, ok := conversions[t.Name]; ok {
		return b.conversion(t, t.Name, c, t.Arguments)
	}
	if len(t.Arguments) == 1 && (t.Name == "duration" || t.Name == "date") {
		if text, ok := t.Arguments[0].(*ast.StringNode); ok {
			return b.timeConstant(t, text)
		}
	}
	var types []record.Type
	for i, argument := range t.Arguments {
		if predicate, ok := argument.(*ast.PredicateNode); ok {
			b.predicate(predicate, conditions[t.Name])
			continue
		}
		n := b.build(argument)
		types = append(types, n.typ)
		t.Arguments[i] = b.surface(n)
	}
	if sorted[t.Name] != nil {
		callee := &ast.IdentifierNode{Value: sortedName(t.Name)}
		call := &ast.CallNode{Callee: callee, Arguments: t.Arguments}
		callee.SetLocation(t.Location())
		call.SetLocation(t.Location())
		return &node{tree: call, typ: record.Type{Kind: record.List}, foreign: true}
	}
	return &node{tree: t, typ: functionType(t.Name, types), foreign: true}
}

// functionType is the type of a library function's result.
func functionType(name string, arguments []record.Type) record.Type {
	if kind, ok := results[name]; ok {
		return record.Type{Kind: kind}
	}
	if (name != "abs" && name != "max" && name != "min") || len(arguments) == 0 {
		return anything
	}
	first := arguments[0]
	for _, t := range arguments {
		if t.Any || t.Kind != first.Kind || !numeric(t.Kind) {
			return anything
		}
	}
	return record.Type{Kind: first.Kind}
}

// predicate builds what a list function evaluates for each element, and has every evaluation counted.
func (b *builder) predicate(t *ast.PredicateNode, condition bool) {
	body := b.build(t.Node)
	if condition {
		body = b.truth(t.Node)
	}
	environment, callee := &ast.IdentifierNode{Value: "$env"}, &ast.IdentifierNode{Value: stepName}
	call := &ast.CallNode{Callee: callee, Arguments: []ast.Node{environment, b.surface(body)}}
	for _, part := range []ast.Node{environment, callee, call} {
		part.SetLocation(t.Location())
	}
	t.Node = call
}

func (b *builder) conversion(tree ast.Node, name string, c method, arguments []ast.Node) *node {
	if len(arguments) != 1 {
		return b.fail(tree.Location(), fmt.Sprintf("%s() takes one argument, not %d", name, len(arguments)), "")
	}
	n := b.build(arguments[0])
	kind := n.typ.Kind
	convertible := n.typ.Any || numeric(kind) || kind == record.String || kind == record.Null || c.op == opToString
	if !convertible {
		hint := ""
		if kind == record.Time {
			hint = "take .UnixMilli()"
		}
		return b.fail(tree.Location(), fmt.Sprintf("%s() cannot convert %s", name, n.typ), hint)
	}
	typ := record.Type{Kind: c.result, Nullable: n.typ.Nullable || n.typ.Any}
	return b.operator(&node{op: c.op, typ: typ, kids: []*node{n}, tree: tree})
}

// timeConstant evaluates duration("10s") and date("2026-01-02") once.
func (b *builder) timeConstant(t *ast.BuiltinNode, text *ast.StringNode) *node {
	v, err := builtin.Builtins[builtin.Index[t.Name]].Func(text.Value)
	if err != nil {
		return b.fail(text.Location(), err.Error(), "")
	}
	n := &node{op: opConst, tree: t}
	switch v := v.(type) {
	case time.Duration:
		n.val, n.typ = record.DurationValue(int64(v)), record.Type{Kind: record.Duration}
	case time.Time:
		n.val, n.typ = record.TimeValue(v.UnixMilli()), record.Type{Kind: record.Time}
	}
	return n
}
