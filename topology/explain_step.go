package topology

import (
	"fmt"
	"strings"
	"time"

	"millrace/topology/window"
)

type sourceInWords struct {
	Name             string `json:"name"`
	Topic            string `json:"topic"`
	Format           string `json:"format"`
	Key              string `json:"key,omitempty"` // as declared
	Start            string `json:"start"`
	Time             string `json:"time"` // an expression, or "record"
	MaxOutOfOrder    string `json:"max_out_of_orderness"`
	IdleTimeout      string `json:"idle_timeout,omitempty"`
	AdvanceOnIdle    bool   `json:"advance_on_idle,omitempty"`
	MaxFuture        string `json:"max_future,omitempty"`
	InvalidTimestamp string `json:"invalid_timestamp"`
}

type repartitionWords struct {
	Step     string   `json:"step"`
	Topic    string   `json:"topic"`
	To       int      `json:"to"` // the subtopology that reads it
	Key      []string `json:"key"`
	Where    string   `json:"where,omitempty"` // rows are filtered before they are sent
	Combined bool     `json:"combined"`        // rows of one group and commit travel as one
	Why      string   `json:"why"`
}

type namedInWords struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

type sinkInWords struct {
	Sink   string `json:"sink"`
	Topic  string `json:"topic"`
	Format string `json:"format"`
	Mode   string `json:"mode,omitempty"`
}

type stepInWords struct {
	Name       string         `json:"name"`
	From       []string       `json:"from"`
	Where      string         `json:"where,omitempty"`
	GroupBy    []namedInWords `json:"group_by,omitempty"`
	Window     string         `json:"window,omitempty"`
	Aggregate  []namedInWords `json:"aggregate,omitempty"`
	TTL        string         `json:"ttl,omitempty"`
	Having     string         `json:"having,omitempty"`
	Select     []namedInWords `json:"select,omitempty"`
	Emit       string         `json:"emit,omitempty"`
	When       string         `json:"when,omitempty"` // results are seen
	Late       *sinkInWords   `json:"late,omitempty"`
	LatePolicy string         `json:"late_policy,omitempty"`
	Store      *storeInWords  `json:"store,omitempty"`
	To         []sinkInWords  `json:"to,omitempty"`
}

func (s *sourcePlan) words() sourceInWords {
	w := s.spec.Watermark
	out := sourceInWords{
		Name: s.spec.Name.Value, Topic: s.spec.Topic.Value, Format: formatOf(s.spec.Format), Key: s.spec.Key.Value, Start: "earliest",
		Time: "record", MaxOutOfOrder: ShortDuration(w.MaxOutOfOrderness.Value), AdvanceOnIdle: w.AdvanceOnIdle, InvalidTimestamp: policyWords[s.invalidTimestamp],
	}
	if s.spec.Start.Value != "" {
		out.Start = s.spec.Start.Value
	}
	if s.time != nil {
		out.Time = normal(s.spec.Timestamp.Value)
	}
	if w.IdleTimeout.Set {
		out.IdleTimeout = ShortDuration(w.IdleTimeout.Value)
	}
	if w.MaxFuture.Set {
		out.MaxFuture = ShortDuration(w.MaxFuture.Value)
	}
	return out
}

func (s *shufflePlan) words() repartitionWords {
	return repartitionWords{Step: s.step.spec.Name.Value, Topic: s.topic.name, To: s.sub.Number, Key: groupTexts(s.step.spec),
		Where: normal(s.step.spec.Where.Value), Combined: s.combine, Why: s.reason}
}

func (p *Plan) stepWords(step *stepPlan, o ExplainOptions) stepInWords {
	s := step.spec
	w := stepInWords{Name: s.Name.Value, Where: normal(s.Where.Value), Having: normal(s.Having.Value), Select: namedWords(s.Select), To: sinksOf(step)}
	for _, from := range s.From {
		w.From = append(w.From, from.Value)
	}
	if step.ports[0].ship != nil {
		w.Where = "" // which is applied, and told, before the repartition topic
	}
	a := step.aggregate
	if a == nil {
		return w
	}
	for i, text := range groupTexts(s) {
		w.GroupBy = append(w.GroupBy, namedInWords{a.key.fields[i].Name, text})
	}
	w.Aggregate = namedWords(s.Aggregate)
	w.Emit = emitWords[a.emit]
	w.When = a.when(o.CommitInterval)
	w.Store = p.storeWords(a)
	if a.windows == nil {
		w.TTL = "forever"
		if a.ttl > 0 {
			w.TTL = ShortDuration(millis64(a.ttl))
		}
		return w
	}
	w.Window = windowWords(a.windows)
	if a.late.to != nil {
		late := a.late.to.sink.words()
		w.Late = &late
	} else {
		w.LatePolicy = "drop"
	}
	return w
}

func namedWords(list []Named) []namedInWords {
	var out []namedInWords
	for _, n := range list {
		out = append(out, namedInWords{n.Name.Value, normal(n.Expr.Value)})
	}
	return out
}

// sinksOf lists each sink of a step once: a step that hands several streams through writes all of them to it.
func sinksOf(step *stepPlan) []sinkInWords {
	var out []sinkInWords
	seen := map[*sinkPlan]bool{}
	for _, stream := range step.outs {
		for _, use := range stream.sinks {
			if !seen[use.sink] {
				seen[use.sink] = true
				out = append(out, use.sink.words())
			}
		}
	}
	return out
}

func (s *sinkPlan) words() sinkInWords {
	w := sinkInWords{Sink: s.spec.Name.Value, Topic: s.topic.name, Format: formatOf(s.spec.Format)}
	if s.upsert {
		w.Mode = "upsert"
	}
	return w
}

func windowWords(w *window.Spec) string {
	parts := []string{"tumbling " + ShortDuration(millis64(w.Size))}
	if w.Kind == window.Hopping {
		parts[0] = fmt.Sprintf("hopping %s every %s", ShortDuration(millis64(w.Size)), ShortDuration(millis64(w.Advance)))
	}
	if w.Offset != 0 {
		parts = append(parts, "offset "+ShortDuration(millis64(w.Offset)))
	}
	if w.Location != nil {
		parts = append(parts, "days of "+w.Location.String())
	}
	if w.Lateness > 0 {
		parts = append(parts, "allowed lateness "+ShortDuration(millis64(w.Lateness)))
	}
	return strings.Join(parts, ", ")
}

func millis64(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// when tells how much later than a window's end its result is there, at the earliest: the watermark must have come so
// far, and every topic on the way waits for a commit.
func (a *aggregatePlan) when(commit time.Duration) string {
	if a.emit == emitChanges {
		return "at most once a group and commit"
	}
	behind, hops := int64(0), 1
	for _, port := range a.step.ports {
		ms, n := port.behind()
		behind, hops = max(behind, ms), max(hops, n+1)
	}
	first := millis64(behind) + time.Duration(hops)*commit
	lateness := millis64(a.windows.Lateness)
	if a.emit == emitCorrections {
		return fmt.Sprintf("%s after a window's end, and corrections until %s after it", ShortDuration(first), ShortDuration(first+lateness))
	}
	return fmt.Sprintf("%s after a window's end", ShortDuration(first+lateness))
}

// behind is how far event time at a port is behind the newest record of the sources, in ms, and how many commits its rows
// have waited for.
func (p *portPlan) behind() (ms int64, hops int) {
	if from := p.in.from; from == nil {
		ms = p.in.raw.spec.Watermark.MaxOutOfOrderness.Value.Milliseconds()
	} else {
		for _, port := range from.ports {
			m, n := port.behind()
			ms, hops = max(ms, m), max(hops, n)
		}
		if a := from.aggregate; a != nil && a.windows != nil {
			ms += a.windows.Lateness + a.windows.Size
		}
	}
	if p.ship != nil {
		hops++
	}
	return ms, hops
}
