package results

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpread(t *testing.T) {
	runs := []Run{{CPUSteady: 3}, {CPUSteady: 1}, {CPUSteady: 0}, {CPUSteady: 2}, {CPUSteady: 10}}
	got, ok := SpreadOf(runs, Score)
	if want := (Spread{Median: 2.5, Least: 1, Most: 10, Runs: 4}); !ok || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, ok := SpreadOf([]Run{{}}, Score); ok {
		t.Error("a run without a figure was counted")
	}
}

func TestBestLeavesVoidRunsOut(t *testing.T) {
	runs := []Run{{Cell: "a", CPUSteady: 5}, {Cell: "b", CPUSteady: 1, Void: "lost a row"}, {Cell: "c", CPUSteady: 4}, {Cell: "c", CPUSteady: 4.5}}
	if cell, ok := Best(runs); !ok || cell != "c" {
		t.Errorf("got %q", cell)
	}
	if _, ok := Best(runs[1:2]); ok {
		t.Error("a void run won")
	}
}

func TestScoreIsThatOfTheKind(t *testing.T) {
	if v, _ := Score(Run{CPUSteady: 1, Latency: &Latency{P99: 7}}); v != 7 {
		t.Errorf("latency: %v", v)
	}
	if v, _ := Score(Run{CPUSteady: 1, Recovery: &Recovery{FirstResultSeconds: 8}}); v != 8 {
		t.Errorf("recovery: %v", v)
	}
}

func TestSaveAndLoad(t *testing.T) {
	c := &Comparison{Seed: 4, Runs: []Run{{Workload: "W0", Side: "us", Round: 1, CPUSteady: 1}, {Workload: "W0", Side: "them", Cell: "x", Round: 1, Latency: &Latency{P50: 2}},
		{Workload: "W0", Side: "us", Round: 0}, {Workload: "W0", Side: "us", Round: 1, Void: "inexact"}}}
	path := filepath.Join(t.TempDir(), "new", "r.json")
	if err := c.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, got); diff != "" {
		t.Error(diff)
	}
	if runs := got.Of("W0", "us"); len(runs) != 1 || runs[0].CPUSteady != 1 {
		t.Errorf("%+v", runs)
	}
	if ours, peer := got.Sides(); ours != "us" || peer != "them" {
		t.Errorf("%q, %q", ours, peer)
	}
}
