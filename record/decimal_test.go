package record

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawDecimal draws coefficients of all sizes, often next to the limits of int64, where the fast path ends.
func drawDecimal(t *rapid.T, label string) Value {
	n := rapid.OneOf(
		rapid.Int64(),
		rapid.Int64Range(-1000, 1000),
		rapid.Int64Range(math.MaxInt64-2, math.MaxInt64),
		rapid.Int64Range(math.MinInt64, math.MinInt64+2),
	).Draw(t, label)
	v := DecimalValue(n, rapid.Int32Range(0, 25).Draw(t, label+" scale"))
	if rapid.Bool().Draw(t, label+" is large") {
		text := AppendDecimal(nil, DecimalValue(n, 0))
		v, _ = ParseDecimal([]byte(string(text) + "12345678901234567890.5"))
	}
	return v
}

func rat(v Value) *big.Rat {
	r, ok := new(big.Rat).SetString(string(AppendDecimal(nil, v)))
	if !ok {
		panic("not a number: " + string(AppendDecimal(nil, v)))
	}
	return r
}

func TestDecimalArithmeticIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawDecimal(t, "a"), drawDecimal(t, "b")
		sum, err1 := AddDecimal(a, b)
		difference, err2 := SubtractDecimal(a, b)
		product, err3 := MultiplyDecimal(a, b)
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			got  Value
			want *big.Rat
		}{
			{"a+b", sum, new(big.Rat).Add(rat(a), rat(b))},
			{"a-b", difference, new(big.Rat).Sub(rat(a), rat(b))},
			{"a*b", product, new(big.Rat).Mul(rat(a), rat(b))},
			{"-a", NegateDecimal(a), new(big.Rat).Neg(rat(a))},
		} {
			if rat(c.got).Cmp(c.want) != 0 {
				t.Fatalf("%s = %s, want %s", c.name, AppendDecimal(nil, c.got), c.want)
			}
			if (c.got.Raw != nil) == new(big.Int).Set(coefficient(c.got)).IsInt64() {
				t.Fatalf("%s: Raw is %q, but must be used only beyond int64", c.name, c.got.Raw)
			}
		}
		if sum.Scale != max(a.Scale, b.Scale) || product.Scale != a.Scale+b.Scale {
			t.Fatalf("scales %d and %d give %d for the sum and %d for the product", a.Scale, b.Scale, sum.Scale, product.Scale)
		}
		if got, want := CompareDecimal(a, b), rat(a).Cmp(rat(b)); got != want {
			t.Fatalf("compare = %d, want %d", got, want)
		}
		if got, want := DecimalToDouble(a), nearest(a); got != want {
			t.Fatalf("%s as double = %v, want %v", AppendDecimal(nil, a), got, want)
		}
	})
}

func nearest(v Value) float64 {
	f, _ := rat(v).Float64()
	return f
}

func TestDecimalTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawDecimal(t, "v")
		text := string(AppendDecimal(nil, v))
		back, err := ParseDecimal([]byte(text))
		if err != nil || string(AppendDecimal(nil, back)) != text || back.Scale != v.Scale {
			t.Fatalf("%s came back as %s: %v", text, AppendDecimal(nil, back), err)
		}
	})
}

func TestParseDecimal(t *testing.T) {
	for in, want := range map[string]string{
		"12.30": "12.30", "-0.05": "-0.05", "+7": "7", "0": "0", "1.5e3": "1500", "1.5e1": "15", "1e-3": "0.001", "-0.0": "0.0",
		"9223372036854775808": "9223372036854775808", "-9223372036854775808": "-9223372036854775808", "007": "7", "12.5E+1": "125",
		"1e20": "100000000000000000000", "0e999": "0",
	} {
		v, err := ParseDecimal([]byte(in))
		if got := string(AppendDecimal(nil, v)); err != nil || got != want {
			t.Errorf("%q = %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-", "NaN", "Inf", "1.", ".5", "1e", "1e+", "0x1", "1_0", " 1", "1 ", "1.2.3", "--1"} {
		if v, err := ParseDecimal([]byte(in)); err == nil {
			t.Errorf("%q is taken as %s", in, AppendDecimal(nil, v))
		}
	}
	for _, in := range []string{"1e1001", "1e-1001", "1e99999999999999999999", strings.Repeat("9", 3000)} {
		if _, err := ParseDecimal([]byte(in)); !errors.Is(err, ErrDecimalRange) {
			t.Errorf("%.20s…: %v, want ErrDecimalRange", in, err)
		}
	}
}

func TestDecimalGrowthIsBounded(t *testing.T) {
	v, err := DecimalValue(11, 1), error(nil)
	for range 2 * MaxDecimalDigits {
		if v, err = MultiplyDecimal(v, DecimalValue(11, 1)); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrDecimalRange) {
		t.Errorf("a product that is fed back never ends: %v", err)
	}
}

func TestDecimalConversions(t *testing.T) {
	for _, c := range []struct {
		in        string
		n         int64
		exact, ok bool
	}{
		{"5.00", 5, true, true}, {"-5.9", -5, false, true}, {"0.000000000000000000001", 0, false, true},
		{"9223372036854775808", 0, true, false}, {"9223372036854775807.5", math.MaxInt64, false, true},
	} {
		v, _ := ParseDecimal([]byte(c.in))
		n, exact, ok := DecimalToLong(v)
		if ok != c.ok || exact != c.exact || (ok && n != c.n) {
			t.Errorf("%s as long = %d, %v, %v", c.in, n, exact, ok)
		}
	}
	if v, err := DecimalFromDouble(0.1); err != nil || string(AppendDecimal(nil, v)) != "0.1" {
		t.Errorf("0.1 = %s, %v", AppendDecimal(nil, v), err)
	}
	if _, err := DecimalFromDouble(math.NaN()); err == nil {
		t.Error("NaN became a decimal")
	}
}

func TestDecimalAllocatesNothing(t *testing.T) {
	a, b := DecimalValue(123450, 2), DecimalValue(-7, 3)
	text := []byte("12345.67")
	buf := make([]byte, 0, 64)
	allocs := testing.AllocsPerRun(1000, func() {
		sum, _ := AddDecimal(a, b)
		product, _ := MultiplyDecimal(sum, b)
		parsed, _ := ParseDecimal(text)
		if CompareDecimal(product, parsed) == 0 || DecimalToDouble(sum) == 0 {
			t.Fatal("wrong")
		}
		buf = AppendDecimal(buf[:0], product)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}
