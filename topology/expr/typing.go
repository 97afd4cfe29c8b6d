package expr

import (
	"math"

	"millrace/record"
)

func numeric(k record.Kind) bool {
	return k == record.Long || k == record.Double || k == record.Decimal
}

// promote is the kind that arithmetic of two numeric kinds has.
func promote(a, b record.Kind) record.Kind {
	switch {
	case a == record.Double || b == record.Double:
		return record.Double
	case a == record.Decimal || b == record.Decimal:
		return record.Decimal
	}
	return record.Long
}

// equatable tells whether == of two types can ever be true.
func equatable(a, b record.Type) bool {
	return a.Any || b.Any || a.Kind == b.Kind || a.Kind == record.Null || b.Kind == record.Null ||
		(numeric(a.Kind) && numeric(b.Kind))
}

// orderable tells whether two types can be compared for order.
func orderable(a, b record.Type) bool {
	if a.Any || b.Any {
		return ordered(a) && ordered(b)
	}
	return (numeric(a.Kind) && numeric(b.Kind)) || (a.Kind == b.Kind && ordered(a))
}

func ordered(t record.Type) bool {
	switch t.Kind {
	case record.String, record.Bytes, record.Time, record.Duration:
		return true
	}
	return t.Any || numeric(t.Kind)
}

// arithmeticType is the type of an operator's result; ok is false if the operator has no meaning for its operands.
func arithmeticType(o op, a, b record.Type) (t record.Type, ok bool) {
	if a.Any || b.Any {
		return dynamicType(o, a, b)
	}
	if numeric(a.Kind) && numeric(b.Kind) {
		t.Kind = promote(a.Kind, b.Kind)
		switch o {
		case opDivide, opPower:
			t.Kind = record.Double
		case opModulo:
			if t.Kind != record.Long {
				return t, false
			}
		}
	} else if t, ok = mixedType(o, a, b); !ok {
		return t, false
	}
	t.Nullable = a.Nullable || b.Nullable
	return t, true
}

// mixedType covers text, times and durations.
func mixedType(o op, a, b record.Type) (record.Type, bool) {
	duration := record.Type{Kind: record.Duration}
	switch {
	case o == opAdd && a.Kind == record.String && b.Kind == record.String:
		return textType, true
	case (o == opAdd || o == opSubtract) && a.Kind == record.Duration && b.Kind == record.Duration:
		return duration, true
	case (o == opAdd || o == opSubtract) && a.Kind == record.Time && b.Kind == record.Duration:
		return a, true
	case o == opAdd && a.Kind == record.Duration && b.Kind == record.Time:
		return b, true
	case o == opSubtract && a.Kind == record.Time && b.Kind == record.Time:
		return duration, true
	case o == opMultiply && a.Kind == record.Duration && (b.Kind == record.Long || b.Kind == record.Double),
		o == opMultiply && b.Kind == record.Duration && (a.Kind == record.Long || a.Kind == record.Double):
		return duration, true
	case o == opDivide && a.Kind == record.Duration && b.Kind == record.Duration:
		return doubleType, true
	}
	return record.Type{}, false
}

// dynamicType is arithmeticType where at least one operand is known only with the record.
func dynamicType(o op, a, b record.Type) (record.Type, bool) {
	usable := func(t record.Type) bool {
		switch t.Kind {
		case record.String:
			return o == opAdd
		case record.Time, record.Duration:
			return o != opModulo && o != opPower
		}
		return t.Any || numeric(t.Kind)
	}
	if !usable(a) || !usable(b) {
		return record.Type{}, false
	}
	switch o {
	case opDivide, opPower:
		return record.Type{Kind: record.Double, Nullable: true}, true
	case opModulo:
		return record.Type{Kind: record.Long, Nullable: true}, true
	}
	return anything, true
}

// unify is the type of a value that comes from either of two branches. Numbers of different kinds are converted to the
// common one; everything else that differs is known only with the record.
func unify(a, b record.Type) record.Type {
	nullable := a.Nullable || b.Nullable
	t := a
	switch {
	case a.Kind == record.Null && !a.Any:
		t = b
	case b.Kind == record.Null && !b.Any:
	case a.Any || b.Any:
		return anything
	case numeric(a.Kind) && numeric(b.Kind):
		t = record.Type{Kind: promote(a.Kind, b.Kind)}
	case a.Kind != b.Kind:
		return anything
	}
	t.Nullable = nullable
	return t
}

// convertConstant returns v as a number of another kind, if that loses nothing.
func convertConstant(v record.Value, to record.Kind) (record.Value, bool) {
	const exact = 1 << 53
	switch {
	case v.Kind == to:
		return v, true
	case v.Kind == record.Long && to == record.Double && v.Num >= -exact && v.Num <= exact:
		return record.DoubleValue(float64(v.Num)), true
	case v.Kind == record.Long && to == record.Decimal:
		return record.DecimalValue(v.Num, 0), true
	case v.Kind == record.Double && to == record.Decimal && !math.IsInf(v.Float(), 0):
		d, err := record.DecimalFromDouble(v.Float())
		return d, err == nil
	}
	return v, false
}
