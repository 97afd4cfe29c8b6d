package aggregate

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"millrace/record"
)

// coerce brings an argument to its declared type: a long may stand where a double or a decimal is declared, anything
// else must be what it was said to be.
func coerce(v record.Value, t record.Type) (record.Value, error) {
	switch {
	case v.IsNull(), t.Any, v.Kind == t.Kind:
		return v, nil
	case v.Kind == record.Long && t.Kind == record.Double:
		return record.DoubleValue(float64(v.Num)), nil
	case v.Kind == record.Long && t.Kind == record.Decimal:
		return record.DecimalValue(v.Num, 0), nil
	}
	return v, fmt.Errorf("the value is a %s where %s is declared", v.Kind, t)
}

// appendValue writes a value so that equal values give equal bytes: the kind, then 8 bytes for a number, or a length
// and bytes. A decimal has its scale first and a length of 0 where the coefficient is a number.
func appendValue(dst []byte, v record.Value) []byte {
	dst = append(dst, byte(v.Kind))
	switch v.Kind {
	case record.Missing, record.Null:
		return dst
	case record.Bool, record.Long, record.Double, record.Time, record.Duration:
		return binary.LittleEndian.AppendUint64(dst, uint64(v.Num))
	case record.Decimal:
		dst = binary.AppendUvarint(dst, uint64(v.Scale))
		if v.Raw == nil {
			dst = append(dst, 0)
			return binary.LittleEndian.AppendUint64(dst, uint64(v.Num))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(v.Raw)))
	return append(dst, v.Raw...)
}

// takeValue reads what appendValue wrote; the value aliases b.
func takeValue(b []byte) (v record.Value, rest []byte, err error) {
	if len(b) == 0 || b[0] > byte(record.Map) {
		return v, nil, corrupt("no value")
	}
	v.Kind, b = record.Kind(b[0]), b[1:]
	switch v.Kind {
	case record.Missing, record.Null:
		return v, b, nil
	case record.Bool, record.Long, record.Double, record.Time, record.Duration:
		return takeNum(v, b)
	case record.Decimal:
		scale, n := binary.Uvarint(b)
		if n <= 0 || scale > record.MaxDecimalDigits {
			return v, nil, corrupt("scale of a decimal")
		}
		v.Scale, b = int32(scale), b[n:]
		if len(b) > 0 && b[0] == 0 {
			return takeNum(v, b[1:])
		}
	}
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return v, nil, corrupt("length of a value")
	}
	b = b[n:]
	v.Raw = b[:size:size]
	if v.Kind == record.Decimal && !isDigits(v.Raw) {
		return v, nil, corrupt("digits of a decimal")
	}
	return v, b[size:], nil
}

func takeNum(v record.Value, b []byte) (record.Value, []byte, error) {
	if len(b) < 8 {
		return v, nil, corrupt("number of 8 bytes")
	}
	v.Num = int64(binary.LittleEndian.Uint64(b))
	return v, b[8:], nil
}

// isDigits tells whether raw can be a decimal's coefficient; record's arithmetic relies on it.
func isDigits(raw []byte) bool {
	if len(raw) > 0 && raw[0] == '-' {
		raw = raw[1:]
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(raw) > 0 && len(raw) <= 2*record.MaxDecimalDigits
}

// canonical gives values that are equal one form: 1.50 and 1.5, 0 and -0, all the NaNs.
func canonical(v record.Value) record.Value {
	switch v.Kind {
	case record.Double:
		return record.DoubleValue(canonicalFloat(v.Float()))
	case record.Decimal:
		if v.Raw == nil {
			for v.Scale > 0 && v.Num%10 == 0 {
				v.Num, v.Scale = v.Num/10, v.Scale-1
			}
			return v
		}
		return stripBig(v)
	}
	return v
}

// stripBig drops trailing zeros; what then fits int64 is read anew, so that it becomes a number.
func stripBig(v record.Value) record.Value {
	stripped := v
	for stripped.Scale > 0 && len(stripped.Raw) > 2 && stripped.Raw[len(stripped.Raw)-1] == '0' {
		stripped.Raw, stripped.Scale = stripped.Raw[:len(stripped.Raw)-1], stripped.Scale-1
	}
	if n, err := record.ParseDecimal(stripped.Raw); err == nil && n.Raw == nil {
		return record.DecimalValue(n.Num, stripped.Scale)
	}
	return stripped
}

func canonicalFloat(f float64) float64 {
	switch {
	case f != f:
		return math.NaN()
	case f == 0:
		return 0
	}
	return f
}

// orderKey maps a number of one kind to an integer of the same order. Doubles get the order of their bits, in which -0
// is below 0 and NaN above everything, so that an extreme never depends on which came first.
func orderKey(v record.Value) int64 {
	if v.Kind != record.Double {
		return v.Num
	}
	if f := v.Float(); f != f {
		v = record.DoubleValue(math.NaN())
	}
	return flipNegative(v.Num)
}

// fromOrderKey is the inverse of orderKey.
func fromOrderKey(kind record.Kind, key int64) record.Value {
	if kind == record.Double {
		key = flipNegative(key)
	}
	return record.Value{Kind: kind, Num: key}
}

// flipNegative turns sign and magnitude into two's complement and back.
func flipNegative(bits int64) int64 {
	if bits < 0 {
		return bits ^ math.MaxInt64
	}
	return bits
}

// compare orders canonical values: by kind, then numbers by size, everything else by bytes.
func compare(a, b record.Value) int {
	if a.Kind != b.Kind {
		return cmp.Compare(a.Kind, b.Kind)
	}
	switch a.Kind {
	case record.Missing, record.Null:
		return 0
	case record.Bool, record.Long, record.Double, record.Time, record.Duration:
		return cmp.Compare(orderKey(a), orderKey(b))
	case record.Decimal:
		return record.CompareDecimal(a, b)
	}
	return bytes.Compare(a.Raw, b.Raw)
}
