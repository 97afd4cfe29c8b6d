// Package aggregate folds the records of a group into results: count, sum, min, max, avg, first, last, collect_list,
// collect_set, approx_distinct and fold. The state of all aggregates of a step is one run of bytes that the store keeps
// and the changelog carries; the same records in the same order always give the same bytes.
//
// Nulls: count() counts records and fold sees them all; every other aggregate skips a null or missing argument. With
// nothing left, sum, avg, min, max, first and last are null, as in SQL, a collection is an empty list and a count is 0.
//
// Results do not depend on the order of records, with these exceptions, which the caller may want to report: fold and
// collect_list, which are about order; a sum of longs whose total passes through the end of the range on some orders
// only, which is an error there; and the last digit of a sum or avg of doubles, in rare cases, because they are added
// at twice a double's precision and rounded once.
package aggregate

import (
	"errors"

	"millrace/record"
)

// ErrCorrupt is wrapped by errors about a state that no Set of this shape wrote: the store is damaged, or the step's
// aggregates were changed without its state. The reaction is to rebuild the state.
var ErrCorrupt = errors.New("aggregate state is corrupt: rebuild the store from its changelog")

// ErrNotMergeable is wrapped when two folds that both saw records are to be merged.
var ErrNotMergeable = errors.New("the order of the records decides, so that two parts cannot be merged")

// Item is one aggregate of a step.
type Item struct {
	Name string // of the result field
	Call Call
	// Arg is the type of the argument expression, for fold of its second one. count() has none.
	Arg record.Type
	// Init is a fold's value before the first record.
	Init record.Value
	// Eval is a fold's expression; it finds the present value in Row.Acc. What it returns may alias the row.
	Eval func(r *record.Row) (record.Value, error)
}

// accumulator is one function, compiled for the type of its argument. It keeps nothing: what it knows of a group is in
// the cell. A zeroed cell is the state of no records.
type accumulator interface {
	layout() (width int, slotted bool) // bytes of the fixed part; whether a part of changing length follows
	result() record.Type
	mergeable() bool
	add(c *cell, v record.Value, row *record.Row) error
	merge(c, other *cell) error
	value(c *cell) (record.Value, error)
}

// part is an accumulator with its place in the state.
type part struct {
	accumulator
	name    string
	offset  int // of the fixed part
	width   int
	slotted bool
	typed   bool // the argument must be there and is brought to the type arg
	arg     record.Type
}

// Set is the aggregates of one step, compiled. It is read-only and may be shared; each task works with a Worker of its
// own.
type Set struct {
	parts []part
	fixed int // bytes of all fixed parts; the slots follow
	slots int
}

// NewSet checks the argument types and lays out the state. The state's layout depends on the order of the items, their
// functions and their types, on nothing else. The error is an *Error that points into the item's call.
func NewSet(items []Item) (*Set, error) {
	s := &Set{}
	for i, it := range items {
		for _, before := range items[:i] {
			if before.Name == it.Name {
				return nil, &Error{Item: it.Name, Len: it.Call.Len, Message: "the name is used twice", Hint: "rename one"}
			}
		}
		acc, err := compile(it)
		if err != nil {
			err.Item = it.Name
			return nil, err
		}
		p := part{accumulator: acc, name: it.Name, offset: s.fixed, arg: it.Arg}
		p.width, p.slotted = acc.layout()
		p.typed = len(it.Call.Args) > 0 && it.Call.Name != "fold"
		s.parts = append(s.parts, p)
		s.fixed += p.width
		if p.slotted {
			s.slots++
		}
	}
	return s, nil
}

// Fields returns the result fields, in the order of the items. The slice is the caller's.
func (s *Set) Fields() []record.Field {
	fields := make([]record.Field, len(s.parts))
	for i, p := range s.parts {
		fields[i] = record.Field{Name: p.name, Type: p.result()}
	}
	return fields
}

// Init appends the state of no records.
func (s *Set) Init(dst []byte) []byte {
	for range s.fixed + s.slots*slotHeader {
		dst = append(dst, 0)
	}
	return dst
}

// Mergeable tells whether every aggregate can be computed in parts whose results are merged in any order. collect_list
// and fold cannot.
func (s *Set) Mergeable() bool {
	for _, p := range s.parts {
		if !p.mergeable() {
			return false
		}
	}
	return true
}

// Bind returns a Worker for one goroutine.
func (s *Set) Bind() *Worker { return &Worker{set: s} }
