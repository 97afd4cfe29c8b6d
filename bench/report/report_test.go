package report

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/bench/results"
)

func sample() *results.Comparison {
	c := &results.Comparison{Rounds: 3, Command: "go run ./bench run -seed 1", Workloads: []results.Workload{
		{ID: "W2", Title: "count <per> user", Kind: "backlog", Records: 3_000_000, Guarantee: "exactly_once"},
		{ID: "W2a", Title: "the same", Kind: "backlog", Records: 3_000_000, Guarantee: "at_least_once"},
		{ID: "R1", Title: "kill -9", Kind: "recovery", Records: 1_000_000},
		{ID: "L1", Title: "paced", Kind: "latency", Records: 300_000},
	}}
	add := func(workload, side, cell string, round int, cpu float64) {
		r := results.Run{Workload: workload, Side: side, Cell: cell, Round: round, Records: 3_000_000, CPUSteady: cpu, CPUWhole: 2 * cpu, RateSteady: 1e6 / cpu, PeakRSS: 100 << 20, ChangelogBytes: 3_000_000}
		switch workload {
		case "R1":
			r.Recovery = &results.Recovery{ChangelogSize: 1_000_000, FirstResultSeconds: cpu, FirstResultCPU: 1, CaughtUpSeconds: 2}
		case "L1":
			r.Latency = &results.Latency{P50: cpu, P99: 2 * cpu, P999: 3 * cpu, Max: 4 * cpu, Rate: 10_000}
		}
		c.Runs = append(c.Runs, r)
	}
	add("W2", "Kafka Streams", "batches+memory", 0, 7)
	add("W2", "Kafka Streams", "batches", 0, 5.25)
	for round := 1; round <= 3; round++ {
		for _, w := range []string{"W2", "W2a", "R1", "L1"} {
			add(w, "millrace", "", round, 0.4+float64(round)/10) // median 0.6
			add(w, "Kafka Streams", "batches", round, 5+float64(round)/2)
		}
	}
	c.Runs = append(c.Runs, results.Run{Workload: "W2", Side: "millrace", Round: 2, CPUSteady: 0.001, Void: "not exact: lost a row"})
	return c
}

func TestPageHasMediansAndRatiosOfValidRuns(t *testing.T) {
	got := Page(sample(), "p.svg")
	for _, want := range []string{
		"| W2: count <per> user | 3 M | 0.60 (0.50–0.70) | 6.00 (5.50–6.50) | **10.0** | batches |",
		"| R1: kill -9 | seconds to the first result | 0.60 (0.50–0.70) | 6.00 (5.50–6.50) | **10.0** | batches |",
		"| L1: paced, 10 k/s | p99 | 1.2 (1.0–1.4) | 12.0 (11.0–13.0) | **10.0** | batches |",
		"| W2 | batches+memory | 7.00 |",
		"| W2 | 1.00 | 1.00 |",
		"- **memory**: windows in memory instead of RocksDB: `store=memory`",
		"- W2, millrace , round 2: not exact: lost a row",
		"| W2 count, 10 k users | ≥ 8x | ≥ 14x | 10x | met |",
		"| W2 memory | ≥ 6x | ≥ 12x | 1x | **missed** |",
		"| W2 exactly once / at least once | ≤ 1.08x | ≤ 1.03x | 1x | reached |",
		"| kill -9, disk intact, 1 M users: seconds to the first result | ≤ 2 | ≤ 0.5 | 0.6 | met |",
		"| W0 passthrough | ≥ 5x | ≥ 12x | not measured |  |",
		"go run ./bench run -seed 1",
		"![CPU per record, Kafka Streams = 100 %](p.svg)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestPageWithoutPeerAndWithoutRuns(t *testing.T) {
	c := sample()
	c.Runs = c.Runs[2:3]
	if got := Page(c, "p.svg"); !strings.Contains(got, "| 0.50 | – | – |") {
		t.Error(got)
	}
	if got := Page(&results.Comparison{}, "p.svg"); strings.Contains(got, "NaN") || strings.Contains(got, "## CPU") {
		t.Error(got)
	}
}

func TestPictureIsXMLWithABarASide(t *testing.T) {
	page := filepath.Join(t.TempDir(), "performance.md")
	if err := Write(sample(), page); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(strings.TrimSuffix(page, "md") + "svg")
	if err != nil {
		t.Fatal(err)
	}
	bars := 0
	for d := xml.NewDecoder(strings.NewReader(string(text))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			bars++
		}
	}
	if bars != 1+4 { // the background, and two workloads with two sides
		t.Errorf("%d rectangles in\n%s", bars, text)
	}
}
