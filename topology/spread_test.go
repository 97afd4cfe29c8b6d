package topology_test

import (
	"testing"

	"millrace/record"
)

// How late records are is counted behind the newest of their partition; how old results are when they are made, by the
// wall clock. Neither is counted twice when a task starts again.
func TestLatenessAndLatencyAreCounted(t *testing.T) {
	w := single(t, storyJob("{ type: tumbling, size: 10ms, allowed_lateness: 5ms }", concat, "final"))
	task := w.tasks[0]
	if len(task.instance.Open()) != 1 || task.instance.Open()[0] != (record.OpenWindows{Step: "s"}) {
		t.Errorf("open before the first record: %v", task.instance.Open())
	}
	for _, text := range []string{"k a 3", "k b 12", "k c 9"} {
		w.write("in", 0, parseRecord(t, text))
	}
	w.settle()
	if got := task.instance.Open(); got[0].N != 2 {
		t.Errorf("open: %v, want two windows", got)
	}
	task.start()
	if got := task.instance.Open(); got[0].N != 2 {
		t.Errorf("open after a restart: %v, want two windows", got)
	}
	w.now = 1000
	w.write("in", 0, parseRecord(t, "k d 40"))
	w.write("in", 0, parseRecord(t, "k e 1"))
	w.settle()
	if got := task.instance.Open(); got[0].N != 1 {
		t.Errorf("open at last: %v, want one window", got)
	}
	if s := w.spreads[record.Lateness]; s.Count() != 5 || s.Counts[0] != 3 || s.Sum != 3+39 {
		t.Errorf("lateness of %d records, %d on time, %v ms in all", s.Count(), s.Counts[0], s.Sum)
	}
	if s := w.spreads[record.Latency]; s.Count() != 3 || s.Sum != (1000-9)+(1000-12)+(1000-1) {
		t.Errorf("latency of %d results, %v ms in all", s.Count(), s.Sum)
	}
}
