package cli

import (
	"errors"

	"millrace/config"
	"millrace/formats"
	"millrace/topology"
)

// checkTopology finds what is wrong with the meaning of a topology whose form is right.
func checkTopology(spec topology.Spec) []topology.Finding {
	_, findings := compile(&spec, nil)
	return findings
}

// compile makes the plan; nil with findings that are errors. keyed is what was learnt of undeclared keys.
func compile(spec *topology.Spec, keyed map[string]bool) (*topology.Plan, []topology.Finding) {
	return topology.Compile(spec, topology.Options{Formats: formats.ByName{}, Keyed: keyed})
}

// planOf is the plan of a job that was checked.
func planOf(job *config.Config) (*topology.Plan, error) {
	plan, _ := compile(&job.Spec, nil)
	if plan == nil {
		return nil, errors.New("the job was found good and cannot be planned: please report it with the configuration")
	}
	return plan, nil
}
