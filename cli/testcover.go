package cli

import (
	"fmt"
	"strings"

	"millrace/record"
	"millrace/topology"
)

// coverage is what the tests of a job have reached of it.
type coverage struct {
	Steps, StepsReached   int
	Late, LateReached     int // steps with windows, and those at which a record was late
	Filter, FilterReached int // steps with where or having, and those at which a row was left out
	Missed                []string
}

// cover counts what a job's tests have reached, by the tallies of all of them.
func cover(spec *topology.Spec, tallies []record.Tally) coverage {
	var c coverage
	reach := func(all, reached *int, hit bool, missed string) {
		*all++
		if hit {
			*reached++
		} else {
			c.Missed = append(c.Missed, missed)
		}
	}
	for _, s := range spec.Steps {
		name := s.Name.Value
		reach(&c.Steps, &c.StepsReached, count(tallies, name, record.In) > 0, "step "+name)
		if s.Window != nil {
			reach(&c.Late, &c.LateReached, count(tallies, name, record.Late) > 0, "late of "+name)
		}
		if s.Where.Value != "" || s.Having.Value != "" {
			reach(&c.Filter, &c.FilterReached, count(tallies, name, record.Filtered) > 0, "a row that "+name+" filters")
		}
	}
	return c
}

func (c coverage) plus(other coverage) coverage {
	return coverage{Steps: c.Steps + other.Steps, StepsReached: c.StepsReached + other.StepsReached,
		Late: c.Late + other.Late, LateReached: c.LateReached + other.LateReached,
		Filter: c.Filter + other.Filter, FilterReached: c.FilterReached + other.FilterReached}
}

func (c coverage) String() string {
	text := fmt.Sprintf("steps covered %d/%d", c.StepsReached, c.Steps)
	var branches []string
	if c.Late > 0 {
		branches = append(branches, fmt.Sprintf("late %d/%d", c.LateReached, c.Late))
	}
	if c.Filter > 0 {
		branches = append(branches, fmt.Sprintf("filtered %d/%d", c.FilterReached, c.Filter))
	}
	if len(branches) > 0 {
		text += ", branches " + strings.Join(branches, " ")
	}
	return text
}
