package record

import (
	"math"
	"testing"
)

func TestSpread(t *testing.T) {
	var s Spread
	for _, v := range []int64{-5, 0, 1, 2, 3, 4, 7, 8, math.MaxInt64} {
		s.Add(v)
	}
	want := map[int]int64{0: 2, 1: 1, 2: 2, 3: 2, 4: 1, SpreadBuckets - 1: 1}
	for i, n := range s.Counts {
		if n != want[i] {
			t.Errorf("bucket %d holds %d values, want %d", i, n, want[i])
		}
	}
	s = Spread{}
	s.Add(6)
	s.Add(100)
	taken := s.Take()
	if taken.Count() != 2 || taken.Sum != 106 || s.Count() != 0 || s.Sum != 0 || s.Take() != nil {
		t.Errorf("took %+v, left %+v", taken, s)
	}
	s.Add(1)
	s.Merge(taken)
	for range 5000 {
		s.Add(1 << 53) // what a timestamp may be by mistake
	}
	if s.Sum < 5000*(1<<53) {
		t.Errorf("the sum ran over: %v", s.Sum)
	}
	s.Counts[SpreadBuckets-1], s.Sum = 0, 107
	if s.Count() != 3 || s.Sum != 107 || s.Counts[3] != 1 || s.Counts[7] != 1 {
		t.Errorf("merged %+v", s)
	}
}
