package expr

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"millrace/record"
)

// tester decides a condition; it knows no null.
type tester func(r *record.Row) (bool, error)

// test compiles a condition to a closure; n is not foreign.
func (t *binding) test(n *node) tester {
	switch n.op {
	case opAnd, opOr:
		return t.junction(n)
	case opNot:
		x := t.test(n.kids[0])
		return func(r *record.Row) (bool, error) {
			ok, err := x(r)
			return !ok, err
		}
	case opEqual, opUnequal, opLess, opLessEqual, opGreater, opGreaterEqual:
		return t.comparison(n)
	case opIn:
		return t.membership(n)
	case opContains, opStartsWith, opEndsWith, opMatches:
		return t.textTest(n)
	case opTruth:
		n = n.kids[0]
	}
	x := t.value(n)
	return func(r *record.Row) (bool, error) {
		v, err := x(r)
		if err != nil {
			return false, err
		}
		return truth(v)
	}
}

func truth(v record.Value) (bool, error) {
	if v.Kind == record.Bool {
		return v.Num != 0, nil
	}
	if v.IsNull() {
		return false, nil
	}
	return false, fmt.Errorf("a condition must be boolean, and this is %s", v.Kind)
}

func (t *binding) junction(n *node) tester {
	x, y := t.test(n.kids[0]), t.test(n.kids[1])
	if n.op == opAnd {
		return func(r *record.Row) (bool, error) {
			if ok, err := x(r); err != nil || !ok {
				return false, err
			}
			return y(r)
		}
	}
	return func(r *record.Row) (bool, error) {
		if ok, err := x(r); err != nil || ok {
			return ok, err
		}
		return y(r)
	}
}

// flipped are the operators with their sides exchanged.
var flipped = map[op]op{
	opEqual: opEqual, opUnequal: opUnequal, opLess: opGreater, opLessEqual: opGreaterEqual, opGreater: opLess,
	opGreaterEqual: opLessEqual,
}

func (t *binding) comparison(n *node) tester {
	l, r, o := n.kids[0], n.kids[1], n.op
	if l.constant() && !r.constant() {
		l, r, o = r, l, flipped[o]
	}
	known := !l.typ.Any && !r.typ.Any && l.typ.Kind == r.typ.Kind
	if known && l.op == opField && r.constant() {
		if test := fieldComparison(o, l.slot, r.val); test != nil {
			return test
		}
	}
	x, y := t.value(l), t.value(r)
	if known && (l.typ.Kind == record.Long || l.typ.Kind == record.Time || l.typ.Kind == record.Duration) {
		return compareBoth(o, x, y, func(a, b record.Value) (bool, error) { return holds(o, cmp.Compare(a.Num, b.Num)), nil })
	}
	if known && l.typ.Kind == record.Double {
		return compareBoth(o, x, y, func(a, b record.Value) (bool, error) {
			return holds(o, compareDoubles(a.Float(), b.Float())), nil
		})
	}
	return compareBoth(o, x, y, func(a, b record.Value) (bool, error) { return compareAny(o, a, b) })
}

func compareBoth(o op, x, y evaluator, compare func(a, b record.Value) (bool, error)) tester {
	return func(r *record.Row) (bool, error) {
		a, err := x(r)
		if err != nil {
			return false, err
		}
		b, err := y(r)
		if err != nil {
			return false, err
		}
		if a.IsNull() || b.IsNull() {
			return holdsNull(o, a, b), nil
		}
		return compare(a, b)
	}
}

// fieldComparison compares a field with a constant of its type, which is what most conditions are made of; nil if there
// is nothing faster than the general way.
func fieldComparison(o op, slot int, constant record.Value) tester {
	null := o == opUnequal // what a comparison of null with something is
	switch constant.Kind {
	case record.Long, record.Time, record.Duration:
		n := constant.Num
		return func(r *record.Row) (bool, error) {
			v := &r.Fields[slot]
			if v.IsNull() {
				return null, nil
			}
			return holds(o, cmp.Compare(v.Num, n)), nil
		}
	case record.Double:
		f := constant.Float()
		return func(r *record.Row) (bool, error) {
			v := &r.Fields[slot]
			if v.IsNull() {
				return null, nil
			}
			return holds(o, compareDoubles(v.Float(), f)), nil
		}
	case record.String:
		if o != opEqual && o != opUnequal {
			return nil
		}
		s, want := string(constant.Raw), o == opEqual
		return func(r *record.Row) (bool, error) {
			v := &r.Fields[slot]
			if v.IsNull() {
				return null, nil
			}
			return (string(v.Raw) == s) == want, nil
		}
	}
	return nil
}

// fewElements is how long a list of constants may be for looking at each to be the fastest way.
const fewElements = 8

func (t *binding) membership(n *node) tester {
	x, set := t.value(n.kids[0]), n.set
	null := slices.ContainsFunc(set, record.Value.IsNull)
	contains := func(v record.Value) bool {
		return slices.ContainsFunc(set, func(e record.Value) bool { return !e.IsNull() && equal(v, e) })
	}
	if kind := commonKind(set); len(set) > fewElements && (kind == record.Long || kind == record.String) {
		ordered := slices.SortedFunc(slices.Values(set), orderOf)
		contains = func(v record.Value) bool {
			if v.Kind != kind {
				return slices.ContainsFunc(set, func(e record.Value) bool { return equal(v, e) })
			}
			_, found := slices.BinarySearchFunc(ordered, v, orderOf)
			return found
		}
	}
	return func(r *record.Row) (bool, error) {
		v, err := x(r)
		if err != nil {
			return false, err
		}
		if v.IsNull() {
			return null, nil
		}
		return contains(v), nil
	}
}

// commonKind is the kind of all elements, or Missing.
func commonKind(set []record.Value) record.Kind {
	kind := record.Missing
	for i, v := range set {
		if i > 0 && v.Kind != kind {
			return record.Missing
		}
		kind = v.Kind
	}
	return kind
}

func orderOf(a, b record.Value) int {
	order, _ := compareOrder(a, b)
	return order
}

func (t *binding) textTest(n *node) tester {
	x, o := t.value(n.kids[0]), n.op
	if pattern := n.pattern; pattern != nil {
		return func(r *record.Row) (bool, error) {
			v, err := x(r)
			if err != nil || v.IsNull() {
				return false, err
			}
			if v.Kind != record.String {
				return false, notText(o, v)
			}
			return pattern.Match(v.Raw), nil
		}
	}
	y := t.value(n.kids[1])
	return func(r *record.Row) (bool, error) {
		v, err := x(r)
		if err != nil {
			return false, err
		}
		w, err := y(r)
		if err != nil || v.IsNull() || w.IsNull() {
			return false, err
		}
		if v.Kind != record.String {
			return false, notText(o, v)
		}
		if w.Kind != record.String {
			return false, notText(o, w)
		}
		switch o {
		case opContains:
			return bytes.Contains(v.Raw, w.Raw), nil
		case opStartsWith:
			return bytes.HasPrefix(v.Raw, w.Raw), nil
		}
		return bytes.HasSuffix(v.Raw, w.Raw), nil
	}
}

func notText(o op, v record.Value) error {
	return fmt.Errorf("%s needs a string, and this is %s", symbols[o], v.Kind)
}
