package record

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// A Decimal is coefficient / 10^Scale. Scale is never negative and is kept as written: 12.30 stays 12.30. The coefficient
// is in Num as long as it fits there, and only otherwise in Raw, as digits with a sign. Sums and products are exact;
// nothing here rounds, except the way to a double.

// MaxDecimalDigits bounds a decimal's coefficient and its scale, so that neither a crafted exponent nor a product that
// is fed back into itself can grow without end.
const MaxDecimalDigits = 1000

// ErrDecimalRange says that a result would need more than MaxDecimalDigits digits.
var ErrDecimalRange = errors.New("decimal out of range: more than " + strconv.Itoa(MaxDecimalDigits) + " digits")

var errNotDecimal = errors.New("not a decimal number: want digits such as -12.30 or 1.5e3")

var powersOfTen = func() (p [19]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()

// DecimalValue returns coefficient / 10^scale; scale is at least 0.
func DecimalValue(coefficient int64, scale int32) Value {
	return Value{Kind: Decimal, Num: coefficient, Scale: scale}
}

// DecimalFromDouble returns the decimal that the shortest text of f names: 0.1 becomes exactly 0.1. It fails for NaN and
// the infinities, which no decimal can be.
func DecimalFromDouble(f float64) (Value, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Value{}, fmt.Errorf("%v as decimal: %w", f, errNotDecimal)
	}
	var buf [32]byte
	return ParseDecimal(strconv.AppendFloat(buf[:0], f, 'g', -1, 64))
}

// AddDecimal returns a + b with the larger of the two scales.
func AddDecimal(a, b Value) (Value, error) {
	if a.Raw == nil && b.Raw == nil {
		x, y, scale, ok := align(a, b)
		sum := x + y
		// The sum of two numbers overflows exactly if both have a sign that the sum has not.
		if ok && (x^sum)&(y^sum) >= 0 {
			return DecimalValue(sum, scale), nil
		}
	}
	x, y, scale := alignBig(a, b)
	return decimalFromBig(x.Add(x, y), int64(scale))
}

// SubtractDecimal returns a - b with the larger of the two scales.
func SubtractDecimal(a, b Value) (Value, error) { return AddDecimal(a, NegateDecimal(b)) }

// MultiplyDecimal returns a * b; the scales add up.
func MultiplyDecimal(a, b Value) (Value, error) {
	scale := int64(a.Scale) + int64(b.Scale)
	if a.Raw == nil && b.Raw == nil && scale <= MaxDecimalDigits {
		if product, ok := MultiplyLong(a.Num, b.Num); ok {
			return DecimalValue(product, int32(scale)), nil
		}
	}
	x := coefficient(a)
	return decimalFromBig(x.Mul(x, coefficient(b)), scale)
}

// NegateDecimal returns -v.
func NegateDecimal(v Value) Value {
	if v.Raw == nil && v.Num != math.MinInt64 {
		return DecimalValue(-v.Num, v.Scale)
	}
	x := coefficient(v)
	return storeBig(x.Neg(x), v.Scale)
}

// CompareDecimal returns -1, 0 or 1; 1.0 and 1.00 are equal.
func CompareDecimal(a, b Value) int {
	if a.Raw == nil && b.Raw == nil {
		if x, y, _, ok := align(a, b); ok {
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		}
	}
	x, y, _ := alignBig(a, b)
	return x.Cmp(y)
}

// MultiplyLong returns a * b, and whether that fits int64.
func MultiplyLong(a, b int64) (int64, bool) {
	negative := (a < 0) != (b < 0)
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if hi != 0 || lo > 1<<63 || (lo == 1<<63 && !negative) {
		return 0, false
	}
	if negative {
		return -int64(lo), true
	}
	return int64(lo), true
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// DecimalToLong returns the part before the point; ok is false if int64 cannot hold it. exact tells that nothing but
// zeros came after the point.
func DecimalToLong(v Value) (n int64, exact, ok bool) {
	if v.Raw == nil {
		if int(v.Scale) >= len(powersOfTen) {
			return 0, v.Num == 0, true
		}
		p := powersOfTen[v.Scale]
		return v.Num / p, v.Num%p == 0, true
	}
	whole, rest := new(big.Int).QuoRem(coefficient(v), powerOfTen(v.Scale), new(big.Int))
	return whole.Int64(), rest.Sign() == 0, whole.IsInt64()
}

// DecimalToDouble returns the double nearest to v; too large a number becomes an infinity.
func DecimalToDouble(v Value) float64 {
	// Both numbers are exact doubles here, so that the division rounds once and correctly.
	if v.Raw == nil && magnitude(v.Num) < 1<<53 && v.Scale < int32(len(powersOfTen)) {
		return float64(v.Num) / float64(powersOfTen[v.Scale])
	}
	var buf [64]byte
	f, _ := strconv.ParseFloat(string(AppendDecimal(buf[:0], v)), 64) // the only error is the range, and says an infinity
	return f
}

// AppendDecimal appends v in plain form, with exactly Scale digits after the point.
func AppendDecimal(dst []byte, v Value) []byte {
	var buf [20]byte
	digits := v.Raw
	if digits == nil {
		digits = strconv.AppendInt(buf[:0], v.Num, 10)
	}
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	scale := int(v.Scale)
	if scale == 0 {
		return append(dst, digits...)
	}
	if len(digits) <= scale {
		dst = append(dst, '0', '.')
		for range scale - len(digits) {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	point := len(digits) - scale
	dst = append(dst, digits[:point]...)
	dst = append(dst, '.')
	return append(dst, digits[point:]...)
}

// align brings two small coefficients to one scale; ok is false when that overflows.
func align(a, b Value) (x, y int64, scale int32, ok bool) {
	x, y = a.Num, b.Num
	switch {
	case a.Scale == b.Scale:
		return x, y, a.Scale, true
	case a.Scale < b.Scale:
		x, ok = scaleUp(x, b.Scale-a.Scale)
		return x, y, b.Scale, ok
	default:
		y, ok = scaleUp(y, a.Scale-b.Scale)
		return x, y, a.Scale, ok
	}
}

func scaleUp(n int64, digits int32) (int64, bool) {
	if int(digits) >= len(powersOfTen) {
		return 0, n == 0
	}
	return MultiplyLong(n, powersOfTen[digits])
}

func alignBig(a, b Value) (x, y *big.Int, scale int32) {
	x, y = coefficient(a), coefficient(b)
	if a.Scale < b.Scale {
		return x.Mul(x, powerOfTen(b.Scale-a.Scale)), y, b.Scale
	}
	return x, y.Mul(y, powerOfTen(a.Scale-b.Scale)), a.Scale
}

func powerOfTen(n int32) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func coefficient(v Value) *big.Int {
	if v.Raw == nil {
		return big.NewInt(v.Num)
	}
	x, _ := new(big.Int).SetString(string(v.Raw), 10) // Raw is digits: this package wrote or checked them
	return x
}

func decimalFromBig(x *big.Int, scale int64) (Value, error) {
	// 10 bits hold more than three digits, so that this cheap test lets nothing pass that is far too long.
	if scale > MaxDecimalDigits || x.BitLen() > MaxDecimalDigits*10/3 {
		return Value{}, ErrDecimalRange
	}
	return storeBig(x, int32(scale)), nil
}

func storeBig(x *big.Int, scale int32) Value {
	if x.IsInt64() {
		return DecimalValue(x.Int64(), scale)
	}
	return Value{Kind: Decimal, Scale: scale, Raw: x.Append(nil, 10)}
}
