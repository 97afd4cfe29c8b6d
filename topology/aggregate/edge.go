package aggregate

import (
	"cmp"
	"encoding/binary"

	"millrace/record"
)

// edge is first (sign -1) or last (sign +1) by event time. Equal times are ordered by offset, then by partition, so that
// a replay and any split into parts give the same answer. Only records of different topics can be equal in all three;
// of them last takes the later to arrive and first the earlier.
//
// Fixed part: has, time, offset, partition; slot: the value.
type edge struct {
	typ  record.Type
	sign int
}

func (edge) layout() (int, bool)   { return 1 + 8 + 8 + 4, true }
func (e edge) result() record.Type { return nullableIfUnset(e.typ) }
func (edge) mergeable() bool       { return true }

func (e edge) add(c *cell, v record.Value, row *record.Row) error {
	if !e.takes(c, row.Time, row.From.Offset, row.From.Partition) {
		return nil
	}
	c.scratch = appendValue(c.scratch[:0], v)
	c.setSlot(c.scratch)
	e.place(c, row.Time, row.From.Offset, row.From.Partition)
	return nil
}

func (e edge) merge(c, other *cell) error {
	if !other.has() {
		return nil
	}
	at, offset, partition := coordinates(other)
	if e.takes(c, at, offset, partition) {
		c.setSlot(other.slot())
		e.place(c, at, offset, partition)
	}
	return nil
}

func (e edge) takes(c *cell, at, offset int64, partition int32) bool {
	if !c.has() {
		return true
	}
	t, o, p := coordinates(c)
	order := cmp.Or(cmp.Compare(at, t), cmp.Compare(offset, o), cmp.Compare(partition, p))
	return order == e.sign || order == 0 && e.sign > 0
}

func (edge) place(c *cell, at, offset int64, partition int32) {
	c.fixed[0] = 1
	c.setNum(1, at)
	c.setNum(9, offset)
	binary.LittleEndian.PutUint32(c.fixed[17:], uint32(partition))
}

func coordinates(c *cell) (at, offset int64, partition int32) {
	return c.num(1), c.num(9), int32(binary.LittleEndian.Uint32(c.fixed[17:]))
}

func (edge) value(c *cell) (record.Value, error) {
	if !c.has() {
		return record.NullValue(), nil
	}
	v, rest, err := takeValue(c.slot())
	if err == nil && len(rest) > 0 {
		err = corrupt("bytes after the value")
	}
	return v, err
}
