package topology

import (
	"fmt"
	"time"
	_ "time/tzdata" // local days must not depend on what the machine has installed

	"millrace/topology/window"
)

func (b *builder) windows(a *aggregatePlan) {
	w := a.step.spec.Window
	if w == nil {
		return
	}
	name := a.step.spec.Name.Value
	before := b.errorCount()
	spec := window.Spec{Size: b.millis(w.Size, "size", name), Advance: b.millis(w.Advance, "advance", name),
		Offset: b.millis(w.Offset, "offset", name), Lateness: b.millis(w.AllowedLateness, "allowed_lateness", name)}
	if w.Type.Value == "" {
		b.fail(codeContract, w.Pos, 0, fmt.Sprintf("window of step %s has no type", name), "add type: tumbling or type: hopping")
	}
	if !w.Size.Set {
		b.fail(codeContract, w.Pos, 0, fmt.Sprintf("window of step %s has no size", name), "add size:, for example 1m")
	} else if spec.Size <= 0 {
		b.fail(codeWindow, w.Size.Pos, 0, fmt.Sprintf("window of step %s has a size of nothing", name), "write size: 1m, for example")
	}
	hopping := b.choice(w.Type, "window type of step "+name, "tumbling", "hopping") == 1
	switch {
	case hopping && !w.Advance.Set:
		b.fail(codeContract, w.Pos, 0, fmt.Sprintf("hopping window of step %s has no advance", name), "add advance:, how far apart the windows start")
	case !hopping && w.Advance.Set:
		b.fail(codeCombine, w.Advance.Pos, 0, fmt.Sprintf("tumbling window of step %s has an advance", name), "write type: hopping for overlapping windows")
	case hopping:
		spec.Kind = window.Hopping
	default:
		spec.Advance = spec.Size
	}
	if w.TimeZone.Value != "" {
		location, err := time.LoadLocation(w.TimeZone.Value)
		if err != nil {
			b.failText(codeWindow, w.TimeZone, fmt.Sprintf("time zone %q of step %s is not known", w.TimeZone.Value, name), "use an IANA name such as Europe/Berlin")
		}
		spec.Location = location
	}
	if b.errorCount() > before {
		return
	}
	if err := spec.Validate(); err != nil {
		b.fail(codeWindow, w.Pos, 0, fmt.Sprintf("step %s: %v", name, err), "")
		return
	}
	a.windows = &spec
}

// millis returns a duration in the milliseconds that event time counts in.
func (b *builder) millis(s Span, what, step string) int64 {
	if s.Value%time.Millisecond != 0 {
		b.fail(codeWindow, s.Pos, 0, fmt.Sprintf("%s of step %s is %s: event time counts whole milliseconds", what, step, s.Value), "round it")
	}
	return s.Value.Milliseconds()
}

// contracts checks what must be written: how late is too late, and how long state is kept.
func (b *builder) contracts(a *aggregatePlan) {
	if a.step.spec.Window == nil {
		b.unwindowed(a)
		return
	}
	s := a.step.spec
	name := s.Name.Value
	if s.TTL.Set || s.TTL.Forever {
		b.fail(codeCombine, s.TTL.Pos, 0, fmt.Sprintf("step %s has a ttl beside a window", name), "remove ttl: a window's rows end with it")
	}
	a.emit = emitMode(b.choice(s.Emit, "emit of step "+name, emitWords...))
	a.revision = a.emit == emitCorrections
	switch {
	case s.Late == nil:
		b.fail(codeContract, s.Window.Pos, 0, fmt.Sprintf("step %s has a window and does not say what late records get", name), "add late: { to: SINK } or late: { policy: drop }")
	case s.Late.To.Value != "" && s.Late.Policy.Value != "":
		b.failText(codeCombine, s.Late.Policy, fmt.Sprintf("late of step %s has both to: and policy:", name), "keep one of them")
	case s.Late.To.Value != "":
		if sink := b.sink(s.Late.To, "late of step "+name); sink != nil {
			a.late.to = &sinkUse{sink: sink}
		}
	case s.Late.Policy.Value == "":
		b.fail(codeContract, s.Late.Pos, 0, fmt.Sprintf("late of step %s says nothing", name), "write late: { to: SINK } or late: { policy: drop }")
	case s.Late.Policy.Value != "drop":
		b.failText(codeChoice, s.Late.Policy, fmt.Sprintf("late policy of step %s is %q", name, s.Late.Policy.Value), "write policy: drop, or to: with a sink")
	}
}

// emitWords are in the order of the emit modes.
var emitWords = []string{"final", "final_with_corrections", "changes"}

// unwindowed checks the contracts of a step whose groups have no end.
func (b *builder) unwindowed(a *aggregatePlan) {
	s := a.step.spec
	name := s.Name.Value
	if s.Late != nil {
		b.fail(codeCombine, s.Late.Pos, 0, fmt.Sprintf("step %s has late: but no window", name), "remove it: without a window nothing is late")
	}
	switch {
	case !s.TTL.Set && !s.TTL.Forever:
		b.failText(codeContract, s.Name, fmt.Sprintf("step %s keeps a row a group and does not say how long", name), "add ttl: 24h, or ttl: forever if the groups are bounded")
	case !s.TTL.Forever:
		a.ttl = b.millis(s.TTL, "ttl", name)
		if a.ttl <= 0 {
			b.fail(codeContract, s.TTL.Pos, 0, fmt.Sprintf("step %s has a ttl of nothing", name), "add ttl: 24h, or ttl: forever if the groups are bounded")
		}
	}
	b.choice(s.Emit, "emit of step "+name+", which has no window,", emitWords[emitChanges])
	a.emit = emitChanges
}
