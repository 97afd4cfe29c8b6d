package workload

import (
	"bytes"
	"path/filepath"
	"testing"

	"millrace/cli"
)

func TestEveryJobIsValid(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range All(1) {
		if seen[w.ID] {
			t.Errorf("two workloads are called %s", w.ID)
		}
		seen[w.ID] = true
		t.Setenv("BENCH_COMMIT", w.Commit.String())
		t.Setenv("BENCH_SESSION", w.Session.String())
		t.Setenv("BENCH_GUARANTEE", w.Guarantee())
		var out bytes.Buffer
		if code := cli.Run([]string{"validate", "--deny-warnings", "-c", filepath.Join("..", "jobs", w.YAML)}, &out, &out); code != 0 {
			t.Errorf("%s: exit code %d\n%s", w.ID, code, &out)
		}
		if len(w.Cells) == 0 || w.Stream.Partitions == 0 || w.Stream.Rate == 0 || w.Kind != Latency && w.Records == 0 {
			t.Errorf("%s is incomplete: %+v", w.ID, w)
		}
	}
}

func TestSelect(t *testing.T) {
	all := All(1)
	chosen, err := Select(all, []string{"W3", "R1"})
	if err != nil || len(chosen) != 2 || chosen[0].ID != "W3" {
		t.Errorf("%+v, %v", chosen, err)
	}
	if _, err := Select(all, []string{"W77"}); err == nil {
		t.Error("an unknown workload was taken")
	}
	if chosen, _ := Select(all, nil); len(chosen) == 0 || len(chosen) == len(all) {
		t.Errorf("%d of %d are default", len(chosen), len(all))
	}
}
