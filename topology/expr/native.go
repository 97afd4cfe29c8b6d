package expr

import (
	"encoding/binary"
	"fmt"

	"millrace/record"
)

// evaluator computes a value. What it returns may alias the row or the task's scratch.
type evaluator func(r *record.Row) (record.Value, error)

// value compiles n to a closure; n is not foreign.
func (t *binding) value(n *node) evaluator {
	switch {
	case n.op <= opArgument:
		return t.leaf(n)
	case n.op <= opMatches:
		test := t.test(n)
		return func(r *record.Row) (record.Value, error) {
			ok, err := test(r)
			return record.BoolValue(ok), err
		}
	case n.op <= opPower:
		return t.arithmetic(n)
	}
	x := t.value(n.kids[0])
	switch n.op {
	case opNegate:
		return func(r *record.Row) (record.Value, error) {
			v, err := x(r)
			if err != nil {
				return v, err
			}
			return negate(v)
		}
	case opCoalesce:
		y := t.value(n.kids[1])
		return func(r *record.Row) (record.Value, error) {
			v, err := x(r)
			if err != nil || !v.IsNull() {
				return v, err
			}
			return y(r)
		}
	case opCondition:
		return t.condition(n)
	case opToString:
		return t.toString(x)
	}
	o := n.op
	return func(r *record.Row) (record.Value, error) {
		v, err := x(r)
		if err != nil {
			return v, err
		}
		return convert(o, v)
	}
}

func (t *binding) condition(n *node) evaluator {
	test, yes, no := t.test(n.kids[0]), t.value(n.kids[1]), t.value(n.kids[2])
	return func(r *record.Row) (record.Value, error) {
		ok, err := test(r)
		switch {
		case err != nil:
			return record.Value{}, err
		case ok:
			return yes(r)
		}
		return no(r)
	}
}

func (t *binding) leaf(n *node) evaluator {
	slot, constant, name := n.slot, n.val, n.name
	switch n.op {
	case opConst:
		return func(*record.Row) (record.Value, error) { return constant, nil }
	case opField:
		return func(r *record.Row) (record.Value, error) { return r.Fields[slot], nil }
	case opKey:
		return keyReader(n.typ.Kind)
	case opTimestamp:
		return func(r *record.Row) (record.Value, error) { return record.TimeValue(r.Time), nil }
	case opHeader:
		return func(r *record.Row) (record.Value, error) { return header(r, name), nil }
	case opPartition:
		return func(r *record.Row) (record.Value, error) { return record.LongValue(int64(r.From.Partition)), nil }
	case opOffset:
		return func(r *record.Row) (record.Value, error) { return record.LongValue(r.From.Offset), nil }
	case opWindowStart:
		return func(r *record.Row) (record.Value, error) { return record.TimeValue(r.Window.Start), nil }
	case opWindowEnd:
		return func(r *record.Row) (record.Value, error) { return record.TimeValue(r.Window.End), nil }
	case opAcc:
		return func(r *record.Row) (record.Value, error) { return r.Acc, nil }
	case opArgument:
		return func(*record.Row) (record.Value, error) { return t.arguments[slot], nil }
	}
	return func(r *record.Row) (record.Value, error) { return record.StringValue(bytesOf(r.From.Topic)), nil }
}

func keyReader(kind record.Kind) evaluator {
	return func(r *record.Row) (record.Value, error) {
		if r.Key == nil {
			return record.NullValue(), nil
		}
		if kind != record.Long {
			return record.Value{Kind: kind, Raw: r.Key}, nil
		}
		if len(r.Key) != 8 {
			return record.Value{}, fmt.Errorf("key is %d bytes long: a long key has 8; correct key_format", len(r.Key))
		}
		return record.LongValue(int64(binary.BigEndian.Uint64(r.Key))), nil
	}
}

// header returns the last header of that name, as Kafka's own clients do.
func header(r *record.Row, name string) record.Value {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if h := &r.Headers[i]; string(h.Key) == name {
			if h.Value == nil {
				return record.NullValue()
			}
			return record.StringValue(h.Value)
		}
	}
	return record.Value{}
}

// arithmetic compiles the operators between two values; long and double have closures of their own.
func (t *binding) arithmetic(n *node) evaluator {
	x, y := t.value(n.kids[0]), t.value(n.kids[1])
	a, b, o := n.kids[0].typ, n.kids[1].typ, n.op
	if o == opAdd && (a.Any || b.Any || a.Kind == record.String) {
		return t.concatOrAdd(x, y)
	}
	switch known := !a.Any && !b.Any && a.Kind == b.Kind; {
	case known && a.Kind == record.Long:
		return longs(o, x, y)
	case known && a.Kind == record.Double:
		return doubles(o, x, y)
	}
	return func(r *record.Row) (record.Value, error) {
		v, err := x(r)
		if err != nil {
			return v, err
		}
		w, err := y(r)
		if err != nil {
			return w, err
		}
		return arithmetic(o, v, w)
	}
}

func longs(o op, x, y evaluator) evaluator {
	return func(r *record.Row) (record.Value, error) {
		v, err := x(r)
		if err != nil {
			return v, err
		}
		w, err := y(r)
		if err != nil {
			return w, err
		}
		if v.IsNull() || w.IsNull() {
			return record.NullValue(), nil
		}
		return longArithmetic(o, v.Num, w.Num)
	}
}

func doubles(o op, x, y evaluator) evaluator {
	return func(r *record.Row) (record.Value, error) {
		v, err := x(r)
		if err != nil {
			return v, err
		}
		w, err := y(r)
		if err != nil {
			return w, err
		}
		if v.IsNull() || w.IsNull() {
			return record.NullValue(), nil
		}
		return doubleArithmetic(o, v.Float(), w.Float())
	}
}

// concatOrAdd compiles + where text may be involved.
func (t *binding) concatOrAdd(x, y evaluator) evaluator {
	return func(r *record.Row) (record.Value, error) {
		v, err := x(r)
		if err != nil {
			return v, err
		}
		w, err := y(r)
		if err != nil {
			return w, err
		}
		if v.Kind != record.String || w.Kind != record.String {
			return arithmetic(opAdd, v, w)
		}
		start := len(t.scratch)
		if start+len(v.Raw)+len(w.Raw) > maxText {
			return v, errTextTooLong
		}
		t.scratch = append(append(t.scratch, v.Raw...), w.Raw...)
		return record.StringValue(t.scratch[start:len(t.scratch):len(t.scratch)]), nil
	}
}

func (t *binding) toString(x evaluator) evaluator {
	return func(r *record.Row) (record.Value, error) {
		v, err := x(r)
		if err != nil || v.Kind == record.String {
			return v, err
		}
		if v.IsNull() {
			return record.NullValue(), nil
		}
		start := len(t.scratch)
		if start+len(v.Raw) > maxText {
			return v, errTextTooLong
		}
		t.scratch = appendText(t.scratch, v)
		return record.StringValue(t.scratch[start:len(t.scratch):len(t.scratch)]), nil
	}
}
