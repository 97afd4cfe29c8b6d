package aggregate

import (
	"encoding/binary"
	"math/big"

	"millrace/record"
)

// A decimal that changes with every record lies at the start of a fixed part: form, coefficient, scale. Only one whose
// coefficient exceeds int64 has its digits in the slot.
const decimalWidth = 1 + 8 + 4

const (
	decimalNone  = 0
	decimalSmall = 1
	decimalBig   = 2
)

// readDecimal returns null where there is none yet. A big one aliases the state.
func readDecimal(c *cell) (record.Value, error) {
	scale := binary.LittleEndian.Uint32(c.fixed[9:])
	if scale > record.MaxDecimalDigits {
		return record.Value{}, corrupt("scale of a decimal")
	}
	switch c.fixed[0] {
	case decimalNone:
		return record.NullValue(), nil
	case decimalSmall:
		return record.DecimalValue(c.num(1), int32(scale)), nil
	case decimalBig:
		if isDigits(c.slot()) {
			return record.Value{Kind: record.Decimal, Scale: int32(scale), Raw: c.slot()}, nil
		}
	}
	return record.Value{}, corrupt("form of a decimal")
}

func writeDecimal(c *cell, v record.Value) {
	c.setSlot(v.Raw)
	c.fixed[0] = decimalSmall
	if v.Raw != nil {
		c.fixed[0], v.Num = decimalBig, 0
	}
	c.setNum(1, v.Num)
	binary.LittleEndian.PutUint32(c.fixed[9:], uint32(v.Scale))
}

func addToDecimal(c *cell, v record.Value) error {
	sum, err := readDecimal(c)
	if err != nil {
		return err
	}
	if sum.IsNull() {
		sum = record.DecimalValue(0, 0)
	}
	if sum, err = record.AddDecimal(sum, v); err != nil {
		return err
	}
	writeDecimal(c, sum)
	return nil
}

// averageDigits is how many digits more than the widest argument an average of decimals has.
const averageDigits = 6

// divideDecimal returns sum/n, rounded half away from zero to averageDigits more digits than sum has; of these, zeros
// at the end are dropped.
func divideDecimal(sum record.Value, n int64) record.Value {
	x := new(big.Int)
	if sum.Raw == nil {
		x.SetInt64(sum.Num)
	} else {
		x.SetString(string(sum.Raw), 10) // readDecimal has checked that these are digits
	}
	extra := min(averageDigits, record.MaxDecimalDigits-sum.Scale)
	x.Mul(x, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(extra)), nil))
	// Adding half the divisor, away from zero, makes the division that truncates one that rounds.
	double := new(big.Int).Mul(big.NewInt(n), big.NewInt(2))
	x.Mul(x, big.NewInt(2))
	if x.Sign() < 0 {
		x.Sub(x, big.NewInt(n))
	} else {
		x.Add(x, big.NewInt(n))
	}
	x.Quo(x, double)
	scale := sum.Scale + extra
	for ten, rest := big.NewInt(10), new(big.Int); scale > sum.Scale; scale-- {
		shorter, _ := new(big.Int).QuoRem(x, ten, rest)
		if rest.Sign() != 0 {
			break
		}
		x = shorter
	}
	if x.IsInt64() {
		return record.DecimalValue(x.Int64(), scale)
	}
	return record.Value{Kind: record.Decimal, Scale: scale, Raw: x.Append(nil, 10)}
}
