package expr

import (
	"bytes"
	"cmp"
	"fmt"
	"math"

	"millrace/record"
)

// unordered is the result of comparing with NaN: neither less nor equal nor greater.
const unordered = 2

// holds tells whether a comparison's result fulfils its operator.
func holds(o op, order int) bool {
	switch o {
	case opEqual:
		return order == 0
	case opUnequal:
		return order != 0
	case opLess:
		return order < 0
	case opLessEqual:
		return order <= 0
	case opGreater:
		return order == 1
	default:
		return order == 0 || order == 1
	}
}

// holdsNull is holds where at least one side is null.
func holdsNull(o op, a, b record.Value) bool {
	switch o {
	case opEqual:
		return a.IsNull() && b.IsNull()
	case opUnequal:
		return !a.IsNull() || !b.IsNull()
	}
	return false
}

// compareAny compares values of any kinds. Only for == and != are kinds that have nothing in common allowed.
func compareAny(o op, a, b record.Value) (bool, error) {
	if a.IsNull() || b.IsNull() {
		return holdsNull(o, a, b), nil
	}
	if o == opEqual || o == opUnequal {
		return equal(a, b) == (o == opEqual), nil
	}
	order, ok := compareOrder(a, b)
	if !ok {
		return false, fmt.Errorf("%s cannot compare %s with %s", symbols[o], a.Kind, b.Kind)
	}
	return holds(o, order), nil
}

// equal compares two values that are not null.
func equal(a, b record.Value) bool {
	if order, ok := compareOrder(a, b); ok {
		return order == 0
	}
	if a.Kind != b.Kind {
		return false
	}
	if a.Kind == record.Bool {
		return a.Num == b.Num
	}
	return bytes.Equal(a.Raw, b.Raw)
}

// compareOrder compares two values that are not null; ok is false if their kinds have no common order.
func compareOrder(a, b record.Value) (order int, ok bool) {
	if a.Kind != b.Kind {
		if numeric(a.Kind) && numeric(b.Kind) {
			return compareNumbers(a, b), true
		}
		return 0, false
	}
	switch a.Kind {
	case record.Long, record.Time, record.Duration:
		return cmp.Compare(a.Num, b.Num), true
	case record.Double:
		return compareDoubles(a.Float(), b.Float()), true
	case record.Decimal:
		return record.CompareDecimal(a, b), true
	case record.String, record.Bytes:
		return bytes.Compare(a.Raw, b.Raw), true
	}
	return 0, false
}

// compareNumbers compares numbers of different kinds.
func compareNumbers(a, b record.Value) int {
	switch {
	case a.Kind == record.Long && b.Kind == record.Double:
		return compareLongDouble(a.Num, b.Float())
	case a.Kind == record.Double && b.Kind == record.Long:
		if order := compareLongDouble(b.Num, a.Float()); order != unordered {
			return -order
		}
		return unordered
	case a.Kind == record.Double || b.Kind == record.Double:
		return compareDoubles(asDouble(a), asDouble(b))
	}
	return record.CompareDecimal(asDecimal(a), asDecimal(b))
}

func compareDoubles(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	}
	return unordered
}

// compareLongDouble is exact: as doubles, long numbers that differ could be the same.
func compareLongDouble(a int64, b float64) int {
	const limit = 1 << 63
	switch {
	case b != b:
		return unordered
	case b >= limit:
		return -1
	case b < -limit:
		return 1
	}
	whole := math.Floor(b)
	if order := cmp.Compare(a, int64(whole)); order != 0 || whole == b {
		return order
	}
	return -1
}

func asDouble(v record.Value) float64 {
	switch v.Kind {
	case record.Long:
		return float64(v.Num)
	case record.Decimal:
		return record.DecimalToDouble(v)
	}
	return v.Float()
}

// asDecimal turns a long into the decimal that it equals.
func asDecimal(v record.Value) record.Value {
	v.Kind = record.Decimal
	return v
}
