package results

import "slices"

// Measure takes one figure out of a run; ok is false where the run has none.
type Measure func(Run) (value float64, ok bool)

// Score is the measure that decides for a kind of workload; less is better.
func Score(r Run) (float64, bool) {
	switch {
	case r.Latency != nil:
		return r.Latency.P99, true
	case r.Recovery != nil:
		return r.Recovery.FirstResultSeconds, true
	}
	return r.CPUSteady, r.CPUSteady > 0
}

// Spread is the middle of several runs, and their extremes.
type Spread struct {
	Median, Least, Most float64
	Runs                int
}

// SpreadOf sums up a measure over the runs that have it.
func SpreadOf(runs []Run, m Measure) (Spread, bool) {
	var values []float64
	for _, r := range runs {
		if v, ok := m(r); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return Spread{}, false
	}
	slices.Sort(values)
	n := len(values)
	return Spread{Median: (values[(n-1)/2] + values[n/2]) / 2, Least: values[0], Most: values[n-1], Runs: n}, true
}

// Best returns the cell with the lowest median score among valid runs.
func Best(runs []Run) (cell string, ok bool) {
	byCell := map[string][]Run{}
	var order []string
	for _, r := range runs {
		if r.Void == "" {
			if byCell[r.Cell] == nil {
				order = append(order, r.Cell)
			}
			byCell[r.Cell] = append(byCell[r.Cell], r)
		}
	}
	var least float64
	for _, name := range order {
		if s, has := SpreadOf(byCell[name], Score); has && (!ok || s.Median < least) {
			cell, least, ok = name, s.Median, true
		}
	}
	return cell, ok
}

// Counted returns the runs that figures come from: valid ones, without the search for the best cell.
func (c *Comparison) Counted() []Run {
	return slices.DeleteFunc(slices.Clone(c.Runs), func(r Run) bool { return r.Round == 0 || r.Void != "" })
}

// Of returns the counted runs of one workload by one side.
func (c *Comparison) Of(workload, side string) []Run {
	return slices.DeleteFunc(c.Counted(), func(r Run) bool { return r.Workload != workload || r.Side != side })
}

// Sides returns our side's name and the peer's, in the order in which they first ran for our side.
func (c *Comparison) Sides() (ours, peer string) {
	for _, r := range c.Runs {
		if r.Cell == "" {
			ours = r.Side
		} else {
			peer = r.Side
		}
	}
	return ours, peer
}
