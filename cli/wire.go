package cli

import (
	"millrace/formats"
	"millrace/topology"
)

// checkTopology finds what is wrong with the meaning of a topology whose form is right.
func checkTopology(spec topology.Spec) []topology.Finding {
	_, findings := topology.Compile(&spec, topology.Options{Formats: formats.ByName{}})
	return findings
}
