package aggregate

import (
	"math"
	"math/bits"

	"millrace/record"
)

// avgLong averages longs, to a double, or durations, to whole nanoseconds. Fixed part: count, then the sum in 128 bits,
// high and low, so that it cannot overflow.
type avgLong struct{ typ record.Type }

func (avgLong) layout() (int, bool)   { return 8 + 16, false }
func (a avgLong) result() record.Type { return a.typ }
func (avgLong) mergeable() bool       { return true }

func (avgLong) add(c *cell, v record.Value, _ *record.Row) error {
	addWide(c, 1, v.Num>>63, uint64(v.Num))
	return nil
}

func (avgLong) merge(c, other *cell) error {
	addWide(c, other.num(0), other.num(8), uint64(other.num(16)))
	return nil
}

// addWide adds a 128-bit number, the sum of n values.
func addWide(c *cell, n, high int64, low uint64) {
	sumLow, carry := bits.Add64(uint64(c.num(16)), low, 0)
	c.setNum(0, c.num(0)+n)
	c.setNum(8, c.num(8)+high+int64(carry))
	c.setNum(16, int64(sumLow))
}

func (a avgLong) value(c *cell) (record.Value, error) {
	n := c.num(0)
	if n == 0 {
		return record.NullValue(), nil
	}
	high, low := uint64(c.num(8)), uint64(c.num(16))
	negative := c.num(8) < 0
	if negative {
		var borrow uint64
		low, borrow = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}
	if n < 0 || high >= uint64(n) {
		return record.Value{}, corrupt("sum of an average")
	}
	whole, rest := bits.Div64(high, low, uint64(n))
	if a.typ.Kind == record.Duration {
		if rest >= uint64(n)-rest {
			whole++
		}
		if negative {
			whole = -whole
		}
		return record.DurationValue(int64(whole)), nil
	}
	f := float64(whole) + float64(rest)/float64(n)
	if negative {
		f = -f
	}
	return record.DoubleValue(f), nil
}

// avgDouble averages doubles: the sum as sumDouble has it, rounded once after the division. Fixed part: count, high, low.
type avgDouble struct{ typ record.Type }

func (avgDouble) layout() (int, bool)   { return 8 + 16, false }
func (a avgDouble) result() record.Type { return a.typ }
func (avgDouble) mergeable() bool       { return true }

func (avgDouble) add(c *cell, v record.Value, _ *record.Row) error {
	c.setNum(0, c.num(0)+1)
	addPair(c, 8, v.Float(), 0)
	return nil
}

func (avgDouble) merge(c, other *cell) error {
	c.setNum(0, c.num(0)+other.num(0))
	high, low := pair(other, 8)
	addPair(c, 8, high, low)
	return nil
}

func (avgDouble) value(c *cell) (record.Value, error) {
	if c.num(0) == 0 {
		return record.NullValue(), nil
	}
	high, low := pair(c, 8)
	n := float64(c.num(0))
	quotient := high / n
	// What the division left over, and the low half of the sum, decide the last digit.
	if rest := math.FMA(-quotient, n, high) + low; rest-rest == 0 {
		quotient += rest / n
	}
	return record.DoubleValue(quotient), nil
}

// avgDecimal averages decimals, to a decimal with up to averageDigits more digits after the point. Fixed part: a
// decimal, the sum, then the count; slot: the sum's digits, if many.
type avgDecimal struct{ typ record.Type }

func (avgDecimal) layout() (int, bool)   { return decimalWidth + 8, true }
func (a avgDecimal) result() record.Type { return a.typ }
func (avgDecimal) mergeable() bool       { return true }

func (avgDecimal) add(c *cell, v record.Value, _ *record.Row) error {
	if err := addToDecimal(c, v); err != nil {
		return err
	}
	c.setNum(decimalWidth, c.num(decimalWidth)+1)
	return nil
}

func (avgDecimal) merge(c, other *cell) error {
	v, err := readDecimal(other)
	if err != nil || v.IsNull() {
		return err
	}
	if err := addToDecimal(c, v); err != nil {
		return err
	}
	c.setNum(decimalWidth, c.num(decimalWidth)+other.num(decimalWidth))
	return nil
}

func (avgDecimal) value(c *cell) (record.Value, error) {
	sum, err := readDecimal(c)
	if err != nil || sum.IsNull() {
		return sum, err
	}
	n := c.num(decimalWidth)
	if n <= 0 {
		return record.Value{}, corrupt("count of an average")
	}
	return divideDecimal(sum, n), nil
}
