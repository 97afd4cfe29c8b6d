package topology

import (
	"fmt"
	"strings"
)

// page writes an explanation for people: one fact a line, under a heading each.
type page struct{ strings.Builder }

// head starts a block.
func (p *page) head(format string, args ...any) { fmt.Fprintf(p, "  "+format+"\n", args...) }

// line writes a fact, unless there is none.
func (p *page) line(name, text string) {
	if text != "" {
		fmt.Fprintf(p, "    %-12s %s\n", name, text)
	}
}

func (e *explanation) text() string {
	p := &page{}
	fmt.Fprintf(p, "application %s   topology %s   %s   commit every %s\n", e.Application, e.Topology, e.Guarantee, e.CommitInterval)
	for i := range e.Subtopologies {
		s := &e.Subtopologies[i]
		fmt.Fprintf(p, "\nsubtopology %d: a task for each partition of %s\n", s.Number, strings.Join(s.Inputs, ", "))
		for j := range s.Sources {
			s.Sources[j].write(p)
		}
		for j := range s.Steps {
			s.Steps[j].write(p)
		}
		for j := range s.Repartitions {
			s.Repartitions[j].write(p)
		}
	}
	p.WriteByte('\n')
	for _, u := range e.Undecided {
		fmt.Fprintf(p, "undecided     step %s: the first start looks whether the records of %s are keyed by %s; if they are, it does not repartition\n", u.Step, u.Topic, u.Expression)
	}
	fmt.Fprintf(p, "bad records   deserialization %s, processing %s, production %s", e.Errors.Deserialization, e.Errors.Processing, e.Errors.Production)
	if e.DeadLetterTopic != "" {
		fmt.Fprintf(p, "; dead letters to %s", e.DeadLetterTopic)
	}
	fmt.Fprintf(p, "\nexpressions   %d native, %d interpreted\n", e.Expressions.Native, e.Expressions.Interpreted)
	for _, slow := range e.Expressions.Slow {
		fmt.Fprintf(p, "              interpreted: %s in %s\n", slow.Expression, slow.Where)
	}
	return p.String()
}

func (s *sourceInWords) write(p *page) {
	p.head("source %s", s.Name)
	key := "key not declared"
	if s.Key != "" {
		key = "keyed by " + s.Key
	}
	p.line("topic", fmt.Sprintf("%s, %s, %s, from the %s record", s.Topic, s.Format, key, s.Start))
	at := s.Time
	if at == "record" {
		at = "the record's own"
	}
	p.line("time", at+"; without a usable one: "+s.InvalidTimestamp)
	idle := "a silent partition holds it back for ever"
	if s.IdleTimeout != "" {
		idle = "a partition silent for " + s.IdleTimeout + " no longer holds it back"
	}
	if s.AdvanceOnIdle {
		idle += "; the wall clock moves it when all are silent"
	}
	if s.MaxFuture != "" {
		idle += "; times more than " + s.MaxFuture + " ahead are refused"
	}
	p.line("watermark", fmt.Sprintf("%s behind the newest time; %s", s.MaxOutOfOrder, idle))
}

func (r *repartitionWords) write(p *page) {
	p.head("repartition for %s, to subtopology %d", r.Step, r.To)
	p.line("topic", r.Topic)
	p.line("where", r.Where)
	p.line("key", strings.Join(r.Key, ", "))
	p.line("why", r.Why)
	if r.Combined {
		p.line("rows", "combined by group before they are sent")
	} else {
		p.line("rows", "sent one by one")
	}
}

func (s *stepInWords) write(p *page) {
	p.head("step %s", s.Name)
	p.line("from", strings.Join(s.From, ", "))
	p.line("where", s.Where)
	p.line("group_by", joinNamed(s.GroupBy))
	p.line("window", s.Window)
	p.line("aggregate", joinNamed(s.Aggregate))
	p.line("ttl", s.TTL)
	p.line("having", s.Having)
	p.line("select", joinNamed(s.Select))
	if s.Emit != "" {
		p.line("emit", s.Emit+": "+s.When)
	}
	p.line("late", s.LatePolicy)
	if s.Late != nil {
		p.line("late", "to "+s.Late.String())
	}
	if s.Store != nil {
		s.Store.write(p)
	}
	for _, to := range s.To {
		p.line("to", to.String())
	}
}

func (s *storeInWords) write(p *page) {
	size := fmt.Sprintf("about %s a %s: key %s, state %s", bytesText(s.KeyBytes+s.StateBytes), s.Rows, bytesText(s.KeyBytes), bytesText(s.StateBytes))
	if s.FullBytes > s.StateBytes {
		size += ", which may grow to " + bytesText(s.FullBytes)
	}
	p.line("store", size)
	p.line("changelog", s.Changelog+", compacted")
}

func (s sinkInWords) String() string {
	text := fmt.Sprintf("%s (%s, %s", s.Sink, s.Topic, s.Format)
	if s.Mode != "" {
		text += ", " + s.Mode
	}
	return text + ")"
}

func joinNamed(list []namedInWords) string {
	var parts []string
	for _, n := range list {
		parts = append(parts, n.Name+" = "+n.Expression)
	}
	return strings.Join(parts, ", ")
}

func bytesText(n int) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// aclText lists the permissions in columns.
func (e *explanation) aclText() string {
	var out strings.Builder
	for _, a := range e.ACLs {
		operations := strings.Join(a.Operations, ", ")
		if a.Before != "" {
			operations += " (brokers before Kafka " + a.Before + " only)"
		}
		fmt.Fprintf(&out, "%-16s %-8s %-40s %s\n", a.Resource, a.Pattern, a.Name, operations)
	}
	return out.String()
}
