package report

import (
	"fmt"
	"slices"
	"strings"

	"millrace/bench/peer"
	"millrace/bench/results"
)

// Page is the report in Markdown; picture is the file name of its picture.
func Page(c *results.Comparison, picture string) string {
	p := &page{Comparison: c}
	p.ours, p.peer = c.Sides()
	p.line("# Performance\n")
	p.line("Written by `go run ./bench report` from the figures of `go run ./bench run`; do not edit. [How it is measured](../bench/README.md).\n")
	p.setup()
	p.cpu(picture)
	p.goals()
	p.costs()
	p.recoveries()
	p.latencies()
	p.guarantees()
	p.grid()
	p.voids()
	p.line("## Repeat\n\n```\n%s\ngo run ./bench report\n```", c.Command)
	return p.String()
}

type page struct {
	strings.Builder
	*results.Comparison
	ours, peer string
}

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, format+"\n", args...)
}

func (p *page) setup() {
	m := p.Machine
	p.line("| | |\n|---|---|")
	p.line("| when | %s, seed %d, %d rounds |", p.Begun.Format("2006-01-02 15:04 MST"), p.Seed, p.Rounds)
	p.line("| machine | %s, %d cores, %d GiB, %s |", m.CPU, m.Cores, (m.Memory+1<<29)>>30, m.Kernel)
	p.line("| Millrace | %s, %s |", m.Millrace, m.Go)
	if p.peer != "" {
		p.line("| peer | %s, %s, in the best of the cells below |", p.peer, m.Java)
	}
	pinned := "not pinned"
	if p.Pinned {
		pinned = "the measured process on cores of its own"
	}
	p.line("| broker | Apache Kafka, one node, on the same machine; %s |", pinned)
	neighbours, _ := results.SpreadOf(p.Counted(), func(r results.Run) (float64, bool) { return r.Neighbours, true })
	steal, _ := results.SpreadOf(p.Counted(), func(r results.Run) (float64, bool) { return r.Steal, true })
	p.line("| others meanwhile | other processes %.2f cores (at most %.2f), hypervisor %.2f (at most %.2f) |\n", neighbours.Median, neighbours.Most, steal.Median, steal.Most)
	p.line("Figures are medians of runs whose results were exact, with the least and the most in brackets. A ratio above 1 is in Millrace's favour.\n")
}

// of returns the workloads of a kind that were measured on our side.
func (p *page) of(kind string) []results.Workload {
	var list []results.Workload
	for _, w := range p.Workloads {
		if w.Kind == kind && len(p.Of(w.ID, p.ours)) > 0 {
			list = append(list, w)
		}
	}
	return list
}

// better says which way a figure is good; a ratio above 1 is always in Millrace's favour.
type better int

const (
	less better = iota
	more
	neither // no ratio is shown
)

// figure is one thing that is compared.
type figure struct {
	name, note string
	decimals   int
	better     better
	value      results.Measure
}

// pair formats a figure of both sides and their ratio, as three cells of a table.
func (p *page) pair(workload string, f figure) string {
	a, okA := results.SpreadOf(p.Of(workload, p.ours), f.value)
	b, okB := results.SpreadOf(p.Of(workload, p.peer), f.value)
	ratio := "–"
	switch {
	case !okA || !okB || f.better == neither || a.Median == 0 || b.Median == 0:
	case f.better == less:
		ratio = fmt.Sprintf("**%.1f**", b.Median/a.Median)
	case f.better == more:
		ratio = fmt.Sprintf("**%.1f**", a.Median/b.Median)
	}
	return fmt.Sprintf("%s | %s | %s", spread(a, okA, f.decimals), spread(b, okB, f.decimals), ratio)
}

func spread(s results.Spread, ok bool, decimals int) string {
	if !ok {
		return "–"
	}
	if s.Runs == 1 || s.Least == s.Most {
		return fmt.Sprintf("%.*f", decimals, s.Median)
	}
	return fmt.Sprintf("%.*f (%.*f–%.*f)", decimals, s.Median, decimals, s.Least, decimals, s.Most)
}

func title(w results.Workload) string {
	return fmt.Sprintf("%s: %s", w.ID, w.Title)
}

func (p *page) cpu(picture string) {
	list := p.of("backlog")
	if len(list) == 0 {
		return
	}
	p.line("## CPU per record\n\n![CPU per record, Kafka Streams = 100 %%](%s)\n", picture)
	p.line("User and system time of the process in microseconds a record, from a quarter of the input to its end.\n")
	p.line("| Workload | Records | Millrace | Peer | Ratio | Peer's cell |\n|---|---|---|---|---|---|")
	for _, w := range list {
		p.line("| %s | %s | %s | %s |", title(w), thousands(w.Records), p.pair(w.ID, figure{decimals: 2, value: results.Score}), p.cell(w.ID))
	}
	p.line("\nFrom exec to the end of the input, with start-up and, on the JVM, compiling:\n")
	p.line("| Workload | Millrace | Peer | Ratio |\n|---|---|---|---|")
	for _, w := range list {
		p.line("| %s | %s |", title(w), p.pair(w.ID, figure{decimals: 2, value: positive(func(r results.Run) float64 { return r.CPUWhole })}))
	}
	p.line("")
}

// cell is the one that the peer's counted runs had.
func (p *page) cell(workload string) string {
	if runs := p.Of(workload, p.peer); len(runs) > 0 {
		return runs[0].Cell
	}
	return "–"
}

func positive(f func(results.Run) float64) results.Measure {
	return func(r results.Run) (float64, bool) { v := f(r); return v, v > 0 }
}

func thousands(n uint64) string {
	if n >= 1_000_000 {
		return fmt.Sprintf("%.3g M", float64(n)/1e6)
	}
	return fmt.Sprintf("%.3g k", float64(n)/1e3)
}

// rate is the load of a latency workload.
func (p *page) rate(workload string) string {
	for _, r := range p.Of(workload, p.ours) {
		if r.Latency != nil {
			return fmt.Sprintf(", %s/s", thousands(r.Latency.Rate))
		}
	}
	return ""
}

// guarantees compares each side with itself: workload W2a is W2 at least once.
func (p *page) guarantees() {
	head := false
	for _, w := range p.Workloads {
		exactly := strings.TrimSuffix(w.ID, "a")
		if w.Guarantee != "at_least_once" || len(p.Of(exactly, p.ours)) == 0 {
			continue
		}
		if !head {
			p.line("## What exactly-once costs\n\nCPU a record, exactly once / at least once, each side against itself.\n")
			p.line("| Workload | Millrace | Peer |\n|---|---|---|")
			head = true
		}
		p.line("| %s | %s | %s |", exactly, p.tax(exactly, w.ID, p.ours), p.tax(exactly, w.ID, p.peer))
	}
	if head {
		p.line("")
	}
}

func (p *page) tax(exactly, atLeast, side string) string {
	a, okA := results.SpreadOf(p.Of(exactly, side), results.Score)
	b, okB := results.SpreadOf(p.Of(atLeast, side), results.Score)
	if !okA || !okB {
		return "–"
	}
	return fmt.Sprintf("%.2f", a.Median/b.Median)
}

// grid shows every cell that the peer was tried with, also those that did not win.
func (p *page) grid() {
	var cells []string
	for _, r := range p.Runs {
		if r.Cell != "" && !slices.Contains(cells, r.Cell) {
			cells = append(cells, r.Cell)
		}
	}
	if len(cells) == 0 {
		return
	}
	p.line("## The peer's cells\n\nWhere there is more than one for a workload, each was run once before the rounds, and the best one took part in them. CPU in microseconds a record; for R seconds to the first result, for L the p99 in ms.\n")
	p.line("| Workload | Cell | Figure |\n|---|---|---|")
	for _, r := range p.Runs {
		if r.Cell == "" || r.Round > 0 {
			continue
		}
		figure := "void"
		if value, ok := results.Score(r); ok && r.Void == "" {
			figure = fmt.Sprintf("%.2f", value)
		}
		p.line("| %s | %s | %s |", r.Workload, r.Cell, figure)
	}
	p.line("\nWhat the parts of a cell's name mean:\n")
	for _, d := range peer.Describe(cells) {
		p.line("- **%s**: %s", d[0], d[1])
	}
	p.line("\nThe command line of every run is in the file of the figures.\n")
}

func (p *page) voids() {
	head := false
	for _, r := range p.Runs {
		if r.Void == "" {
			continue
		}
		if !head {
			p.line("## Void runs\n")
			head = true
		}
		p.line("- %s, %s %s, round %d: %s", r.Workload, r.Side, r.Cell, r.Round, r.Void)
	}
	if head {
		p.line("")
	}
}
