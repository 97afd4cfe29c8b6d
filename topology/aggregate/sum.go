package aggregate

import (
	"errors"
	"math"

	"millrace/record"
)

// errSumRange is what a sum of longs ends with instead of wrapping around.
var errSumRange = errors.New("the sum leaves the range of a long: declare the field decimal or double")

// sumLong adds longs or durations. Fixed part: has, sum.
type sumLong struct{ typ record.Type }

func (sumLong) layout() (int, bool)   { return 1 + 8, false }
func (s sumLong) result() record.Type { return s.typ }
func (sumLong) mergeable() bool       { return true }

func (sumLong) add(c *cell, v record.Value, _ *record.Row) error {
	before := c.num(1)
	sum := before + v.Num
	if (before^sum)&(v.Num^sum) < 0 {
		return errSumRange
	}
	c.fixed[0] = 1
	c.setNum(1, sum)
	return nil
}

func (s sumLong) merge(c, other *cell) error {
	if !other.has() {
		return nil
	}
	return s.add(c, record.LongValue(other.num(1)), nil)
}

func (s sumLong) value(c *cell) (record.Value, error) {
	if !c.has() {
		return record.NullValue(), nil
	}
	return record.Value{Kind: s.typ.Kind, Num: c.num(1)}, nil
}

// sumDouble adds doubles. Fixed part: has, high, low.
//
// The sum is kept as two doubles, the second being what the first could not hold: 106 bits in all. So a million small
// numbers do not drown in a large one, and the same numbers in another order give the same double, but for sums whose
// 106 bits are themselves not enough. Infinities and NaN follow IEEE 754.
type sumDouble struct{ typ record.Type }

func (sumDouble) layout() (int, bool)   { return 1 + 16, false }
func (s sumDouble) result() record.Type { return s.typ }
func (sumDouble) mergeable() bool       { return true }

func (sumDouble) add(c *cell, v record.Value, _ *record.Row) error {
	c.fixed[0] = 1
	addPair(c, 1, v.Float(), 0)
	return nil
}

func (sumDouble) merge(c, other *cell) error {
	if other.has() {
		c.fixed[0] = 1
		high, low := pair(other, 1)
		addPair(c, 1, high, low)
	}
	return nil
}

func (sumDouble) value(c *cell) (record.Value, error) {
	if !c.has() {
		return record.NullValue(), nil
	}
	high, _ := pair(c, 1)
	return record.DoubleValue(high), nil
}

func pair(c *cell, at int) (high, low float64) {
	return math.Float64frombits(uint64(c.num(at))), math.Float64frombits(uint64(c.num(at + 8)))
}

// addPair adds high+low to the pair at an offset of the fixed part.
func addPair(c *cell, at int, high, low float64) {
	h, l := pair(c, at)
	sum, lost := twoSum(h, high)
	if sum-sum != 0 { // infinite or NaN: the error term would turn an infinity into NaN
		lost = 0
	} else {
		sumLow, lostLow := twoSum(l, low)
		sum, lost = twoSum(sum, lost+sumLow)
		sum, lost = twoSum(sum, lost+lostLow)
	}
	c.setNum(at, int64(math.Float64bits(sum)))
	c.setNum(at+8, int64(math.Float64bits(lost)))
}

// twoSum returns the rounded sum and exactly what rounding took from it. The conversions keep the compiler from fusing
// operations, which would give other bits on other processors.
func twoSum(a, b float64) (sum, lost float64) {
	sum = float64(a + b)
	bPart := float64(sum - a)
	aPart := float64(sum - bPart)
	return sum, float64(float64(a-aPart) + float64(b-bPart))
}

// sumDecimal adds decimals exactly, at the largest scale among them. Fixed part: a decimal; slot: its digits, if many.
type sumDecimal struct{ typ record.Type }

func (sumDecimal) layout() (int, bool)   { return decimalWidth, true }
func (s sumDecimal) result() record.Type { return s.typ }
func (sumDecimal) mergeable() bool       { return true }

func (sumDecimal) add(c *cell, v record.Value, _ *record.Row) error { return addToDecimal(c, v) }

func (sumDecimal) merge(c, other *cell) error {
	v, err := readDecimal(other)
	if err != nil || v.IsNull() {
		return err
	}
	return addToDecimal(c, v)
}

func (sumDecimal) value(c *cell) (record.Value, error) { return readDecimal(c) }
