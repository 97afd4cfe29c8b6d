package driver

import (
	"fmt"

	"millrace/topology"
)

// learn compiles the plan, and answers its questions about undeclared keys with the first record that tells, as a replica
// does at its first start.
func learn(o Options) (*topology.Plan, error) {
	plan, err := compile(o, nil)
	if err != nil || len(plan.Unknown) == 0 {
		return plan, err
	}
	keyed := map[string]bool{}
	for _, q := range plan.Unknown {
		if known, answered := keyed[q.Step]; answered && !known {
			continue // one input that is not keyed decides for the step
		}
		keyed[q.Step] = answer(o, q)
	}
	return compile(o, keyed)
}

func compile(o Options, keyed map[string]bool) (*topology.Plan, error) {
	plan, findings := topology.Compile(o.Spec, topology.Options{Formats: o.Formats, Keyed: keyed})
	if plan == nil {
		return nil, fmt.Errorf("the job cannot run: %s: %s", findings[0].Pos, findings[0].Message)
	}
	return plan, nil
}

func answer(o Options, q *topology.KeyQuestion) bool {
	for _, a := range o.Coming {
		if a.Source != q.Source {
			continue
		}
		if matches, err := q.Matches(o.Formats, &a.Record); err == nil {
			return matches
		}
	}
	return false
}
