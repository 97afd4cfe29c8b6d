package expr

import (
	"errors"
	"fmt"
	"math"

	"millrace/record"
)

var (
	errOverflow       = errors.New("result does not fit a long (64 bits): convert with float() or decimal()")
	errDivideByZero   = errors.New("division by zero: guard it, as in x != 0 ? y / x : nil")
	errDurationRange  = errors.New("duration out of range: at most 292 years")
	errWholeNumbers   = errors.New("% needs whole numbers: wrap in int()")
	errTextTooLong    = errors.New("the expression builds more than 16 MiB of text for one record")
	errTooManySteps   = errors.New("the expression looks at more than 1,000,000 list elements for one record")
	errNotAFiniteLong = errors.New("int() cannot convert: the number does not fit a long (64 bits)")
)

const nanosPerMilli = 1_000_000

// arithmetic computes a o b for any kinds but text; null if either is null.
func arithmetic(o op, a, b record.Value) (record.Value, error) {
	switch {
	case a.IsNull() || b.IsNull():
		return record.NullValue(), nil
	case a.Kind == record.Long && b.Kind == record.Long:
		return longArithmetic(o, a.Num, b.Num)
	case numeric(a.Kind) && numeric(b.Kind):
		if o == opModulo {
			return record.Value{}, errWholeNumbers
		}
		if a.Kind == record.Double || b.Kind == record.Double || o == opDivide || o == opPower {
			return doubleArithmetic(o, asDouble(a), asDouble(b))
		}
		return decimalArithmetic(o, asDecimal(a), asDecimal(b))
	}
	v, known, err := timeArithmetic(o, a, b)
	if !known {
		err = fmt.Errorf("%s does not work between %s and %s", symbols[o], a.Kind, b.Kind)
	}
	return v, err
}

func longArithmetic(o op, a, b int64) (record.Value, error) {
	var n int64
	ok := true
	switch o {
	case opAdd:
		n = a + b
		ok = (a^n)&(b^n) >= 0
	case opSubtract:
		n = a - b
		ok = (a^b)&(a^n) >= 0
	case opMultiply:
		n, ok = record.MultiplyLong(a, b)
	case opModulo:
		if b == 0 {
			return record.Value{}, errDivideByZero
		}
		n = a % b
	default:
		return doubleArithmetic(o, float64(a), float64(b))
	}
	if !ok {
		return record.Value{}, errOverflow
	}
	return record.LongValue(n), nil
}

func doubleArithmetic(o op, a, b float64) (record.Value, error) {
	switch o {
	case opAdd:
		a += b
	case opSubtract:
		a -= b
	case opMultiply:
		a *= b
	case opDivide:
		if b == 0 {
			return record.Value{}, errDivideByZero
		}
		a /= b
	case opPower:
		a = math.Pow(a, b)
	default:
		return record.Value{}, errWholeNumbers
	}
	return record.DoubleValue(a), nil
}

func decimalArithmetic(o op, a, b record.Value) (record.Value, error) {
	switch o {
	case opAdd:
		return record.AddDecimal(a, b)
	case opSubtract:
		return record.SubtractDecimal(a, b)
	default:
		return record.MultiplyDecimal(a, b)
	}
}

// timeArithmetic covers times and durations; known is false if the operator has no meaning for them.
func timeArithmetic(o op, a, b record.Value) (v record.Value, known bool, err error) {
	if o == opMultiply {
		if a.Kind != record.Duration {
			a, b = b, a
		}
		if a.Kind != record.Duration || (b.Kind != record.Long && b.Kind != record.Double) {
			return v, false, nil
		}
		v, err = scaleDuration(a.Num, b)
		return v, true, err
	}
	if o == opDivide && a.Kind == record.Duration && b.Kind == record.Duration {
		v, err = doubleArithmetic(opDivide, float64(a.Num), float64(b.Num))
		return v, true, err
	}
	if o == opAdd && b.Kind == record.Time {
		a, b = b, a
	}
	switch {
	case o != opAdd && o != opSubtract:
		return v, false, nil
	case a.Kind == record.Duration && b.Kind == record.Duration:
		v, err = longArithmetic(o, a.Num, b.Num)
		v.Kind = record.Duration
	case a.Kind == record.Time && b.Kind == record.Duration:
		v, err = longArithmetic(o, a.Num, b.Num/nanosPerMilli)
		v.Kind = record.Time
	case a.Kind == record.Time && b.Kind == record.Time && o == opSubtract:
		if v, err = longArithmetic(o, a.Num, b.Num); err == nil {
			v, err = longArithmetic(opMultiply, v.Num, nanosPerMilli)
		}
		v.Kind = record.Duration
	default:
		return v, false, nil
	}
	if err != nil {
		err = errDurationRange
	}
	return v, true, err
}

func scaleDuration(ns int64, by record.Value) (record.Value, error) {
	if by.Kind == record.Long {
		n, ok := record.MultiplyLong(ns, by.Num)
		if !ok {
			return record.Value{}, errDurationRange
		}
		return record.DurationValue(n), nil
	}
	n, ok := truncate(float64(ns) * by.Float())
	if !ok {
		return record.Value{}, errDurationRange
	}
	return record.DurationValue(n), nil
}

// truncate cuts off the fraction; ok is false if int64 cannot hold the rest.
func truncate(f float64) (int64, bool) {
	const limit = 1 << 63
	if f >= -limit && f < limit {
		return int64(f), true
	}
	return 0, false
}

func negate(v record.Value) (record.Value, error) {
	switch v.Kind {
	case record.Missing, record.Null:
		return record.NullValue(), nil
	case record.Long, record.Duration:
		if v.Num == math.MinInt64 {
			return v, errOverflow
		}
		v.Num = -v.Num
	case record.Double:
		return record.DoubleValue(-v.Float()), nil
	case record.Decimal:
		return record.NegateDecimal(v), nil
	default:
		return v, fmt.Errorf("- needs a number, and this is %s", v.Kind)
	}
	return v, nil
}
