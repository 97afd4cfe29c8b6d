package aggregate

import (
	"encoding/binary"
	"errors"
	"math"

	"millrace/record"
)

var errNotJSON = errors.New("NaN and infinities cannot be in a list: filter them with where")

// collection is what list and set share. Fixed part: the number of values; slot: the values, one after the other.
type collection struct {
	form  record.TimeForm
	limit int
}

func (collection) layout() (int, bool) { return 4, true }
func (collection) result() record.Type { return record.Type{Kind: record.List} }

func (collection) size(c *cell) int { return int(binary.LittleEndian.Uint32(c.fixed)) }

func (collection) setSize(c *cell, n int) { binary.LittleEndian.PutUint32(c.fixed, uint32(n)) }

// value writes the list as JSON.
func (l collection) value(c *cell) (record.Value, error) {
	from := len(c.text)
	c.text = append(c.text, '[')
	for rest := c.slot(); len(rest) > 0; {
		var v record.Value
		var err error
		if v, rest, err = takeValue(rest); err != nil {
			return v, err
		}
		if len(c.text) > from+1 {
			c.text = append(c.text, ',')
		}
		c.text = appendJSON(c.text, v, l.form)
	}
	c.text = append(c.text, ']')
	return record.Value{Kind: record.List, Raw: c.text[from:len(c.text):len(c.text)]}, nil
}

func checkJSON(v record.Value) error {
	if f := v.Float(); v.Kind == record.Double && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return errNotJSON
	}
	return nil
}

// list keeps the first values that arrive, with repetitions, in order of arrival.
type list struct{ collection }

func (list) mergeable() bool { return false }

func (l list) add(c *cell, v record.Value, _ *record.Row) error {
	n := l.size(c)
	if n >= l.limit {
		return nil
	}
	if err := checkJSON(v); err != nil {
		return err
	}
	c.scratch = appendValue(c.scratch[:0], v)
	end := len(c.slot())
	c.splice(end, end, c.scratch)
	l.setSize(c, n+1)
	return nil
}

func (l list) merge(c, other *cell) error {
	for rest := other.slot(); len(rest) > 0; {
		var v record.Value
		var err error
		if v, rest, err = takeValue(rest); err != nil {
			return err
		}
		if err := l.add(c, v, nil); err != nil {
			return err
		}
	}
	return nil
}

// set keeps different values in their order: numbers by size, text by bytes. A full set keeps the smallest ones, because
// the first ones would depend on the order of records and could not be merged.
type set struct{ collection }

func (set) mergeable() bool { return true }

func (s set) add(c *cell, v record.Value, _ *record.Row) error {
	if err := checkJSON(v); err != nil {
		return err
	}
	v = canonical(v)
	at, last := 0, 0 // offsets of where v belongs and of the last value
	found := false
	for rest := c.slot(); len(rest) > 0; {
		present, after, err := takeValue(rest)
		if err != nil {
			return err
		}
		last = len(c.slot()) - len(rest)
		if !found {
			switch order := compare(v, present); {
			case order == 0:
				return nil
			case order < 0:
				found = true
			default:
				at = len(c.slot()) - len(after)
			}
		}
		rest = after
	}
	n := s.size(c)
	if n >= s.limit {
		if !found {
			return nil
		}
		c.splice(last, len(c.slot()), nil)
		n--
	}
	c.scratch = appendValue(c.scratch[:0], v)
	c.splice(at, at, c.scratch)
	s.setSize(c, n+1)
	return nil
}

// merge walks both sets at once; they are in the same order.
func (s set) merge(c, other *cell) error {
	a, b := c.slot(), other.slot()
	merged, n := c.scratch[:0], 0
	for ; n < s.limit && len(a)+len(b) > 0; n++ {
		x, afterA, errA := takeOptional(a)
		y, afterB, errB := takeOptional(b)
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		order := 0
		switch {
		case len(a) == 0:
			order = 1
		case len(b) == 0:
			order = -1
		default:
			order = compare(x, y)
		}
		if order <= 0 {
			merged, a = append(merged, a[:len(a)-len(afterA)]...), afterA
		} else {
			merged = append(merged, b[:len(b)-len(afterB)]...)
		}
		if order >= 0 {
			b = afterB
		}
	}
	c.scratch = merged
	c.setSlot(merged)
	s.setSize(c, n)
	return nil
}

func takeOptional(b []byte) (record.Value, []byte, error) {
	if len(b) == 0 {
		return record.Value{}, nil, nil
	}
	return takeValue(b)
}
