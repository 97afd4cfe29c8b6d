// Package results is what a comparison has measured, as it is kept in a file.
package results

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Comparison is one use of the benchmark: everything that the report is made of.
type Comparison struct {
	Begun     time.Time
	Machine   Machine
	Seed      uint64
	Rounds    int
	Pinned    bool
	Command   string // repeats it
	Workloads []Workload
	Runs      []Run
}

// Machine is where it was measured.
type Machine struct {
	CPU      string
	Cores    int
	Memory   int64 // bytes
	Kernel   string
	Go, Java string
	Millrace string // version and revision
}

// Workload is what the report needs to know about one.
type Workload struct {
	ID, Title, Kind string
	Records         uint64
	Users           uint64
	Partitions      int
	CommitMS        int64
	Guarantee       string
}

// Run is one process, or for recoveries one killed process and its successor, on one workload.
type Run struct {
	Workload string
	Side     string
	Cell     string
	Round    int    // 0: the search for the peer's best cell
	Void     string // why the run does not count; empty: every result was exact
	Args     []string
	Env      []string

	Records        uint64
	WallSeconds    float64
	FirstSeconds   float64 // from exec to the first commit
	CPUWhole       float64 // microseconds a record, from exec
	CPUSteady      float64 // microseconds a record, from a quarter of the input to its end
	RateSteady     float64 // records a second in the same time
	PeakRSS        int64   // bytes
	BrokerCPU      float64 // microseconds a record, steady
	ChangelogBytes int64
	ChangelogSize  int64 // positions
	OutputRows     uint64

	Latency  *Latency  `json:",omitempty"`
	Recovery *Recovery `json:",omitempty"`

	// Neighbours is what other processes took, in cores; Steal what the hypervisor took. Both while it was measured.
	Neighbours, Steal float64
}

// Latency is from the time at which a record was due to the time at which its result was read, in milliseconds.
type Latency struct {
	P50, P99, P999, Max float64
	Rate                uint64 // records a second
}

// Recovery is what followed a kill -9, from the exec of the successor.
type Recovery struct {
	DoneAtKill         uint64  // records that were committed
	ChangelogSize      int64   // positions in the changelog at that time
	FirstResultSeconds float64 // to the first result that a reader of committed records sees
	FirstResultCPU     float64 // CPU seconds until then
	CaughtUpSeconds    float64
}

// Save writes a comparison; a file is never left half written.
func (c *Comparison) Save(path string) error {
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return os.Rename(path+".new", path)
}

// Load reads what Save wrote.
func Load(path string) (*Comparison, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	var c Comparison
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("results %s: %w", path, err)
	}
	return &c, nil
}
