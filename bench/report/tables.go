package report

import "millrace/bench/results"

// costs are the other figures of the runs that worked a topic off.
func (p *page) costs() {
	list := p.of("backlog")
	if len(list) == 0 {
		return
	}
	for _, f := range []figure{
		{"Records a second", "In thousands, on the cores that the process has, from a quarter of the input to its end.", 0, more, positive(func(r results.Run) float64 { return r.RateSteady / 1000 })},
		{"Memory", "Peak resident memory in MiB. The JVM's heap may grow to 2 GiB unless the cell says otherwise; a smaller one costs it CPU.", 0, less, positive(func(r results.Run) float64 { return float64(r.PeakRSS) / (1 << 20) })},
		{"Changelog", "Bytes in the changelog topics a record of input, as they stand at the end.", 1, less, positive(func(r results.Run) float64 { return float64(r.ChangelogBytes) / float64(r.Records) })},
		{"Broker", "CPU of the broker in microseconds a record of input.", 2, less, positive(func(r results.Run) float64 { return r.BrokerCPU })},
		{"First commit", "Seconds from exec to the first commit.", 2, less, positive(func(r results.Run) float64 { return r.FirstSeconds })},
	} {
		p.line("### %s\n\n%s\n", f.name, f.note)
		p.line("| Workload | Millrace | Peer | Ratio |\n|---|---|---|---|")
		for _, w := range list {
			if _, has := results.SpreadOf(p.Of(w.ID, p.ours), f.value); has {
				p.line("| %s | %s |", title(w), p.pair(w.ID, f))
			}
		}
		p.line("")
	}
}

func recovered(f func(results.Recovery) float64) results.Measure {
	return func(r results.Run) (float64, bool) {
		if r.Recovery == nil {
			return 0, false
		}
		return f(*r.Recovery), true
	}
}

func (p *page) recoveries() {
	list := p.of("recovery")
	if len(list) == 0 {
		return
	}
	p.line("## After kill -9\n\nFrom the successor's exec to the first result that a reader of committed records sees; both sides are static members.\n")
	p.rows(list, []figure{
		{"seconds to the first result", "", 2, less, recovered(func(r results.Recovery) float64 { return r.FirstResultSeconds })},
		{"CPU seconds until then", "", 2, less, recovered(func(r results.Recovery) float64 { return r.FirstResultCPU })},
		{"seconds to the end of the input", "", 2, less, recovered(func(r results.Recovery) float64 { return r.CaughtUpSeconds })},
		{"records committed when it was killed, in thousands", "", 0, neither, recovered(func(r results.Recovery) float64 { return float64(r.DoneAtKill) / 1000 })},
		{"positions in the changelog, in thousands", "", 0, neither, recovered(func(r results.Recovery) float64 { return float64(r.ChangelogSize) / 1000 })},
		{"positions a second until the first result, in thousands", "", 0, more, recovered(func(r results.Recovery) float64 { return float64(r.ChangelogSize) / r.FirstResultSeconds / 1000 })},
	})
}

func delayed(f func(results.Latency) float64) results.Measure {
	return func(r results.Run) (float64, bool) {
		if r.Latency == nil {
			return 0, false
		}
		return f(*r.Latency), true
	}
}

func (p *page) latencies() {
	list := p.of("latency")
	if len(list) == 0 {
		return
	}
	p.line("## Latency\n\nMilliseconds from when a record was due to be written to when its result was read as committed. Warm-up is not counted.\n")
	p.rows(list, []figure{
		{"p50", "", 1, less, delayed(func(l results.Latency) float64 { return l.P50 })},
		{"p99", "", 1, less, delayed(func(l results.Latency) float64 { return l.P99 })},
		{"p99.9", "", 1, less, delayed(func(l results.Latency) float64 { return l.P999 })},
		{"most", "", 1, less, delayed(func(l results.Latency) float64 { return l.Max })},
	})
}

// rows writes a table with a line for each figure of each workload.
func (p *page) rows(list []results.Workload, figures []figure) {
	p.line("| Workload | | Millrace | Peer | Ratio | Peer's cell |\n|---|---|---|---|---|---|")
	for _, w := range list {
		for _, f := range figures {
			p.line("| %s | %s | %s | %s |", title(w)+p.rate(w.ID), f.name, p.pair(w.ID, f), p.cell(w.ID))
		}
	}
	p.line("")
}
