package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"millrace/driver"
	"millrace/record"
	"millrace/topology"
)

// What a job computes may not depend on when its epochs are committed, nor on whether the work was cut off and done again.
// Each test is played in all of these ways, and the results are compared here.

// sameAfterInterruptions compares a run with one whose every step was cut off before its commit and done again.
func sameAfterInterruptions(spec *topology.Spec, whole, cut *driver.Driver) []failure {
	for _, name := range outputNames(spec) {
		if w, c, same := sameLines(lines(outputs(whole, name)), lines(outputs(cut, name))); !same {
			return []failure{disagreement(name, "on whether an epoch is cut off and done again: restarts, aborted commits, rebalances", seen{"undisturbed", w}, seen{"cut off", c})}
		}
	}
	for _, s := range spec.Steps {
		for _, what := range []record.Outcome{record.In, record.Out, record.Late, record.LateWindow, record.Filtered, record.Dropped, record.DeadLettered} {
			w, c := count(whole.Tallies(), s.Name.Value, what), count(cut.Tallies(), s.Name.Value, what)
			if w != c {
				return []failure{{Message: fmt.Sprintf("the counts of step %s depend on whether an epoch is cut off and done again: %d and %d records of outcome %d", s.Name.Value, w, c, what)}}
			}
		}
	}
	return nil
}

// sameWhateverEpochs compares a run that commits after every step with one that commits seldom, as far as the job promises
// the same: rows of `emit: changes` come once an epoch, and only the last of a key has to agree.
func sameWhateverEpochs(spec *topology.Spec, partitions int, often, seldom *driver.Driver) []failure {
	p := promises{spec: spec, shuffled: map[string]bool{}}
	for _, r := range often.Plan().Repartitions() {
		p.shuffled[r.Step] = true
	}
	if partitions > 1 && len(p.shuffled) > 0 && (p.late(often) || p.late(seldom) || p.ordered()) {
		return nil // several tasks write to the repartition topic: who comes first is nobody's promise
	}
	for _, name := range outputNames(spec) {
		a, b := outputs(often, name), outputs(seldom, name)
		var x, y []string
		switch p.of(name) {
		case exact:
			x, y = byKey(a), byKey(b)
			if partitions > 1 { // records of one key may come from several tasks
				x, y = anyOrder(a), anyOrder(b)
			}
		case sameSet:
			x, y = anyOrder(a), anyOrder(b)
		case lastOfKey:
			x, y = newest(a), newest(b)
		}
		if w, c, same := sameLines(x, y); !same {
			return []failure{disagreement(name, "on when epochs are committed", seen{"after every step", w}, seen{"at commit steps and in the end", c})}
		}
	}
	return nil
}

const deadLetters = "dead letters"

func outputNames(spec *topology.Spec) []string {
	var names []string
	for _, s := range spec.Sinks {
		names = append(names, s.Name.Value)
	}
	return append(names, deadLetters)
}

func outputs(d *driver.Driver, name string) []driver.Output {
	if name == deadLetters {
		return d.DeadLetters()
	}
	return d.Read(name)
}

// seen is what one way of playing has put out where another has put out something else.
type seen struct{ way, line string }

func disagreement(name, on string, a, b seen) failure {
	return failure{Message: fmt.Sprintf("the results in %s depend %s; this is a bug of Millrace, not of the test", name, on),
		Details: []string{a.way + ": " + a.line, b.way + ": " + b.line}}
}

// sameLines returns the first lines that differ.
func sameLines(a, b []string) (x, y string, same bool) {
	for i := range max(len(a), len(b)) {
		x, y = nothing, nothing
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return x, y, false
		}
	}
	return "", "", true
}

func line(o driver.Output) string {
	text := fmt.Sprintf("partition %d @%d key %s  %s", o.Partition, o.Timestamp, showKey(o.Key), showValue(o.Value))
	for _, h := range o.Headers {
		text += fmt.Sprintf(" %s=%q", h.Key, h.Value)
	}
	return text
}

func lines(outputs []driver.Output) []string {
	var all []string
	for _, o := range outputs {
		all = append(all, line(o))
	}
	return all
}

// byKey lists the records by partition and key, those of one key in their order.
func byKey(outputs []driver.Output) []string {
	outputs = slices.Clone(outputs)
	slices.SortStableFunc(outputs, func(a, b driver.Output) int {
		if a.Partition != b.Partition {
			return int(a.Partition - b.Partition)
		}
		return bytes.Compare(a.Key, b.Key)
	})
	return lines(outputs)
}

func anyOrder(outputs []driver.Output) []string {
	all := lines(outputs)
	slices.Sort(all)
	return all
}

// newest lists the last record of each key and window.
func newest(outputs []driver.Output) []string {
	last := map[string]driver.Output{}
	for _, o := range outputs {
		var bounds struct {
			Start json.RawMessage `json:"window_start"`
		}
		if err := json.Unmarshal(o.Value, &bounds); err != nil {
			bounds.Start = nil // no JSON: its key says it all
		}
		last[fmt.Sprintf("%s\x00%s", o.Key, bounds.Start)] = o
	}
	var all []string
	for _, o := range last {
		all = append(all, line(o))
	}
	slices.Sort(all)
	return all
}

// promise says what of a sink's records must not depend on when epochs are committed.
type promise uint8

const (
	none      promise = iota
	lastOfKey         // of each key and window
	sameSet           // all of them, in any order
	exact             // all of them, in order for each key
)

// promises finds out which steps and sinks promise what.
type promises struct {
	spec     *topology.Spec
	shuffled map[string]bool // steps behind a repartition topic
}

func (p promises) of(sink string) promise {
	found := exact
	lower := func(to promise) { found = min(found, to) }
	writers := 0
	if sink == deadLetters {
		lower(sameSet)
	}
	for i := range p.spec.Steps {
		s := &p.spec.Steps[i]
		switch {
		case sink == deadLetters:
			if !p.steady(s.Name.Value) {
				lower(none) // an expression over its rows may have failed once or twice
			}
		case slices.ContainsFunc(s.To, func(t topology.Text) bool { return t.Value == sink }):
			writers++
			if !p.steady(s.Name.Value) {
				lower(p.changes(s))
			}
		case s.Late != nil && s.Late.To.Value == sink:
			writers++
			lower(sameSet)
			if !p.upstreamSteady(s) {
				lower(none)
			}
		}
	}
	if k := sinkNamed(p.spec, sink); found == exact && (writers > 1 || k != nil && k.Key.Value != "") {
		lower(sameSet) // records of one key may come from several steps, or from several groups
	}
	if found == lastOfKey && writers > 1 {
		lower(none) // which of them wrote a key last is open
	}
	return found
}

// changes is the promise of a step with `emit: changes`.
func (p promises) changes(s *topology.StepSpec) promise {
	folds := slices.ContainsFunc(s.Aggregate, func(n topology.Named) bool { return strings.HasPrefix(n.Expr.Value, "fold") })
	if len(s.Aggregate) == 0 || s.Emit.Value == "final_with_corrections" || !p.upstreamSteady(s) || s.Having.Value != "" || len(s.Select) > 0 || folds {
		return none
	}
	return lastOfKey
}

// steady tells whether the rows of a source or step are the same whenever epochs end.
func (p promises) steady(name string) bool {
	i := slices.IndexFunc(p.spec.Steps, func(s topology.StepSpec) bool { return s.Name.Value == name })
	if i < 0 {
		return true
	}
	s := &p.spec.Steps[i]
	if !p.upstreamSteady(s) {
		return false
	}
	switch {
	case len(s.Aggregate) == 0:
		return true
	case s.Window == nil, s.Emit.Value == "changes":
		return false
	case s.Emit.Value == "final_with_corrections":
		return !p.shuffled[name] // rows that were combined before the repartition are one correction
	}
	return true
}

func (p promises) upstreamSteady(s *topology.StepSpec) bool {
	return !slices.ContainsFunc(s.From, func(t topology.Text) bool { return !p.steady(t.Value) })
}

func (p promises) late(d *driver.Driver) bool {
	return slices.ContainsFunc(d.Tallies(), func(t record.Tally) bool { return t.What == record.Late })
}

// ordered tells whether an aggregate depends on the order of its records.
func (p promises) ordered() bool {
	return slices.ContainsFunc(p.spec.Steps, func(s topology.StepSpec) bool {
		return slices.ContainsFunc(s.Aggregate, func(n topology.Named) bool {
			text := strings.TrimSpace(n.Expr.Value)
			return strings.HasPrefix(text, "fold") || strings.HasPrefix(text, "collect_list")
		})
	})
}
