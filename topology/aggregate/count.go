package aggregate

import "millrace/record"

// count counts records, or with an argument those where it is not null. Fixed part: the number.
type count struct{}

func (count) layout() (int, bool) { return 8, false }
func (count) result() record.Type { return record.Type{Kind: record.Long} }
func (count) mergeable() bool     { return true }

func (count) add(c *cell, _ record.Value, _ *record.Row) error {
	c.setNum(0, c.num(0)+1)
	return nil
}

func (count) merge(c, other *cell) error {
	c.setNum(0, c.num(0)+other.num(0))
	return nil
}

func (count) value(c *cell) (record.Value, error) { return record.LongValue(c.num(0)), nil }
