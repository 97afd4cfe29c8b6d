package topology_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"millrace/record"
	"millrace/topology"
)

// perRecord measures the heap objects that a record costs, epochs included, once everything has its size.
func perRecord(t *testing.T, job string) float64 {
	t.Helper()
	const records, epoch = 20_000, 5_000
	w := newWorld(t, compile(t, t.TempDir(), job), map[string]int32{"app-s-repartition": 4})
	k := w.tasks[0]
	var batch []record.Record
	for i := range records {
		value := fmt.Sprintf(`{"ad":"ad-%d","cost":%d,"at":%d,"unread":{"a":[1,2]}}`, i%100, i, i/1000)
		batch = append(batch, record.Record{Key: fmt.Appendf(nil, "ad-%d", i%100), Value: []byte(value), Offset: int64(i)})
	}
	from := record.TopicPartition{Topic: "in"}
	outputs := &topology.Outputs{}
	positions := make([]record.Offset, k.state.Stores())
	run := func() {
		for i := range batch {
			if err := k.instance.Process(0, from, &batch[i]); err != nil {
				t.Fatal(err)
			}
			for k.instance.Due() {
				if err := k.instance.Fire(1000); err != nil {
					t.Fatal(err)
				}
			}
			if i%epoch == epoch-1 {
				if err := k.instance.Freeze(); err != nil {
					t.Fatal(err)
				}
				outputs = k.instance.Swap(outputs)
				outputs.Reset()
				k.state.Freeze()
				k.state.Commit(positions, time.Time{})
			}
		}
	}
	run()
	return testing.AllocsPerRun(3, run) / records
}

func TestARecordAllocatesNothing(t *testing.T) {
	source := `topology:
  sources: { in: { topic: in, key: %s, fields: { ad: string, cost: long, at: timestamp_ms }, timestamp: value.at } }
  steps:
    s: { from: in, %s, to: out }
  sinks: { out: { topic: out } }
`
	window := "aggregate: { r: count(), cost: sum(value.cost) }, emit: final, late: { policy: drop }, window: "
	for name, job := range map[string]string{
		"filter, select, sink": fmt.Sprintf(source, "value.ad", "where: value.cost % 10 == 0, select: { ad: value.ad, twice: value.cost * 2 }"),
		"tumbling count":       fmt.Sprintf(source, "value.ad", "group_by: value.ad, "+window+"{ type: tumbling, size: 1h }"),
		"hopping count":        fmt.Sprintf(source, "value.ad", "group_by: value.ad, "+window+"{ type: hopping, size: 1h, advance: 10m }"),
		"changes":              fmt.Sprintf(source, "value.ad", "group_by: value.ad, aggregate: { r: count() }, ttl: forever"),
		"combined shuffle":     fmt.Sprintf(source, "value.user", "group_by: value.ad, "+window+"{ type: tumbling, size: 1h }"),
		"shuffle behind a step": strings.Replace(fmt.Sprintf(source, "value.user", "group_by: value.ad, aggregate: { r: 'collect_list(value.cost, 3)' }, ttl: 1h"),
			"  steps:\n    s: { from: in,", "  steps:\n    f: { from: in, where: value.cost >= 0 }\n    s: { from: f,", 1),
	} {
		t.Run(name, func(t *testing.T) {
			job := strings.Replace(job, "ad: string,", "ad: string, user: string,", 1)
			if n := perRecord(t, job); n > 0.01 {
				t.Errorf("%.3f heap objects a record, want at most 0.01", n)
			}
		})
	}
}
