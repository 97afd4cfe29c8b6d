package record

import "math/bits"

// Spread is how values spread over powers of two: bucket i counts those of i bits, that is below 2^i. Adding one costs a
// few instructions, so that every record can be counted, and two spreads add up. Units are the owner's.
type Spread struct {
	Counts [SpreadBuckets]int64
	Sum    float64 // the largest values are times by mistake, and a few of them would run over an integer
}

// SpreadBuckets reach to 2^43: two and a half hours in nanoseconds, centuries in milliseconds. The last one takes all above.
const SpreadBuckets = 44

// Add counts a value; one below zero counts as zero.
func (s *Spread) Add(v int64) {
	v = max(v, 0)
	s.Counts[min(bits.Len64(uint64(v)), SpreadBuckets-1)]++
	s.Sum += float64(v)
}

// Merge adds another spread's counts.
func (s *Spread) Merge(o *Spread) {
	for i, n := range o.Counts {
		s.Counts[i] += n
	}
	s.Sum += o.Sum
}

// Count is the number of values.
func (s *Spread) Count() int64 {
	n := int64(0)
	for _, c := range s.Counts {
		n += c
	}
	return n
}

// Take returns a copy of what was counted and starts from zero; nil if that is nothing, or s is.
func (s *Spread) Take() *Spread {
	if s == nil || s.Count() == 0 {
		return nil
	}
	taken := *s
	*s = Spread{}
	return &taken
}
