package expr

import (
	"fmt"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"millrace/record"
)

// maxNodes bounds the size of an expression.
const maxNodes = 1000

// Program is a compiled expression. It does not change and may be bound by any number of tasks.
type Program struct {
	src   string
	typ   record.Type
	root  *node
	path  []string
	field bool
	calls []*node     // what the virtual machine calls back
	code  *vm.Program // nil: native
}

// Eval computes an expression for a row. The value may alias the row, or scratch that the next call overwrites. An error
// is a *RuntimeError. An Eval belongs to one goroutine.
type Eval func(r *record.Row) (record.Value, error)

// Compile parses and checks src and compiles it. The error is an *Error. Fields that src reads are allotted slots in the
// scope's source layout.
func Compile(src string, s Scope) (*Program, error) {
	p, err := compile(src, s, false)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// CompileBool is Compile for a condition: a type that cannot be boolean is an error.
func CompileBool(src string, s Scope) (*Program, error) {
	p, err := compile(src, s, false)
	if err != nil {
		return nil, err
	}
	if t := p.typ; !t.Any && t.Kind != record.Bool {
		return nil, &Error{Len: len(src), Message: fmt.Sprintf("a condition must be boolean, and this is %s", t)}
	}
	return p, nil
}

func compile(src string, s Scope, interpret bool) (p *Program, problem *Error) {
	defer func() {
		// The library's compiler reports some mistakes by a panic; none may stop the process.
		if r := recover(); r != nil {
			p, problem = nil, &Error{Len: len(src), Message: fmt.Sprintf("the expression cannot be compiled: %v", r)}
		}
	}()
	if strings.TrimSpace(src) == "" {
		return nil, &Error{Message: "the expression is empty"}
	}
	config := libraryConfig()
	tree, err := parser.ParseWithConfig(src, config)
	if err != nil {
		return nil, fromLibrary(src, err)
	}
	p = &Program{src: src}
	b := &builder{src: src, scope: s, seen: map[ast.Node]*node{}, interpret: interpret}
	root := b.build(tree.Node)
	if b.err != nil {
		return nil, b.err
	}
	p.root, p.typ = root, root.typ
	if !root.foreign && !interpret {
		if root.op == opField {
			c, _ := path(root.tree)
			p.path, p.field = c.segments, true
		}
		return p, nil
	}
	tree.Node = b.surface(root)
	p.calls = b.calls
	if p.code, problem = link(src, tree, config); problem != nil {
		return nil, problem
	}
	p.typ.Nullable = true
	return p, nil
}

// Type is the type of the results. A time keeps the form of the field that it comes from.
func (p *Program) Type() record.Type { return p.typ }

// Native tells whether the expression runs without the virtual machine.
func (p *Program) Native() bool { return p.code == nil }

// Source is the text that was compiled.
func (p *Program) Source() string { return p.src }

// FieldPath returns the path if the expression is just a field of the value, as in value.a.b; no segments are the value
// itself.
func (p *Program) FieldPath() ([]string, bool) { return p.path, p.field }

// Bind returns the expression for one task.
func (p *Program) Bind() Eval {
	eval := p.bind()
	return func(r *record.Row) (record.Value, error) {
		v, err := eval(r)
		if err != nil {
			return record.Value{}, &RuntimeError{p.src, err}
		}
		return v, nil
	}
}

// BindBool returns a condition for one task; null counts as false.
func (p *Program) BindBool() func(r *record.Row) (bool, error) {
	var test tester
	if p.Native() {
		b := &binding{}
		test = b.test(p.root)
		if usesScratch(p.root) {
			inner := test
			test = func(r *record.Row) (bool, error) {
				b.scratch = b.scratch[:0]
				return inner(r)
			}
		}
	} else {
		eval := p.bind()
		test = func(r *record.Row) (bool, error) {
			v, err := eval(r)
			if err != nil {
				return false, err
			}
			return truth(v)
		}
	}
	return func(r *record.Row) (bool, error) {
		ok, err := test(r)
		if err != nil {
			return false, &RuntimeError{p.src, err}
		}
		return ok, nil
	}
}

func (p *Program) bind() evaluator {
	b := &binding{}
	if !p.Native() {
		return b.interpreter(p)
	}
	eval := b.value(p.root)
	if !usesScratch(p.root) {
		return eval
	}
	return func(r *record.Row) (record.Value, error) {
		b.scratch = b.scratch[:0]
		return eval(r)
	}
}

func usesScratch(n *node) bool {
	if n.op == opAdd || n.op == opToString {
		return true
	}
	for _, kid := range n.kids {
		if usesScratch(kid) {
			return true
		}
	}
	return false
}
