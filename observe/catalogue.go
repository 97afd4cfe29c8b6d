package observe

import (
	"runtime"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metric describes one exported metric. Names and labels are a contract with dashboards and alerts: testdata/metrics.golden
// holds them, and a rename needs a release that has both.
type Metric struct {
	Name, Type, Help string
	Labels           []string
}

// catalogue registers metrics and remembers what was registered.
type catalogue struct {
	registry *prometheus.Registry
	to       prometheus.Registerer
	metrics  []Metric
}

// newCatalogue gives every metric the label application_id; all other constant labels are the scraper's.
func newCatalogue(applicationID string) *catalogue {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &catalogue{registry: r, to: prometheus.WrapRegistererWith(prometheus.Labels{"application_id": applicationID}, r)}
}

func (c *catalogue) note(kind, name, help string, labels []string) {
	c.metrics = append(c.metrics, Metric{Name: name, Type: kind, Help: help, Labels: labels})
}

func (c *catalogue) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c.note("counter", name, help, labels)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	c.to.MustRegister(v)
	return v
}

// histogram has classic buckets and, for scrapers that ask for them, native ones.
func (c *catalogue) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	c.note("histogram", name, help, labels)
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
	}, labels)
	c.to.MustRegister(v)
	return v
}

// gauge is computed when it is scraped; see gauges.
func (c *catalogue) gauge(name, help string, labels ...string) *prometheus.Desc {
	c.note("gauge", name, help, labels)
	return prometheus.NewDesc(name, help, labels, nil)
}

// Metrics lists all metrics of this package, by name.
func (o *Observer) Metrics() []Metric {
	list := slices.Clone(o.metrics.metrics)
	slices.SortFunc(list, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// gauges computes the gauges from the observer's state at the moment of a scrape. A gauge that was set by events would
// keep reporting a partition that has moved to another instance.
type gauges struct {
	o *Observer

	build, topology, state, tasks, tasksMax *prometheus.Desc
	lag, lagSeconds, watermark, delay, idle *prometheus.Desc
	lastCommit, stateBytes, stateKeys, disk *prometheus.Desc
	restoreRemaining, windows, valueLog     *prometheus.Desc
	all                                     []*prometheus.Desc
	perPartition                            bool
}

func newGauges(c *catalogue, o *Observer) *gauges {
	g := &gauges{o: o, perPartition: o.opt.PartitionLabels}
	maybe := func(label string) []string {
		if g.perPartition {
			return []string{label, "partition"}
		}
		return []string{label}
	}
	def := func(name, help string, labels ...string) *prometheus.Desc {
		d := c.gauge(name, help, labels...)
		g.all = append(g.all, d)
		return d
	}
	g.build = def("millrace_build_info", "Always 1; what is running.", "version", "revision", "go_version")
	g.topology = def("millrace_topology_info", "Always 1; the fingerprint of the plan and the processing guarantee.", "topology", "guarantee")
	g.state = def("millrace_instance_state", "1 for the state that the instance is in, 0 for the others.", "state")
	g.tasks = def("millrace_tasks", "Tasks of this instance.", "subtopology", "role")
	g.tasksMax = def("millrace_tasks_max", "Tasks of the whole application: more instances than that have nothing to do.")
	g.lag = def("millrace_consumer_lag_records", "Records between the committed position and the end of the input.", maybe("topic")...)
	g.lagSeconds = def("millrace_consumer_lag_seconds", "Age of the oldest record that was fetched and is not processed; 0 if none waits.", "topic")
	g.watermark = def("millrace_watermark_timestamp_seconds", "Watermark as Unix time: results up to it are complete.", maybe("source")...)
	g.delay = def("millrace_watermark_delay_seconds", "How far the watermark is behind the wall clock.", "node")
	g.idle = def("millrace_watermark_idle_partitions", "Partitions that had no record for idle_timeout and hold nothing back.", "source")
	g.lastCommit = def("millrace_last_commit_timestamp_seconds", "Unix time of the last successful commit; absent before the first.")
	g.stateBytes = def("millrace_state_bytes", "Size of the store's active tasks on this instance, memory and disk; the files of a task count for the first of its stores.", "store")
	g.stateKeys = def("millrace_state_keys", "Rows of the store's active tasks on this instance, estimated.", "store")
	g.valueLog = def("millrace_state_value_log_bytes", "Space of large values in the files of all stores on this instance.")
	g.windows = def("millrace_windows_open", "Ranges of time, windows or the slices that overlapping ones share, that tasks hold rows of; state_keys counts the rows.", "step")
	g.disk = def("millrace_state_disk_free_bytes", "Free space on the disk that holds the state.")
	g.restoreRemaining = def("millrace_restore_remaining_records", "Changelog positions that a restore still has to read.", maybe("store")...)
	c.to.MustRegister(g)
	return g
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range g.all {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	o := g.o
	now := o.opt.Clock()
	set := func(d *prometheus.Desc, v float64, labels ...string) {
		for i := range labels {
			labels[i] = strings.ToValidUTF8(labels[i], "?")
		}
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	set(g.build, 1, o.opt.Version, o.opt.Revision, runtime.Version())
	set(g.topology, 1, o.opt.Topology, o.opt.Guarantee)
	set(g.tasksMax, float64(o.opt.TasksMax))

	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range states {
		v := 0.0
		if s == o.life.state {
			v = 1
		}
		set(g.state, v, s)
	}
	g.collectTasks(set)
	g.collectInputs(set)
	for node, d := range delayBySource(o.marks, now) {
		set(g.delay, d.Seconds(), node)
	}
	if !o.commits.at.IsZero() {
		set(g.lastCommit, float64(o.commits.at.UnixMilli())/1000)
	}
	if o.disk >= 0 {
		set(g.disk, float64(o.disk))
	}
}
