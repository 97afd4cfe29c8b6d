package aggregate

import (
	"fmt"

	"millrace/record"
)

// maxFold bounds what a fold may grow to, so that an expression that appends for ever is found while it can still be
// written: larger rows do not fit a Kafka record.
const maxFold = 1 << 20

// fold computes the user's expression over the value so far, for every record, nulls included. Slot: that value; empty
// before the first record.
type fold struct {
	typ  record.Type
	init record.Value
	eval func(r *record.Row) (record.Value, error)
}

func (fold) layout() (int, bool)   { return 0, true }
func (f fold) result() record.Type { return f.typ }
func (fold) mergeable() bool       { return false }

func (f fold) add(c *cell, _ record.Value, row *record.Row) error {
	acc, err := f.value(c)
	if err != nil {
		return err
	}
	outer := row.Acc
	row.Acc = acc
	v, err := f.eval(row)
	row.Acc = outer
	if err == nil {
		v, err = coerce(v, f.typ)
	}
	if err != nil {
		return err
	}
	if v.Kind == record.Missing {
		v = record.NullValue()
	}
	// The value may alias the slot it is about to replace.
	c.scratch = appendValue(c.scratch[:0], v)
	if len(c.scratch) > maxFold {
		return fmt.Errorf("the fold's value has %d bytes, at most %d are kept: fold to something of fixed size",
			len(c.scratch), maxFold)
	}
	c.setSlot(c.scratch)
	return nil
}

func (fold) merge(c, other *cell) error {
	switch {
	case len(other.slot()) == 0:
		return nil
	case len(c.slot()) == 0:
		c.setSlot(other.slot())
		return nil
	}
	return ErrNotMergeable
}

func (f fold) value(c *cell) (record.Value, error) {
	if len(c.slot()) == 0 {
		return f.init, nil
	}
	v, rest, err := takeValue(c.slot())
	if err == nil && len(rest) > 0 {
		err = corrupt("bytes after the value")
	}
	return v, err
}
