package report

import (
	_ "embed"
	"fmt"

	"millrace/bench/results"
)

// goal is a bar that Millrace has set itself before it was measured: against Kafka Streams' best cell where it is a ratio.
type goal struct {
	name        string
	must, reach float64
	unit        string // of both and of what was measured
	atMost      bool   // less is better
	value       func(p *page) (float64, bool)
}

// shortfalls says why goals are missed. It is written by hand, and part of the page.
//
//go:embed shortfalls.md
var shortfalls string

var (
	cpu    = results.Score
	memory = positive(func(r results.Run) float64 { return float64(r.PeakRSS) })
)

func goals() []goal {
	list := []goal{
		against("W0", "W0 passthrough", 5, 12, cpu), against("W1", "W1 filter and map", 5, 8, cpu), against("W2", "W2 count, 10 k users", 8, 14, cpu),
		against("W3", "W3 count, 1 M users", 10, 20, cpu), against("W5", "W5 hopping windows", 8, 20, cpu),
		{"W4 500 k records/s, cores of the processor", 1, 0.5, "", true, func(p *page) (float64, bool) { v, ok := p.own("W4", cpu); return v / 2, ok }},
		{"W4 memory, GB", 2.5, 2.5, "", true, func(p *page) (float64, bool) { v, ok := p.own("W4", memory); return v / 1e9, ok }},
		against("W2", "W2 memory", 6, 12, memory), against("W3", "W3 memory", 6, 12, memory),
	}
	for _, w := range []string{"W0", "W2", "W3"} {
		list = append(list, goal{w + " exactly once / at least once", 1.08, 1.03, "x", true, func(p *page) (float64, bool) { return p.over(w, w+"a", cpu) }})
	}
	return append(list,
		goal{"10 M users / 1 M users, CPU per record", 1.5, 1.25, "x", true, func(p *page) (float64, bool) { return p.over("W4", "W3", cpu) }},
		goal{"rows ten times the memory / all in memory, CPU per record", 6, 3, "x", true, func(p *page) (float64, bool) { return p.over("M10", "M1", cpu) }},
		goal{"64 partitions / 1, CPU per record", 1.2, 1.05, "x", true, func(p *page) (float64, bool) { return p.over("S64", "S1", cpu) }},
		goal{"adaptive commits, 10 k/s, p50 ms", 60, 10, "", true, func(p *page) (float64, bool) {
			return p.own("L1a", delayed(func(l results.Latency) float64 { return l.P50 }))
		}},
		goal{"adaptive commits, 10 k/s, p99 ms", 60, 25, "", true, func(p *page) (float64, bool) {
			return p.own("L1a", delayed(func(l results.Latency) float64 { return l.P99 }))
		}},
		against("R2", "restore from the changelog, CPU", 4, 6, recovered(func(r results.Recovery) float64 { return r.FirstResultCPU })),
		restarted("R1", "1 M users"), restarted("R1x", "10 M users"))
}

// restarted is how long our side takes to its first result after kill -9 with its disk kept.
func restarted(workload, users string) goal {
	return goal{"kill -9, disk intact, " + users + ": seconds to the first result", 2, 0.5, "", true, func(p *page) (float64, bool) {
		return p.own(workload, recovered(func(r results.Recovery) float64 { return r.FirstResultSeconds }))
	}}
}

// against is a ratio of the peer's figure to ours.
func against(workload, name string, must, reach float64, m results.Measure) goal {
	return goal{name, must, reach, "x", false, func(p *page) (float64, bool) {
		a, okA := p.own(workload, m)
		b, okB := results.SpreadOf(p.Of(workload, p.peer), m)
		return b.Median / a, okA && okB && a > 0
	}}
}

// own is our median; over the ratio of two of them.
func (p *page) own(workload string, m results.Measure) (float64, bool) {
	s, ok := results.SpreadOf(p.Of(workload, p.ours), m)
	return s.Median, ok
}

func (p *page) over(a, b string, m results.Measure) (float64, bool) {
	x, okX := p.own(a, m)
	y, okY := p.own(b, m)
	return x / y, okX && okY && y > 0
}

func (p *page) goals() {
	p.line("## Goals\n\nSet before anything was measured. *must* is the bar, *reach* what the physics of the machine would allow.\n")
	p.line("| | must | reach | measured | |\n|---|---|---|---|---|")
	for _, g := range goals() {
		sign := "≥"
		if g.atMost {
			sign = "≤"
		}
		v, ok := g.value(p)
		measured, verdict := "not measured", ""
		if ok {
			measured, verdict = fmt.Sprintf("%.3g%s", v, g.unit), g.verdict(v)
		}
		p.line("| %s | %s %g%s | %s %g%s | %s | %s |", g.name, sign, g.must, g.unit, sign, g.reach, g.unit, measured, verdict)
	}
	p.line("\n%s", shortfalls)
}

func (g goal) verdict(v float64) string {
	met := func(bar float64) bool { return g.atMost && v <= bar || !g.atMost && v >= bar }
	switch {
	case met(g.reach):
		return "reached"
	case met(g.must):
		return "met"
	}
	return "**missed**"
}
