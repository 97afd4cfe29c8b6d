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
	neighbours, _ := results.SpreadOf(p.counted(), func(r results.Run) (float64, bool) { return r.Neighbours, true })
	steal, _ := results.SpreadOf(p.counted(), func(r results.Run) (float64, bool) { return r.Steal, true })
	p.line("| others meanwhile | other processes %.2f cores (at most %.2f), hypervisor %.2f (at most %.2f) |\n", neighbours.Median, neighbours.Most, steal.Median, steal.Most)
	p.line("Figures are medians of runs whose results were exact, with the least and the most in brackets; a ratio is peer / Millrace.\n")
}

// counted are the runs that figures come from.
func (p *page) counted() []results.Run {
	var runs []results.Run
	for _, r := range p.Runs {
		if r.Round > 0 && r.Void == "" {
			runs = append(runs, r)
		}
	}
	return runs
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

// pair formats a measure of both sides and their ratio, as three cells of a table.
func (p *page) pair(workload string, decimals int, m results.Measure) string {
	a, okA := results.SpreadOf(p.Of(workload, p.ours), m)
	b, okB := results.SpreadOf(p.Of(workload, p.peer), m)
	ratio := "–"
	if okA && okB && a.Median > 0 {
		ratio = fmt.Sprintf("**%.1f**", b.Median/a.Median)
	}
	return fmt.Sprintf("%s | %s | %s", spread(a, okA, decimals), spread(b, okB, decimals), ratio)
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
		p.line("| %s | %s | %s | %s |", title(w), thousands(w.Records), p.pair(w.ID, 2, results.Score), p.cell(w.ID))
	}
	p.line("\nFrom exec to the end of the input, with start-up and, on the JVM, compiling:\n")
	p.line("| Workload | Millrace | Peer | Ratio |\n|---|---|---|---|")
	for _, w := range list {
		p.line("| %s | %s |", title(w), p.pair(w.ID, 2, positive(func(r results.Run) float64 { return r.CPUWhole })))
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

// costs are the other figures of the same runs.
func (p *page) costs() {
	list := p.of("backlog")
	if len(list) == 0 {
		return
	}
	for _, t := range []struct {
		head, note string
		decimals   int
		value      func(results.Run) float64
	}{
		{"Records a second", "In thousands, on the cores that the process has, from a quarter of the input to its end. Here less of the ratio is better.", 0, func(r results.Run) float64 { return r.RateSteady / 1000 }},
		{"Memory", "Peak resident memory in MiB. The JVM's heap may grow to 2 GiB unless the cell says otherwise; a smaller one costs it CPU.", 0, func(r results.Run) float64 { return float64(r.PeakRSS) / (1 << 20) }},
		{"Changelog", "Bytes in the changelog topics a record of input, as they stand at the end.", 1, func(r results.Run) float64 { return float64(r.ChangelogBytes) / float64(r.Records) }},
		{"Broker", "CPU of the broker in microseconds a record of input.", 2, func(r results.Run) float64 { return r.BrokerCPU }},
		{"First commit", "Seconds from exec to the first commit.", 2, func(r results.Run) float64 { return r.FirstSeconds }},
	} {
		p.line("### %s\n\n%s\n", t.head, t.note)
		p.line("| Workload | Millrace | Peer | Ratio |\n|---|---|---|---|")
		for _, w := range list {
			if _, has := results.SpreadOf(p.Of(w.ID, p.ours), positive(t.value)); has {
				p.line("| %s | %s |", title(w), p.pair(w.ID, t.decimals, positive(t.value)))
			}
		}
		p.line("")
	}
}

func (p *page) recoveries() {
	list := p.of("recovery")
	if len(list) == 0 {
		return
	}
	p.line("## After kill -9\n\nFrom the successor's exec to the first result that a reader of committed records sees; both sides are static members.\n")
	p.line("| Workload | | Millrace | Peer | Ratio | Peer's cell |\n|---|---|---|---|---|---|")
	for _, w := range list {
		for _, row := range []struct {
			name  string
			value func(results.Recovery) float64
		}{
			{"seconds to the first result", func(r results.Recovery) float64 { return r.FirstResultSeconds }},
			{"CPU seconds until then", func(r results.Recovery) float64 { return r.FirstResultCPU }},
			{"seconds to the end of the input", func(r results.Recovery) float64 { return r.CaughtUpSeconds }},
			{"positions in the changelog, in thousands", func(r results.Recovery) float64 { return float64(r.ChangelogSize) / 1000 }},
			{"positions a second until the first result, in thousands", func(r results.Recovery) float64 { return float64(r.ChangelogSize) / r.FirstResultSeconds / 1000 }},
		} {
			p.line("| %s | %s | %s | %s |", title(w), row.name, p.pair(w.ID, 2, func(r results.Run) (float64, bool) {
				if r.Recovery == nil {
					return 0, false
				}
				return row.value(*r.Recovery), true
			}), p.cell(w.ID))
		}
	}
	p.line("")
}

func (p *page) latencies() {
	list := p.of("latency")
	if len(list) == 0 {
		return
	}
	p.line("## Latency\n\nMilliseconds from when a record was due to be written to when its result was read as committed. Warm-up is not counted.\n")
	p.line("| Workload | | Millrace | Peer | Ratio | Peer's cell |\n|---|---|---|---|---|---|")
	for _, w := range list {
		for _, row := range []struct {
			name  string
			value func(results.Latency) float64
		}{
			{"p50", func(l results.Latency) float64 { return l.P50 }},
			{"p99", func(l results.Latency) float64 { return l.P99 }},
			{"p99.9", func(l results.Latency) float64 { return l.P999 }},
			{"most", func(l results.Latency) float64 { return l.Max }},
		} {
			p.line("| %s | %s | %s | %s |", title(w), row.name, p.pair(w.ID, 1, func(r results.Run) (float64, bool) {
				if r.Latency == nil {
					return 0, false
				}
				return row.value(*r.Latency), true
			}), p.cell(w.ID))
		}
	}
	p.line("")
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
	p.line("## The peer's cells\n\nEach was run once before the rounds; the best one took part in them. CPU in microseconds a record; for R seconds to the first result, for L the p99 in ms.\n")
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
