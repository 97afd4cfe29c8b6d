package aggregate

import (
	"bytes"
	"cmp"

	"millrace/record"
)

// extremeNumber is min (sign -1) or max (sign +1) of what is kept as a number. Fixed part: has, order key.
type extremeNumber struct {
	typ  record.Type
	sign int
}

func (extremeNumber) layout() (int, bool)   { return 1 + 8, false }
func (e extremeNumber) result() record.Type { return e.typ }
func (extremeNumber) mergeable() bool       { return true }

func (e extremeNumber) add(c *cell, v record.Value, _ *record.Row) error {
	e.take(c, orderKey(v))
	return nil
}

func (e extremeNumber) merge(c, other *cell) error {
	if other.has() {
		e.take(c, other.num(1))
	}
	return nil
}

func (e extremeNumber) take(c *cell, key int64) {
	if !c.has() || cmp.Compare(key, c.num(1)) == e.sign {
		c.fixed[0] = 1
		c.setNum(1, key)
	}
}

func (e extremeNumber) value(c *cell) (record.Value, error) {
	if !c.has() {
		return record.NullValue(), nil
	}
	return fromOrderKey(e.typ.Kind, c.num(1)), nil
}

// extremeDecimal is min or max of decimals. Of equal ones that are written differently, 1.5 is below 1.50. Fixed part:
// a decimal; slot: its digits, if many.
type extremeDecimal struct {
	typ  record.Type
	sign int
}

func (extremeDecimal) layout() (int, bool)   { return decimalWidth, true }
func (e extremeDecimal) result() record.Type { return e.typ }
func (extremeDecimal) mergeable() bool       { return true }

func (e extremeDecimal) add(c *cell, v record.Value, _ *record.Row) error {
	best, err := readDecimal(c)
	if err != nil {
		return err
	}
	if best.IsNull() || cmp.Or(record.CompareDecimal(v, best), cmp.Compare(v.Scale, best.Scale)) == e.sign {
		writeDecimal(c, v)
	}
	return nil
}

func (e extremeDecimal) merge(c, other *cell) error {
	v, err := readDecimal(other)
	if err != nil || v.IsNull() {
		return err
	}
	return e.add(c, v, nil)
}

func (extremeDecimal) value(c *cell) (record.Value, error) { return readDecimal(c) }

// extremeBytes is min or max of strings or bytes, compared byte by byte. Fixed part: has; slot: the value.
type extremeBytes struct {
	typ  record.Type
	sign int
}

func (extremeBytes) layout() (int, bool)   { return 1, true }
func (e extremeBytes) result() record.Type { return e.typ }
func (extremeBytes) mergeable() bool       { return true }

func (e extremeBytes) add(c *cell, v record.Value, _ *record.Row) error {
	if !c.has() || bytes.Compare(v.Raw, c.slot()) == e.sign {
		c.setSlot(v.Raw)
		c.fixed[0] = 1
	}
	return nil
}

func (e extremeBytes) merge(c, other *cell) error {
	if !other.has() {
		return nil
	}
	return e.add(c, record.Value{Raw: other.slot()}, nil)
}

func (e extremeBytes) value(c *cell) (record.Value, error) {
	if !c.has() {
		return record.NullValue(), nil
	}
	return record.Value{Kind: e.typ.Kind, Raw: c.slot()}, nil
}
