package observe

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"millrace/record"
)

// everything is a story in which each metric gets a sample.
func everything(t *testing.T, change func(*Options)) *story {
	s := newStory(t, change)
	s.run()
	s.Aborted("fenced", errors.New("x"))
	return s
}

// The names and labels of all metrics: dashboards and alerts depend on them.
func TestMetricNamesAreGolden(t *testing.T) {
	s := newStory(t, nil)
	var b strings.Builder
	for _, m := range s.Metrics() {
		fmt.Fprintf(&b, "%s %s {%s}\n", m.Name, m.Type, strings.Join(m.Labels, ","))
	}
	golden(t, "testdata/metrics.golden", b.String())
}

// What is scraped is what is listed: same names, same labels, same types.
func TestScrapeMatchesTheList(t *testing.T) {
	s := everything(t, nil)
	families, err := s.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	standard := 0
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "millrace_") {
			standard++
			continue
		}
		var labels []string
		for _, l := range f.Metric[0].Label {
			if l.GetName() != "application_id" {
				labels = append(labels, l.GetName())
			} else if l.GetValue() != "ad-clicks" {
				t.Errorf("%s: application_id %q", f.GetName(), l.GetValue())
			}
		}
		got[f.GetName()] = strings.ToLower(f.GetType().String()) + " " + strings.Join(labels, ",")
	}
	want := map[string]string{}
	for _, m := range s.Metrics() {
		labels := slices.Clone(m.Labels)
		slices.Sort(labels)
		want[m.Name] = m.Type + " " + strings.Join(labels, ",")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("list and scrape differ:\n%s", d)
	}
	if standard < 10 {
		t.Errorf("only %d families of the Go runtime and the process", standard)
	}
}

// samples flattens a scrape: name{labels} to value; of a histogram the count.
func (s *story) samples() map[string]float64 {
	s.t.Helper()
	families, err := s.metrics.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				if l.GetName() != "application_id" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			name := strings.TrimPrefix(f.GetName(), "millrace_") + "{" + strings.Join(labels, ",") + "}"
			all[name] = sampleValue(f.GetType(), m)
		}
	}
	return all
}

func sampleValue(kind dto.MetricType, m *dto.Metric) float64 {
	switch kind {
	case dto.MetricType_COUNTER:
		return m.Counter.GetValue()
	case dto.MetricType_GAUGE:
		return m.Gauge.GetValue()
	case dto.MetricType_HISTOGRAM:
		return float64(m.Histogram.GetSampleCount())
	}
	return -1
}

func TestMetricValues(t *testing.T) {
	s := everything(t, nil)
	s.after(10 * time.Second)
	now := float64(s.clock().UnixMilli()) / 1000
	got := s.samples()
	for name, want := range map[string]float64{
		"instance_state{state=running}":                                          1,
		"instance_state{state=restoring}":                                        0,
		"tasks{role=active,subtopology=0}":                                       3,
		"tasks{role=active,subtopology=1}":                                       1,
		"tasks_max{}":                                                            8,
		"rebalances_total{reason=joined}":                                        1,
		"records_consumed_total{source=clicks,topic=ad.clicks}":                  6000,
		"bytes_consumed_total{source=clicks,topic=ad.clicks}":                    480000,
		"records_produced_total{sink=per_minute,topic=ad.clicks.per-minute}":     90,
		"step_records_total{port=in,step=clicks_per_ad_minute}":                  5900,
		"step_records_total{port=late,step=clicks_per_ad_minute}":                14,
		"step_records_total{port=filtered,step=clicks_per_ad_minute}":            60,
		"late_windows_total{step=clicks_per_ad_minute}":                          28,
		"records_dropped_total{reason=null_key,step=clicks_per_ad_minute}":       10,
		"dead_letter_records_total{kind=deserialization,origin=clicks}":          30,
		"expression_errors_total{field=spend,step=clicks_per_ad_minute}":         2,
		"windows_closed_total{step=clicks_per_ad_minute}":                        44,
		"state_expired_rows_total{step=clicks_per_ad_minute}":                    5,
		"consumer_lag_records{partition=0,topic=ad.clicks}":                      120,
		"consumer_lag_seconds{topic=ad.clicks}":                                  12.5,
		"watermark_timestamp_seconds{partition=0,source=clicks}":                 now - 25.4,
		"watermark_delay_seconds{node=clicks}":                                   25.4,
		"watermark_idle_partitions{source=clicks}":                               1,
		"commits_total{result=ok}":                                               1,
		"commits_total{result=fenced}":                                           1,
		"commits_total{result=failed}":                                           0,
		"commit_duration_seconds{phase=end_txn}":                                 1,
		"last_commit_timestamp_seconds{}":                                        now - 10,
		"state_bytes{store=clicks_per_ad_minute}":                                212 << 20,
		"state_keys{store=clicks_per_ad_minute}":                                 1900,
		"state_cache_requests_total{result=hit,store=clicks_per_ad_minute}":      94,
		"state_disk_free_bytes{}":                                                5 << 30,
		"record_lateness_seconds{source=clicks}":                                 4,
		"end_to_end_latency_seconds{sink=per_minute}":                            1,
		"state_operation_duration_seconds{op=get,store=clicks_per_ad_minute}":    2,
		"state_operation_duration_seconds{op=scan,store=clicks_per_ad_minute}":   1,
		"state_value_log_bytes{}":                                                4096,
		"windows_open{step=clicks_per_ad_minute}":                                3,
		"task_busy_seconds_total{subtopology=1}":                                 1.5,
		"task_backpressure_seconds_total{subtopology=1}":                         .25,
		"kafka_requests_total{api=fetch,result=ok}":                              1,
		"kafka_request_duration_seconds{api=fetch}":                              1,
		"changelog_records_total{store=clicks_per_ad_minute}":                    75,
		"restore_remaining_records{partition=0,store=seen}":                      0,
		"restore_records_total{store=seen}":                                      20000,
		"restore_records_total{store=clicks_per_ad_minute}":                      4200,
		"restore_duration_seconds{store=seen}":                                   1,
		"build_info{go_version=" + goVersion + ",revision=abc123,version=0.3.0}": 1,
		"topology_info{guarantee=exactly_once,topology=7c1f0a2e}":                1,
	} {
		if v, ok := got[name]; !ok || v-want > .001 || want-v > .001 {
			t.Errorf("%s = %v (there: %v), want %v", name, v, ok, want)
		}
	}
	if _, ok := got["watermark_timestamp_seconds{partition=2,source=clicks}"]; ok {
		t.Error("a partition without records has a watermark")
	}
}

// Without partition labels the same gauges exist once a topic, source or store.
func TestWithoutPartitionLabels(t *testing.T) {
	s := everything(t, func(o *Options) { o.PartitionLabels = false })
	got := s.samples()
	for name := range got {
		if strings.Contains(name, "partition=") {
			t.Errorf("%s carries a partition", name)
		}
	}
	if got["consumer_lag_records{topic=ad.clicks}"] != 120 {
		t.Errorf("lag %v, want 120", got["consumer_lag_records{topic=ad.clicks}"])
	}
	if w := got["watermark_timestamp_seconds{source=clicks}"]; w != float64(s.clock().UnixMilli()-15400)/1000 {
		t.Errorf("watermark %v is not that of the slowest partition", w)
	}
}

// What is counted in powers of two is shown as the seconds that it stands for.
func TestBucketsOfSpreads(t *testing.T) {
	s := everything(t, nil)
	families, err := s.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "millrace_record_lateness_seconds" {
			continue
		}
		h := f.Metric[0].Histogram
		below := map[float64]uint64{}
		for _, b := range h.Bucket {
			below[b.GetUpperBound()] = b.GetCumulativeCount()
		}
		for bound, want := range map[float64]uint64{.001: 2, .004: 3, 4.096: 3, 16.384: 4} {
			if got, ok := below[bound]; !ok || got != want {
				t.Errorf("%d values up to %v s (%v), want %d", got, bound, ok, want)
			}
		}
		if h.GetSampleSum() != 5.003 {
			t.Errorf("the sum is %v s", h.GetSampleSum())
		}
		return
	}
	t.Error("there is no such histogram")
}

// What moved to another instance is no longer reported by this one.
func TestRevokedTasksLeaveTheMetrics(t *testing.T) {
	s := everything(t, nil)
	s.Revoked([]record.TaskID{task(1, 0), task(0, 0)}, false)
	s.Watermarks(nil)
	for name := range s.samples() {
		for _, gone := range []string{"state_bytes", "state_keys", "windows_open", "restore_remaining", "consumer_lag", "watermark_", "tasks{role=active,subtopology=1}"} {
			if strings.HasPrefix(name, gone) {
				t.Errorf("%s is still reported", name)
			}
		}
	}
	s.Assigned([]record.TaskID{task(0, 1), task(2, 0)}, 5, 0)
	s.StoreStats(record.StoreStats{Task: task(2, 0), Store: "x", Bytes: 1})
	s.Assigned([]record.TaskID{task(0, 1)}, 6, 0)
	if _, ok := s.samples()["state_bytes{store=x}"]; ok {
		t.Error("a task that an assignment left out keeps its store")
	}
}

// A partition that is idle holds nothing back, however old its watermark is.
func TestIdlePartitionsDoNotCount(t *testing.T) {
	s := newStory(t, func(o *Options) { o.PartitionLabels = false })
	now := s.clock().UnixMilli()
	s.Watermarks([]record.WatermarkStatus{
		{Source: "clicks", Topic: "ad.clicks", Watermark: now - 3600_000, Idle: true},
		{Source: "clicks", Topic: "ad.clicks", Partition: 1, Watermark: now - 5000},
	})
	got := s.samples()
	if d := got["watermark_delay_seconds{node=clicks}"]; d != 5 {
		t.Errorf("delay %v s, want 5", d)
	}
	if w := got["watermark_timestamp_seconds{source=clicks}"]; w != float64(now-5000)/1000 {
		t.Errorf("watermark %v is that of the idle partition", w)
	}
}

// Why a rebalance happened, and results that nobody knows.
func TestReasonsAndResults(t *testing.T) {
	s := newStory(t, nil)
	id := []record.TaskID{task(0, 0)}
	s.Assigned(id, 1, 0)
	s.Revoked(id, false)
	s.Assigned(id, 2, 0)
	s.Revoked(id, true)
	s.Revoked(nil, false)
	s.Assigned(id, 3, 0)
	s.Aborted("ok", errors.New("x"))
	got := s.samples()
	for name, want := range map[string]float64{
		"rebalances_total{reason=joined}": 1, "rebalances_total{reason=changed}": 1, "rebalances_total{reason=lost}": 1,
		"commits_total{result=failed}": 1, "commits_total{result=ok}": 0,
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
}

// A hundred thousand records of any content make no new series.
func TestSeriesAreBounded(t *testing.T) {
	s := everything(t, nil)
	before := len(s.samples())
	for i := range 1000 {
		c := commitOne
		c.Epoch = int64(i)
		s.Committed(c)
		s.Aborted("strange-"+fmt.Sprint(i), fmt.Errorf("error %d", i))
		s.Watermarks(s.marks(int64(i)))
		s.Warn("MR3001", fmt.Sprint(i))
	}
	if after := len(s.samples()); after != before {
		t.Errorf("series grew from %d to %d", before, after)
	}
}

func TestInvalidNamesDoNotPanic(t *testing.T) {
	s := newStory(t, nil)
	s.Committed(record.CommitStats{Tallies: []record.Tally{{What: record.Consumed, Where: "\xff", Detail: "\xfe", N: -1, Bytes: -1}}})
	s.Watermarks([]record.WatermarkStatus{{Source: "\xff", Topic: "\xff"}})
	s.samples()
}

func TestMetricsPage(t *testing.T) {
	s := newStory(t, nil)
	var b strings.Builder
	b.WriteString("# Metrics\n\nWritten by `go test ./observe -update` from the registered metrics; do not edit. Every metric carries\n" +
		"`application_id`. Labels named `partition` go away with `metrics.partition_labels: false`. The `go_` and `process_`\n" +
		"metrics of the Prometheus client library come in addition.\n\n| Name | Type | Labels | Meaning |\n|---|---|---|---|\n")
	for _, m := range s.Metrics() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "), m.Help)
	}
	golden(t, "../docs/metrics.md", b.String())
}

func TestCodesAreInOrderAndComplete(t *testing.T) {
	last := ""
	for _, c := range Codes {
		if c.ID <= last {
			t.Errorf("%s is out of order or used twice", c.ID)
		}
		last = c.ID
		if c.Title == "" || c.Meaning == "" || c.Action == "" {
			t.Errorf("%s has no title, no meaning or no action", c.ID)
		}
	}
}
