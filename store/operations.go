package store

import (
	"time"

	"millrace/record"
)

// sampleEvery is how many operations of a kind there are for one that is timed: two looks at the clock cost as much as
// the operation.
const sampleEvery = 128

// operations times a sample of what is done to a store.
type operations struct {
	left  [record.StoreOperations]int // until the next one that is timed
	taken [record.StoreOperations]record.Spread
}

func (o *operations) due(kind int) bool {
	o.left[kind]--
	if o.left[kind] > 0 {
		return false
	}
	o.left[kind] = sampleEvery
	return true
}

func (o *operations) since(kind int, begun time.Time) {
	o.taken[kind].Add(time.Since(begun).Nanoseconds())
}

// Operations returns how long sampled operations took, ns, since the last call; nil for a kind that had none.
func (s *Store) Operations() (all [record.StoreOperations]*record.Spread) {
	for kind := range all {
		all[kind] = s.operations.taken[kind].Take()
	}
	return all
}
