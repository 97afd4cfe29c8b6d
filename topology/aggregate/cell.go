package aggregate

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// slotHeader is the length before a slot's bytes.
const slotHeader = 4

// A state is the fixed parts of all aggregates, then one slot for each that has one:
//
//	count | sum has+coefficient+scale | max has+key | ... | len sum's digits | len first's value | ...
//
// Numbers are little-endian. So counts and sums change in place, at offsets known beforehand, and only a slot that
// changes its length moves the bytes behind it.

// cell is the part of a state that one accumulator works on; it is led through the parts in their order.
type cell struct {
	state []byte
	fixed []byte // the part's; invalid after splice
	part  *part
	from  int // the slot's bytes are state[from:to]
	to    int

	scratch []byte // for building a slot's new bytes
	text    []byte // result values; grows during one Result
}

func (c *cell) begin(s *Set, state []byte) error {
	if len(state) < s.fixed {
		return fmt.Errorf("%d bytes where at least %d are due: %w", len(state), s.fixed, ErrCorrupt)
	}
	c.state, c.from, c.to, c.text = state, s.fixed, s.fixed, c.text[:0]
	return nil
}

// enter moves the cell to the next part. Parts without a slot leave from and to alone, so that to is always where the
// next slot begins.
func (c *cell) enter(p *part) error {
	c.part = p
	c.fixed = c.state[p.offset : p.offset+p.width]
	if !p.slotted {
		return nil
	}
	if len(c.state)-c.to < slotHeader {
		return fmt.Errorf("aggregate %s: no slot at byte %d: %w", p.name, c.to, ErrCorrupt)
	}
	n := int(binary.LittleEndian.Uint32(c.state[c.to:]))
	c.from = c.to + slotHeader
	if n > len(c.state)-c.from {
		return fmt.Errorf("aggregate %s: slot of %d bytes at byte %d of %d: %w", p.name, n, c.from, len(c.state), ErrCorrupt)
	}
	c.to = c.from + n
	return nil
}

// end returns the state after the last part.
func (c *cell) end() ([]byte, error) {
	state := c.state
	c.state, c.fixed, c.part = nil, nil, nil
	if c.to != len(state) {
		return state, fmt.Errorf("%d bytes where %d are due: %w", len(state), c.to, ErrCorrupt)
	}
	return state, nil
}

// slot returns the slot's bytes; they are valid until splice.
func (c *cell) slot() []byte { return c.state[c.from:c.to] }

// splice replaces slot()[i:j] by b.
func (c *cell) splice(i, j int, b []byte) {
	if len(b) == j-i {
		copy(c.state[c.from+i:], b)
		return
	}
	c.state = slices.Replace(c.state, c.from+i, c.from+j, b...)
	c.to += len(b) - (j - i)
	binary.LittleEndian.PutUint32(c.state[c.from-slotHeader:], uint32(c.to-c.from))
	c.fixed = c.state[c.part.offset : c.part.offset+c.part.width]
}

// setSlot replaces all of the slot.
func (c *cell) setSlot(b []byte) { c.splice(0, c.to-c.from, b) }

// corrupt reports that a state cannot be what this code wrote.
func corrupt(what string) error { return fmt.Errorf("%s: %w", what, ErrCorrupt) }

// has reads the flag that starts most fixed parts: whether a value was seen.
func (c *cell) has() bool { return c.fixed[0] != 0 }

func (c *cell) num(at int) int64 { return int64(binary.LittleEndian.Uint64(c.fixed[at:])) }

func (c *cell) setNum(at int, n int64) { binary.LittleEndian.PutUint64(c.fixed[at:], uint64(n)) }
