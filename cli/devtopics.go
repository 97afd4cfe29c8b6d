package cli

import (
	"fmt"
	"slices"
	"strings"

	"millrace/config"
	"millrace/topology"
)

// topicWidth is the partitions of the topics that dev creates for sources and sinks: enough to see that keys are spread.
// Late records and dead letters are read by people, in one place.
const topicWidth = 4

// devTopic is a topic of the job, as dev creates it.
type devTopic struct {
	name       string
	partitions int32
	from       string // the source's, sink's name, or dead_letter
	output     bool
}

// devTopics lists the job's topics, each once, sources first.
func devTopics(spec topology.Spec) []devTopic {
	var list []devTopic
	add := func(t devTopic) {
		if t.name != "" && !slices.ContainsFunc(list, func(o devTopic) bool { return o.name == t.name && o.output == t.output }) {
			list = append(list, t)
		}
	}
	for _, s := range spec.Sources {
		add(devTopic{name: s.Topic.Value, partitions: topicWidth, from: s.Name.Value})
	}
	for _, s := range spec.Sinks {
		t := devTopic{name: s.Topic.Value, partitions: topicWidth, from: s.Name.Value, output: true}
		if onlyLate(spec, s.Name.Value) {
			t.partitions = 1
		}
		add(t)
	}
	add(devTopic{name: spec.Errors.DeadLetterTopic.Value, partitions: 1, from: "dead_letter", output: true})
	return list
}

// onlyLate tells whether nothing but late records goes to a sink.
func onlyLate(spec topology.Spec, sink string) bool {
	late := false
	for _, step := range spec.Steps {
		if slices.ContainsFunc(step.To, func(to topology.Text) bool { return to.Value == sink }) {
			return false
		}
		late = late || step.Late != nil && step.Late.To.Value == sink
	}
	return late
}

// createTopics creates those topics of the job that do not exist, and names them. One that exists is left as it is.
func (d *dev) createTopics(spec topology.Spec) (created []string, err error) {
	for _, t := range devTopics(spec) {
		if d.broker.EndOffset(t.name, 0) >= 0 {
			continue
		}
		if err := d.broker.CreateTopic(t.name, t.partitions, nil); err != nil {
			return created, err
		}
		created = append(created, fmt.Sprintf("%s(%d)", t.name, t.partitions))
	}
	return created, nil
}

// banner says where everything is, with lines to paste.
func (d *dev) banner(job *config.Config, created []string) {
	d.results.note("millrace dev  (data in " + d.opts.dataDir + ", remove it to start over)")
	line := func(name, text string) { d.results.note(fmt.Sprintf("  %-10s %s", name, text)) }
	addr := d.broker.Addr()
	line("kafka", addr)
	for _, t := range devTopics(job.Spec) {
		if t.output {
			line("", "rpk topic consume "+t.name+" -X brokers="+addr)
			line("", "kcat -C -b "+addr+" -t "+t.name+" -X isolation.level=read_committed")
			break // the others are read likewise
		}
	}
	if listen := job.Settings.HTTP.Listen; listen != "" && !strings.HasSuffix(listen, ":0") {
		line("page", "http://"+listen+"/")
	}
	text := "all there since an earlier start"
	if len(created) > 0 {
		text = strings.Join(created, " ") + "  created"
	}
	line("topics", text)
	line("tests", d.test(job))
	if loads, err := d.loads(job.Spec); err == nil && len(loads) > 0 {
		for _, l := range loads {
			line("generated", describeLoad(l))
		}
		if d.opts.history > 0 {
			line("", fmt.Sprintf("a source without records begins with %s of history, so that windows close at once (--history 0: without)", d.opts.history))
		}
	}
	if d.opts.lines > 0 {
		line("results", fmt.Sprintf("at most %d a second and sink are shown (--lines 0: all)", d.opts.lines))
	}
	if d.opts.watch {
		line("watching", strings.Join(job.Files, " "))
	}
}

// test runs the job's tests once. A failure is told and stops nothing: the screen shows what the job does with live data.
func (d *dev) test(job *config.Config) string {
	suites, err := d.app.jobSuites(job.Files)
	if err != nil {
		return "not run: " + err.Error()
	}
	var all []suiteResult
	for _, s := range suites {
		if len(s.tests) > 0 {
			all = append(all, s.run())
		}
	}
	tests, failed, _ := total(all)
	switch {
	case tests == 0:
		return "the job has none"
	case failed == 0:
		return fmt.Sprintf("%d passed", tests)
	}
	return fmt.Sprintf("%d passed, %d FAILED: millrace test says why", tests-failed, failed)
}
