package config

import (
	"fmt"
	"strings"

	"millrace/record"
	"millrace/topology"
)

func (d decoder) topology(n *node) topology.Spec {
	var spec topology.Spec
	if !d.object(n, "topology", "sources", "steps", "sinks") {
		return spec
	}
	d.members(n.get("sources"), "sources", func(name topology.Text, n *node) { spec.Sources = append(spec.Sources, d.source(name, n)) })
	d.members(n.get("steps"), "steps", func(name topology.Text, n *node) { spec.Steps = append(spec.Steps, d.step(name, n)) })
	d.members(n.get("sinks"), "sinks", func(name topology.Text, n *node) { spec.Sinks = append(spec.Sinks, d.sink(name, n)) })
	return spec
}

func (d decoder) source(name topology.Text, n *node) topology.SourceSpec {
	what := "source " + name.Value
	s := topology.SourceSpec{Name: name}
	if !d.object(n, what, "topic", "format", "key_format", "key", "fields", "timestamp", "start", "watermark", "invalid_timestamp") {
		return s
	}
	s.Topic = d.topic(n, what)
	s.Format = d.word(n, "format", what)
	s.KeyFormat = d.word(n, "key_format", what)
	s.Key = d.expression(n, "key", what)
	s.Timestamp = d.expression(n, "timestamp", what)
	s.Start = d.word(n, "start", what)
	s.InvalidTimestamp = d.word(n, "invalid_timestamp", what)
	if f := n.get("fields"); f != nil {
		s.Fields = d.fields(f, what)
	}
	if w := n.get("watermark"); w != nil && d.object(w, "watermark of "+what, "max_out_of_orderness", "idle_timeout", "max_future", "advance_on_idle") {
		what := "the watermark of " + what
		s.Watermark = topology.WatermarkSpec{
			MaxOutOfOrderness: d.span(w, "max_out_of_orderness", what),
			IdleTimeout:       d.span(w, "idle_timeout", what),
			MaxFuture:         d.span(w, "max_future", what),
			AdvanceOnIdle:     d.flag(w, "advance_on_idle", what),
		}
	}
	return s
}

func (d decoder) step(name topology.Text, n *node) topology.StepSpec {
	what := "step " + name.Value
	s := topology.StepSpec{Name: name}
	if !d.object(n, what, "from", "where", "group_by", "window", "aggregate", "ttl", "having", "select", "emit", "late", "to") {
		return s
	}
	s.From = d.texts(n.get("from"), "from of "+what, d.text)
	s.Where = d.expression(n, "where", what)
	s.GroupBy = d.named(n.get("group_by"), "group_by of "+what)
	s.TTL = d.span(n, "ttl", what)
	s.Having = d.expression(n, "having", what)
	s.Emit = d.word(n, "emit", what)
	s.To = d.texts(n.get("to"), "to of "+what, d.text)
	if w := n.get("window"); w != nil {
		s.Window = d.window(w, what)
	}
	if a := n.get("aggregate"); a != nil {
		if a.shape == mapNode {
			s.Aggregate = d.named(a, "aggregate of "+what)
		} else {
			d.wrongShape(a, "aggregate of "+what, "a map of names")
		}
	}
	if l := n.get("late"); l != nil {
		s.Late = d.late(l, what)
	}
	d.selection(n.get("select"), what, &s)
	return s
}

// selection reads `select:`, which is "*" or expressions with names.
func (d decoder) selection(n *node, what string, s *topology.StepSpec) {
	if n == nil {
		return
	}
	if n.shape == scalarNode && n.raw == "*" {
		s.SelectAll = true
		return
	}
	s.Select = d.named(n, "select of "+what)
	for _, item := range s.Select {
		if item.Name.Value == "" && item.Expr.Value != "" {
			d.found.errorAt(item.Expr.Pos, codeShape, fmt.Sprintf("the expression in select of %s has no name", what), "write it as a map: select: { name: expression }")
		}
	}
}

func (d decoder) window(n *node, what string) *topology.WindowSpec {
	what = "the window of " + what
	w := &topology.WindowSpec{Pos: n.pos}
	if d.object(n, what, "type", "size", "advance", "offset", "time_zone", "allowed_lateness") {
		w.Type = d.word(n, "type", what)
		w.Size = d.span(n, "size", what)
		w.Advance = d.span(n, "advance", what)
		w.Offset = d.span(n, "offset", what)
		w.TimeZone = d.word(n, "time_zone", what)
		w.AllowedLateness = d.span(n, "allowed_lateness", what)
	}
	return w
}

func (d decoder) late(n *node, what string) *topology.LateSpec {
	what = "late of " + what
	late := &topology.LateSpec{Pos: n.pos}
	if n.shape == scalarNode && !n.isNull() {
		d.found.at(n, codeShape, what+" is a map, not a plain value", "write late: { to: SINK } or late: { policy: drop }")
		return late
	}
	if d.object(n, what, "to", "policy") {
		late.To = d.word(n, "to", what)
		late.Policy = d.word(n, "policy", what)
	}
	return late
}

func (d decoder) sink(name topology.Text, n *node) topology.SinkSpec {
	what := "sink " + name.Value
	s := topology.SinkSpec{Name: name}
	if !d.object(n, what, "topic", "format", "key", "key_with_window", "mode", "headers", "timestamp_format") {
		return s
	}
	s.Topic = d.topic(n, what)
	s.Format = d.word(n, "format", what)
	s.Key = d.expression(n, "key", what)
	s.KeyWithWindow = d.flag(n, "key_with_window", what)
	s.Mode = d.word(n, "mode", what)
	s.TimestampFormat = d.word(n, "timestamp_format", what)
	if h := n.get("headers"); h != nil {
		if h.shape == mapNode {
			s.Headers = d.named(h, "headers of "+what)
		} else {
			d.wrongShape(h, "headers of "+what, "a map of names")
		}
	}
	return s
}

// fieldTypes are Avro's words, so that they match a schema registry's.
var fieldTypes = map[string]record.Type{
	"string": {Kind: record.String}, "long": {Kind: record.Long}, "double": {Kind: record.Double},
	"decimal": {Kind: record.Decimal}, "boolean": {Kind: record.Bool}, "bytes": {Kind: record.Bytes},
	"timestamp": {Kind: record.Time, Form: record.RFC3339}, "timestamp_ms": {Kind: record.Time, Form: record.EpochMillis},
	"list": {Kind: record.List}, "map": {Kind: record.Map}, "any": {Any: true},
}

var typeWords = []string{"string", "long", "double", "decimal", "boolean", "bytes", "timestamp", "timestamp_ms", "list", "map", "any"}

// otherWords are what people write who come from another language.
var otherWords = map[string]string{
	"int": "long", "integer": "long", "int32": "long", "int64": "long", "bigint": "long", "float": "double", "float64": "double", "number": "double",
	"bool": "boolean", "text": "string", "varchar": "string", "str": "string", "datetime": "timestamp", "date": "timestamp",
	"array": "list", "object": "map", "struct": "map", "json": "any",
}

func (d decoder) fields(n *node, what string) []topology.FieldSpec {
	if n.shape != mapNode {
		d.wrongShape(n, "fields of "+what, "a map of field names and types")
		return nil
	}
	var list []topology.FieldSpec
	for _, e := range n.entries {
		t := d.text(e.value, "the type of field "+e.key.text)
		if t.Value == "" {
			continue
		}
		list = append(list, topology.FieldSpec{Name: topology.Text{Value: e.key.text, Pos: e.key.pos}, Type: d.fieldType(e.value, t.Value)})
	}
	return list
}

// fieldType reads a type. An unknown one counts as any, so that expressions on the field bring no further errors.
func (d decoder) fieldType(n *node, text string) record.Type {
	base, nullable := strings.CutSuffix(strings.ReplaceAll(text, " ", ""), "|null")
	t, ok := fieldTypes[base]
	if !ok {
		hint := didYouMean(base, typeWords)
		if word := otherWords[strings.ToLower(base)]; word != "" {
			hint = fmt.Sprintf("did you mean %q?", word)
		}
		if optional, isOptional := strings.CutSuffix(base, "?"); isOptional {
			hint = fmt.Sprintf("did you mean %q?", optional+"|null")
		}
		d.found.at(n, codeFieldType, fmt.Sprintf("unknown type %q", text), hint)
		t = record.Type{Any: true}
	}
	t.Nullable = nullable
	return t
}
