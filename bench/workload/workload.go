// Package workload lists what is measured.
package workload

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"millrace/bench/clicks"
)

// Kind is how a workload is measured.
type Kind string

// The kinds.
const (
	Backlog  Kind = "backlog"  // CPU and rate while a preloaded topic is worked off
	Recovery Kind = "recovery" // kill -9, and the time to the next result
	Latency  Kind = "latency"  // a fixed rate, and the time from due to committed and read
)

// Job is one computation, written once as YAML and once for Kafka Streams.
type Job string

// The jobs, by their name at Kafka Streams.
const (
	Passthrough Job = "passthrough"
	Filter      Job = "filter"
	Count       Job = "count"
	Hopping     Job = "hopping"
)

// Windows of the jobs that count; ok is false for the others.
func (j Job) Windows() (w clicks.Windows, ok bool) {
	switch j {
	case Count:
		return clicks.Windows{Size: 60_000, Advance: 60_000, Grace: 30_000}, true
	case Hopping:
		return clicks.Windows{Size: 60_000, Advance: 10_000, Grace: 30_000}, true
	}
	return clicks.Windows{}, false
}

// Workload is one line of the comparison.
type Workload struct {
	ID      string
	Title   string
	Kind    Kind
	Job     Job
	YAML    string // file in bench/jobs
	Records uint64 // preloaded; for Latency those of the measured time follow from the rate
	Stream  clicks.Stream
	Commit  time.Duration
	Linger  time.Duration // of our side: an epoch may end early, this long after the one before; 0: never
	// Session is the session timeout of both sides. Its length decides how long a killed member is waited for.
	Session     time.Duration
	AtLeastOnce bool
	LoseDisk    bool     // Recovery: the state's folder is removed before the restart
	Memory      string   // of our side's rows; empty: its default
	Cells       []string // what Kafka Streams is tried with; the best counts
	More        []string // further cells, for -grid full
	Default     bool     // part of a run that names no workloads
}

// Guarantee is how millrace spells it.
func (w Workload) Guarantee() string {
	if w.AtLeastOnce {
		return "at_least_once"
	}
	return "exactly_once"
}

// All returns the workloads for a seed, in the order of the report.
func All(seed uint64) []Workload {
	list := append(stateless(), stateful()...)
	list = append(list, others()...)
	for i := range list {
		w := &list[i]
		w.Stream.Seed = seed
		setDefaults(w)
	}
	return list
}

func setDefaults(w *Workload) {
	if w.YAML == "" {
		w.YAML = string(w.Job) + ".yaml"
	}
	if w.Stream.Users == 0 {
		w.Stream.Users = 10_000
	}
	if w.Stream.Partitions == 0 {
		w.Stream.Partitions = 4
	}
	if w.Stream.Rate == 0 {
		w.Stream.Rate = 20_000
	}
	if w.Stream.Variant == "" {
		w.Stream.Variant = clicks.Fixed
	}
	if w.Memory == "" {
		w.Memory = "256MiB"
	}
	if w.Commit == 0 {
		w.Commit = 100 * time.Millisecond
	}
	if w.Session == 0 {
		w.Session = 45 * time.Second
	}
}

func stateless() []Workload {
	cells := []string{"default", "batches"}
	more := []string{"batches+g1", "batches+threads2", "batches+streamsgroup"}
	return []Workload{
		{ID: "W0", Title: "passthrough", Kind: Backlog, Job: Passthrough, Records: 6_000_000, Cells: cells, More: more, Default: true},
		{ID: "W0a", Title: "W0 at least once", Kind: Backlog, Job: Passthrough, Records: 6_000_000, AtLeastOnce: true, Cells: cells, More: more},
		{ID: "W1", Title: "filter (1 of 6) and map, JSON to JSON", Kind: Backlog, Job: Filter, Records: 6_000_000, Cells: []string{"default", "batches", "batches+jackson"}, More: more, Default: true},
		{ID: "W1b", Title: "W1 with the order of fields changing", Kind: Backlog, Job: Filter, Records: 6_000_000, Stream: clicks.Stream{Variant: clicks.Shuffled},
			Cells: []string{"batches", "batches+jackson"}},
		// The scanner of the peer is no JSON parser and would take the wrong "type" here.
		{ID: "W1c", Title: "W1 with 320 B, escapes and nesting", Kind: Backlog, Job: Filter, Records: 3_000_000, Stream: clicks.Stream{Variant: clicks.Nested},
			Cells: []string{"batches+jackson"}},
	}
}

func stateful() []Workload {
	small := []string{"batches+cache64", "batches+cache64+memory"}
	large := []string{"batches+cache64", "batches+cache64+transactional"}
	more := []string{"default", "batches+cache64+g1", "batches+cache64+jackson", "batches+cache64+threads2", "batches+cache64+streamsgroup", "batches+cache512", "batches+cache512+memory"}
	million := clicks.Stream{Users: 1_000_000}
	return []Workload{
		{ID: "W2", Title: "count per user and minute, 10 k users", Kind: Backlog, Job: Count, Records: 4_000_000, Cells: small, More: more, Default: true},
		{ID: "W2a", Title: "W2 at least once", Kind: Backlog, Job: Count, Records: 4_000_000, AtLeastOnce: true, Cells: small, More: more},
		{ID: "W2s", Title: "W2 with commits of 1 s", Kind: Backlog, Job: Count, Records: 4_000_000, Commit: time.Second, Cells: small, More: more},
		{ID: "W3", Title: "count per user and minute, 1 M users", Kind: Backlog, Job: Count, Records: 2_000_000, Stream: million, Cells: large, More: more, Default: true},
		{ID: "W3a", Title: "W3 at least once", Kind: Backlog, Job: Count, Records: 2_000_000, Stream: million, AtLeastOnce: true, Cells: large, More: more},
		{ID: "W4", Title: "headline: 10 M users at 500 k/s of event time, checkpoints of 10 s", Kind: Backlog, Job: Count, Records: 30_000_000,
			Stream: clicks.Stream{Users: 10_000_000, Rate: 500_000}, Memory: "2GiB",
			Cells: []string{"batches+cache512+heap4g"}, More: []string{"batches+cache512+heap4g+transactional", "batches+cache512+heap4g+memory"}},
		{ID: "W5", Title: "count and sum in windows of 60 s every 10 s, 1 M users", Kind: Backlog, Job: Hopping, Records: 250_000, Stream: million, Cells: []string{"batches+cache64", "batches+cache512"}, More: more, Default: true},
	}
}

func others() []Workload {
	million := clicks.Stream{Users: 1_000_000}
	wide := clicks.Stream{Users: 2_000_000, Rate: 40_000}
	restart := []string{"batches+cache64", "batches+cache64+transactional"}
	paced := []string{"default", "linger0"} // with commits of 100 ms lingering makes no difference
	list := []Workload{
		{ID: "M1", Title: "count per user and minute, 2 M users, all in memory", Kind: Backlog, Job: Count, Records: 6_000_000, Stream: wide, Cells: restart[:1]},
		{ID: "M10", Title: "M1 with a tenth of the memory", Kind: Backlog, Job: Count, Records: 6_000_000, Stream: wide, Memory: "16MiB", Cells: restart[:1]},
		{ID: "R1", Title: "kill -9, disk kept, 1 M users", Kind: Recovery, Job: Count, Records: 1_000_000, Stream: million, Session: 10 * time.Second, Cells: restart, Default: true},
		{ID: "R1x", Title: "kill -9, disk kept, 10 M users", Kind: Recovery, Job: Count, Records: 20_000_000, Stream: clicks.Stream{Users: 10_000_000, Rate: 500_000}, Memory: "2GiB",
			Session: 10 * time.Second, Cells: []string{"batches+cache512+heap4g+transactional"}},
		{ID: "R2", Title: "kill -9, disk lost, 1 M users", Kind: Recovery, Job: Count, Records: 1_000_000, Stream: million, Session: 10 * time.Second, LoseDisk: true, Cells: restart[:1],
			More: restart[1:], Default: true},
		{ID: "L1", Title: "passthrough, commits of 100 ms", Kind: Latency, Job: Passthrough, Cells: paced[:1], More: paced[1:], Default: true},
		{ID: "L1f", Title: "passthrough, commits of 10 ms", Kind: Latency, Job: Passthrough, Commit: 10 * time.Millisecond, Cells: paced},
		{ID: "L1a", Title: "passthrough, commits of 10 ms, ours as soon as all is done", Kind: Latency, Job: Passthrough, Commit: 10 * time.Millisecond, Linger: 5 * time.Millisecond, Cells: paced},
	}
	for _, partitions := range []int{1, 4, 16, 64} {
		list = append(list, Workload{ID: fmt.Sprintf("S%d", partitions), Title: fmt.Sprintf("count per user and minute, 10 k users, %d partitions", partitions), Kind: Backlog, Job: Count,
			Records: 4_000_000, Stream: clicks.Stream{Partitions: partitions}, Cells: []string{"batches+cache64"}})
	}
	return list
}

// Select returns the workloads with the given IDs, or the default ones when there are none.
func Select(all []Workload, ids []string) ([]Workload, error) {
	var chosen []Workload
	for _, w := range all {
		if len(ids) == 0 && w.Default || slices.Contains(ids, w.ID) || slices.Contains(ids, "all") {
			chosen = append(chosen, w)
		}
	}
	for _, id := range ids {
		if id != "all" && !slices.ContainsFunc(all, func(w Workload) bool { return w.ID == id }) {
			var known []string
			for _, w := range all {
				known = append(known, w.ID)
			}
			return nil, fmt.Errorf("unknown workload %q; there are all, %s", id, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
