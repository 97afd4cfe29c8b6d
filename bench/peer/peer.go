// Package peer knows how the two sides of the comparison are started.
package peer

import (
	"path/filepath"
	"strconv"
	"time"

	"millrace/bench/workload"
)

// Assignment is what one run works on.
type Assignment struct {
	Workload workload.Workload
	App      string // application id, and group id
	In, Out  string // topics
	Brokers  string
	Dir      string // of the local state
	Instance string // static member id; empty: a dynamic member
}

// Invocation is a command line, without what pins it to cores.
type Invocation struct {
	Args []string
	Env  []string // NAME=value
}

// Side is one of the programs that are compared.
type Side interface {
	// Name is that of the report.
	Name() string
	// Cell names the side's own settings; empty when it has one setting for everything.
	Cell() string
	Invocation(a Assignment) Invocation
}

// Millrace is our side. It has the same settings for all cells of a workload.
type Millrace struct {
	Binary string
	Jobs   string // folder of the YAML files
}

// Name implements Side.
func (Millrace) Name() string { return "millrace" }

// Cell implements Side.
func (Millrace) Cell() string { return "" }

// Invocation implements Side.
func (m Millrace) Invocation(a Assignment) Invocation {
	return Invocation{
		Args: []string{m.Binary, "run", "-c", filepath.Join(m.Jobs, a.Workload.YAML)},
		Env: []string{"BENCH_APP=" + a.App, "BENCH_BROKERS=" + a.Brokers, "BENCH_IN=" + a.In, "BENCH_OUT=" + a.Out, "BENCH_DIR=" + a.Dir,
			"BENCH_INSTANCE=" + a.Instance, "BENCH_SESSION=" + a.Workload.Session.String(), "BENCH_GUARANTEE=" + a.Workload.Guarantee(),
			"BENCH_COMMIT=" + a.Workload.Commit.String(), "BENCH_LINGER=" + a.Workload.Linger.String(), "BENCH_MEMORY=" + a.Workload.Memory},
	}
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
