package topology

import (
	"fmt"
	"slices"
)

func (b *builder) sinks() {
	for i := range b.spec.Sinks {
		s := &b.spec.Sinks[i]
		name := s.Name.Value
		b.choice(s.Format, "format of sink "+name, formats...)
		b.choice(s.TimestampFormat, "timestamp_format of sink "+name, "", "epoch_ms", "rfc3339")
		upsert := b.choice(s.Mode, "mode of sink "+name, "append", "upsert") == 1
		if s.KeyWithWindow && s.Key.Value != "" {
			b.failText(codeCombine, s.Key, fmt.Sprintf("sink %s has key: beside key_with_window, which makes the key itself", name), "remove one of them")
		}
		if format := formatOf(s.Format); s.TimestampFormat.Value != "" && (format == "long" || format == "bytes") {
			b.failText(codeCombine, s.TimestampFormat, fmt.Sprintf("sink %s has timestamp_format, and its format %s writes no text", name, format), "remove timestamp_format")
		}
		if s.Topic.Value == "" {
			b.failText(codeContract, s.Name, fmt.Sprintf("sink %s has no topic", name), "add topic:")
			continue
		}
		b.plan.sinks = append(b.plan.sinks, &sinkPlan{spec: s, topic: b.topic(s.Topic.Value), upsert: upsert})
	}
}

func (b *builder) sink(name Text, where string) *sinkPlan {
	var known []string
	for _, s := range b.plan.sinks {
		if s.spec.Name.Value == name.Value {
			return s
		}
		known = append(known, s.spec.Name.Value)
	}
	if slices.ContainsFunc(b.spec.Sinks, func(s SinkSpec) bool { return s.Name.Value == name.Value }) {
		return nil // it was found wanting already
	}
	b.failText(codeUnknown, name, fmt.Sprintf("%s names sink %q, which does not exist", where, name.Value), nearest(name.Value, known))
	return nil
}

// use connects a stream to a sink.
func (b *builder) use(name Text, out *stream, where string) {
	s := b.sink(name, where)
	if s == nil {
		return
	}
	b.fits(name, s.spec, out, where)
	u := &sinkUse{sink: s, fields: out.fields}
	if s.spec.Key.Value != "" {
		u.key = b.program(s.spec.Key, out, "key of sink "+s.spec.Name.Value)
	}
	for _, h := range s.spec.Headers {
		if p := b.program(h.Expr, out, "headers of sink "+s.spec.Name.Value); p != nil {
			u.headers = append(u.headers, headerUse{[]byte(h.Name.Value), p})
		}
	}
	if s.spec.KeyWithWindow && !out.windowed {
		b.failText(codeCombine, name, fmt.Sprintf("sink %s has key_with_window, but %s has no window", s.spec.Name.Value, where), "remove key_with_window from the sink")
	}
	out.sinks = append(out.sinks, u)
}

// fits checks that a sink's format can hold what a stream gives it.
func (b *builder) fits(at Text, s *SinkSpec, out *stream, where string) {
	sink, format := s.Name.Value, formatOf(s.Format)
	if out.fields == nil {
		b.fitsRecord(at, s, out.raw.spec, where)
		return
	}
	if format != "json" && len(out.fields) != 1 {
		b.failText(codeCombine, at, fmt.Sprintf("sink %s has format %s, which holds one value, and %s gives it %d: %s", sink, format, where, len(out.fields), fieldList(out.fields)),
			"select one field, or use format: json")
		return
	}
	if b.options.Formats == nil || !slices.Contains(formats, format) {
		return
	}
	if _, err := b.options.Formats.Encoder(format, out.fields); err != nil {
		b.failText(codeCombine, at, fmt.Sprintf("sink %s cannot take what %s gives it: %v", sink, where, err), "convert the field in select, or use another format")
	}
}

// fitsRecord checks a sink that records are handed through to as they came: nobody would translate them. The format bytes
// claims nothing about what it holds.
func (b *builder) fitsRecord(at Text, s *SinkSpec, from *SourceSpec, where string) {
	sink, format, came := s.Name.Value, formatOf(s.Format), formatOf(from.Format)
	if format != came && format != "bytes" {
		b.failText(codeCombine, at, fmt.Sprintf("sink %s has format %s, and %s hands it the records of source %s as they came, in %s", sink, format, where, from.Name.Value, came),
			fmt.Sprintf("write format: %s on the sink, or select: the fields", came))
	}
	if t := s.TimestampFormat; t.Value != "" {
		b.failText(codeCombine, t, fmt.Sprintf("sink %s has timestamp_format, and %s hands it the records of source %s as they came", sink, where, from.Name.Value),
			"remove timestamp_format, or select: the fields")
	}
}

// lateSink checks that the sink of late records can take what a step reads. Such a record is written as it came, under its own key.
func (b *builder) lateSink(a *aggregatePlan, ins []*stream) {
	if a.late.to == nil {
		return
	}
	s, at, name := a.late.to.sink.spec, a.step.spec.Late.To, a.step.spec.Name.Value
	unused := Text{}
	switch {
	case s.Key.Value != "":
		unused = Text{Value: "key", Pos: s.Key.Pos}
	case s.KeyWithWindow:
		unused = Text{Value: "key_with_window", Pos: s.Name.Pos}
	case len(s.Headers) > 0:
		unused = Text{Value: "headers", Pos: s.Headers[0].Name.Pos}
	case s.Mode.Value == "upsert":
		unused = Text{Value: "mode", Pos: s.Mode.Pos}
	case s.TimestampFormat.Value != "":
		unused = Text{Value: "timestamp_format", Pos: s.TimestampFormat.Pos}
	}
	if unused.Value != "" {
		b.fail(codeCombine, unused.Pos, 0, fmt.Sprintf("sink %s has %s, and the late records of step %s are written to it as they came", s.Name.Value, unused.Value, name),
			"give late: a sink of its own")
	}
	for _, in := range ins {
		if in.fields == nil {
			b.fitsRecord(at, &SinkSpec{Name: s.Name, Format: s.Format}, in.raw.spec, "late of step "+name)
		} else if format := formatOf(s.Format); format != "json" {
			b.failText(codeCombine, at, fmt.Sprintf("sink %s has format %s, and the late rows of step %s are json", s.Name.Value, format, name), "write format: json on the sink")
		}
	}
}

// formatOf is the format that a source or a sink names; json unless it says otherwise.
func formatOf(t Text) string {
	if t.Value == "" {
		return formats[0]
	}
	return t.Value
}
