package aggregate

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/axiomhq/hyperloglog"
	"github.com/cespare/xxhash/v2"

	"millrace/record"
)

// distinct estimates how many different values there were (HyperLogLog). Fixed part: dense or not; slot: while there
// are few, their 64-bit hashes, sorted, which makes the count exact; then 2^precision registers of a byte.
//
// The form is ours because the library's encoding depends on the order of insertion, and the same set of values has to
// be the same bytes here. It changes from sparse to dense when the hashes would take more room than the registers, so
// that it, too, depends on the set alone. The estimate from the registers is the library's.
type distinct struct{ precision int }

const hashBytes = 8

func (distinct) layout() (int, bool) { return 1, true }
func (distinct) result() record.Type { return record.Type{Kind: record.Long} }
func (distinct) mergeable() bool     { return true }

func (d distinct) registers() int { return 1 << d.precision }

// check returns whether the cell is dense.
func (d distinct) check(c *cell) (dense bool, err error) {
	n := len(c.slot())
	switch {
	case c.fixed[0] == 0 && n%hashBytes == 0 && n <= d.registers():
		return false, nil
	case c.fixed[0] == 1 && n == d.registers():
		return true, nil
	}
	return false, corrupt("size of a distinct count")
}

func (d distinct) add(c *cell, v record.Value, _ *record.Row) error {
	dense, err := d.check(c)
	if err != nil {
		return err
	}
	c.scratch = appendValue(c.scratch[:0], canonical(v))
	hash := xxhash.Sum64(c.scratch)
	if dense {
		d.register(c.slot(), hash)
		return nil
	}
	d.insert(c, hash)
	return nil
}

// insert adds a hash to a sparse cell, which may thereby become dense.
func (d distinct) insert(c *cell, hash uint64) {
	slot := c.slot()
	low, high := 0, len(slot)/hashBytes
	for low < high {
		middle := (low + high) / 2
		if hashAt(slot, middle) < hash {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low*hashBytes < len(slot) && hashAt(slot, low) == hash {
		return
	}
	if len(slot)+hashBytes > d.registers() {
		d.densify(c)
		d.register(c.slot(), hash)
		return
	}
	c.scratch = binary.LittleEndian.AppendUint64(c.scratch[:0], hash)
	c.splice(low*hashBytes, low*hashBytes, c.scratch)
}

func hashAt(slot []byte, i int) uint64 { return binary.LittleEndian.Uint64(slot[i*hashBytes:]) }

func (d distinct) densify(c *cell) {
	registers := c.scratch[:0]
	for range d.registers() {
		registers = append(registers, 0)
	}
	c.scratch = registers
	for i := range len(c.slot()) / hashBytes {
		d.register(registers, hashAt(c.slot(), i))
	}
	c.setSlot(registers)
	c.fixed[0] = 1
}

// register enters a hash: its first bits choose the register, which keeps the longest run of zeros after them.
func (d distinct) register(registers []byte, hash uint64) {
	i := hash >> (64 - d.precision)
	run := byte(bits.LeadingZeros64(hash<<d.precision|1<<(d.precision-1))) + 1
	registers[i] = max(registers[i], run)
}

func (d distinct) merge(c, other *cell) error {
	dense, err := d.check(c)
	if err != nil {
		return err
	}
	otherDense, err := d.check(other)
	if err != nil {
		return err
	}
	if otherDense {
		if !dense {
			d.densify(c)
		}
		for i, run := range other.slot() {
			c.slot()[i] = max(c.slot()[i], run)
		}
		return nil
	}
	for i := range len(other.slot()) / hashBytes {
		if hash := hashAt(other.slot(), i); c.fixed[0] == 1 {
			d.register(c.slot(), hash)
		} else {
			d.insert(c, hash)
		}
	}
	return nil
}

func (d distinct) value(c *cell) (record.Value, error) {
	dense, err := d.check(c)
	if err != nil {
		return record.Value{}, err
	}
	if !dense {
		return record.LongValue(int64(len(c.slot()) / hashBytes)), nil
	}
	// The library's format for dense sketches: version, precision, nothing, dense, the number of registers, registers.
	c.scratch = append(c.scratch[:0], 2, byte(d.precision), 0, 0)
	c.scratch = binary.BigEndian.AppendUint32(c.scratch, uint32(d.registers()))
	c.scratch = append(c.scratch, c.slot()...)
	var sketch hyperloglog.Sketch
	if err := sketch.UnmarshalBinary(c.scratch); err != nil {
		return record.Value{}, fmt.Errorf("registers of a distinct count: %w", corrupt(err.Error()))
	}
	return record.LongValue(int64(sketch.Estimate())), nil
}
