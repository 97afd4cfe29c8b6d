package cli

import (
	"fmt"
	"slices"

	"millrace/config"
	"millrace/driver"
	"millrace/record"
	"millrace/topology"
)

// verify compares what a played test has put out with everything that it expects.
func verify(job *config.Config, t *config.Test, d *driver.Driver) []failure {
	var failures []failure
	topics := map[string]string{}
	for _, s := range job.Spec.Sources {
		topics[s.Name.Value] = s.Topic.Value
	}
	for _, e := range t.Expect {
		c := topicCheck{name: e.Sink.Value, format: sinkNamed(&job.Spec, e.Sink.Value).Format.Value}
		failures = append(failures, c.match(e.Records, d.Read(e.Sink.Value))...)
	}
	for _, sink := range t.ExpectNoOutput {
		c := topicCheck{name: sink.Value}
		for _, f := range c.match(nil, d.Read(sink.Value)) {
			f.Pos = sink.Pos.String()
			failures = append(failures, f)
		}
	}
	if t.DeadLetters {
		c := topicCheck{name: deadLetters, format: anyFormat, topics: topics}
		failures = append(failures, c.match(t.ExpectDeadLetters, d.DeadLetters())...)
	}
	for _, c := range t.ExpectCounts {
		if got := count(d.Tallies(), c.Where.Value, c.Outcome); got != c.N {
			failures = append(failures, failure{Pos: c.Pos.String(), Message: fmt.Sprintf("count at %s: want %d, got %d", c.Where.Value, c.N, got)})
		}
	}
	if len(failures) > 0 && !t.DeadLetters {
		failures[0].Details = append(failures[0].Details, deadLetterHint(d.DeadLetters())...)
	}
	for i := range failures {
		if failures[i].Pos == "" {
			failures[i].Pos = t.Name.Pos.String()
		}
	}
	return failures
}

// deadLetterHint tells of dead letters that a failing test does not speak of: most often they are why it fails.
func deadLetterHint(letters []driver.Output) []string {
	var lines []string
	for _, o := range letters[:min(len(letters), 3)] {
		reason, _ := header(o.Headers, headerReason)
		message, _ := header(o.Headers, headerError)
		lines = append(lines, fmt.Sprintf("a record went to the dead letters: %s: %s", reason, message))
	}
	return lines
}

func count(tallies []record.Tally, where string, what record.Outcome) int64 {
	n := int64(0)
	for _, t := range tallies {
		if t.Where == where && t.What == what {
			n += t.N
		}
	}
	return n
}

func sinkNamed(spec *topology.Spec, name string) *topology.SinkSpec {
	for i := range spec.Sinks {
		if spec.Sinks[i].Name.Value == name {
			return &spec.Sinks[i]
		}
	}
	return nil
}

// mistakes are what makes a test useless whatever the job does: names that the job does not have.
func mistakes(spec *topology.Spec, t *config.Test) []failure {
	var found []failure
	fail := func(pos topology.Pos, format string, args ...any) {
		found = append(found, failure{Pos: pos.String(), Message: fmt.Sprintf(format, args...)})
	}
	source := func(name topology.Text) {
		if sourceNamed(spec, name.Value) == nil {
			fail(name.Pos, "the job has no source %q", name.Value)
		}
	}
	sink := func(name topology.Text) {
		if sinkNamed(spec, name.Value) == nil {
			fail(name.Pos, "the job has no sink %q", name.Value)
		}
	}
	for _, s := range t.Input {
		switch s.Kind {
		case config.StepRecord:
			source(s.Record.Source)
			if int(s.Record.Partition) >= t.Partitions {
				fail(s.Pos, "partition %d: the test has %s, numbered from 0; write partitions: on the test", s.Record.Partition, plural(t.Partitions, "partition"))
			}
		case config.StepAdvanceWatermark:
			source(s.Source)
		}
	}
	for _, e := range t.Expect {
		sink(e.Sink)
	}
	for _, name := range t.ExpectNoOutput {
		sink(name)
	}
	for _, e := range t.ExpectDeadLetters {
		if e.Source.Value != "" {
			source(e.Source)
		}
	}
	if t.DeadLetters && spec.Errors.DeadLetterTopic.Value == "" {
		fail(t.Name.Pos, "expect_dead_letters: the job has no errors.dead_letter_topic")
	}
	for _, c := range t.ExpectCounts {
		if !counted(spec, c.Where.Value) {
			fail(c.Where.Pos, "the job has no source, step or sink %q to count at", c.Where.Value)
		}
	}
	return found
}

func counted(spec *topology.Spec, name string) bool {
	step := slices.ContainsFunc(spec.Steps, func(s topology.StepSpec) bool { return s.Name.Value == name })
	return step || name == "dead_letter" || sourceNamed(spec, name) != nil || sinkNamed(spec, name) != nil
}
