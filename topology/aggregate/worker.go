package aggregate

import (
	"fmt"

	"millrace/record"
)

// Worker applies a Set to states. It owns scratch memory, so one goroutine uses it; the states are the caller's.
//
// A method that fails may leave its state half changed: the caller drops that copy and goes on from the one before.
type Worker struct {
	set   *Set
	cell  cell
	other cell
}

// Add adds a record to a state, in place, and returns it; it grows as append does. args holds the evaluated argument of
// each item, Missing for count() and fold. Of row it uses Time and From, to order records, and Acc, for folds.
func (w *Worker) Add(state []byte, args []record.Value, row *record.Row) ([]byte, error) {
	c := &w.cell
	if err := c.begin(w.set, state); err != nil {
		return state, err
	}
	for i := range w.set.parts {
		p := &w.set.parts[i]
		if err := c.enter(p); err != nil {
			return state, err
		}
		v := args[i]
		if p.typed {
			if v.IsNull() {
				continue
			}
			var err error
			if v, err = coerce(v, p.arg); err != nil {
				return state, fmt.Errorf("aggregate %s: %w", p.name, err)
			}
		}
		if err := p.add(c, v, row); err != nil {
			return state, fmt.Errorf("aggregate %s: %w", p.name, err)
		}
	}
	return c.end()
}

// Merge adds what other has seen to state, in place, and returns it. other is only read. Where order matters, other
// counts as later than state: collect_list appends its values; two folds that both saw records cannot be merged.
func (w *Worker) Merge(state, other []byte) ([]byte, error) {
	c, o := &w.cell, &w.other
	if err := c.begin(w.set, state); err != nil {
		return state, err
	}
	if err := o.begin(w.set, other); err != nil {
		return state, err
	}
	for i := range w.set.parts {
		p := &w.set.parts[i]
		if err := c.enter(p); err != nil {
			return state, err
		}
		if err := o.enter(p); err != nil {
			return state, err
		}
		if err := p.merge(c, o); err != nil {
			return state, fmt.Errorf("aggregate %s: %w", p.name, err)
		}
	}
	if _, err := o.end(); err != nil {
		return state, err
	}
	return c.end()
}

// Result fills out with one value a field. The values alias the state and memory that the Worker uses again at its next
// call.
func (w *Worker) Result(state []byte, out []record.Value) error {
	c := &w.cell
	if err := c.begin(w.set, state); err != nil {
		return err
	}
	for i := range w.set.parts {
		p := &w.set.parts[i]
		if err := c.enter(p); err != nil {
			return err
		}
		v, err := p.value(c)
		if err != nil {
			return fmt.Errorf("aggregate %s: %w", p.name, err)
		}
		out[i] = v
	}
	_, err := c.end()
	return err
}
