package config

import (
	"fmt"
	"math"
	"strconv"

	"millrace/topology"
)

// testDecoder reads `tests:`. References are not expanded there: a test must not depend on the machine it runs on.
type testDecoder struct{ found *findings }

// reader gives the test decoder the strict readers of maps and scalars.
func (d testDecoder) reader() expander { return expander{found: d.found} }

func (d testDecoder) tests(n *node) []Test {
	if n.shape != listNode {
		d.reader().wrongShape(n, "tests:", "a list")
		return nil
	}
	var list []Test
	names := make(map[string]bool)
	for _, item := range n.items {
		t := d.test(item)
		if names[t.Name.Value] && t.Name.Value != "" {
			d.found.errorAt(t.Name.Pos, codeTest, fmt.Sprintf("there are two tests named %q", t.Name.Value), "")
		}
		names[t.Name.Value] = true
		list = append(list, t)
	}
	return list
}

func (d testDecoder) test(n *node) Test {
	t := Test{Partitions: 1, Name: topology.Text{Pos: n.pos}}
	x := d.reader()
	if !x.object(n, "a test", "name", "partitions", "input", "expect", "expect_no_output", "expect_dead_letters", "expect_counts") {
		return t
	}
	if t.Name = x.literal(n.get("name"), "name of the test"); t.Name.Value == "" {
		d.found.errorAt(n.pos, codeMissing, "the test has no name", "say in a sentence what it shows")
	}
	what := "the test"
	if t.Name.Value != "" {
		what = fmt.Sprintf("test %q", t.Name.Value)
	}
	if p := n.get("partitions"); p != nil {
		t.Partitions = int(d.whole(p, "partitions of "+what, 1, 1000))
	}
	for _, item := range d.list(n.get("input"), "input of "+what) {
		t.Input = append(t.Input, d.step(item))
	}
	if len(t.Input) == 0 && n.get("input") == nil {
		d.found.errorAt(n.pos, codeMissing, what+" has no input", "")
	}
	if e := n.get("expect"); e != nil {
		t.Expect = d.expect(e, what)
	}
	for _, item := range d.list(n.get("expect_no_output"), "expect_no_output of "+what) {
		t.ExpectNoOutput = append(t.ExpectNoOutput, x.literal(item, "expect_no_output of "+what))
	}
	if dead := n.get("expect_dead_letters"); dead != nil {
		t.DeadLetters = true
		for _, item := range d.list(dead, "expect_dead_letters of "+what) {
			t.ExpectDeadLetters = append(t.ExpectDeadLetters, d.expected(item, true))
		}
	}
	if counts := n.get("expect_counts"); counts != nil {
		t.ExpectCounts = d.counts(counts, what)
	}
	if n.get("expect") == nil && len(t.ExpectNoOutput) == 0 && !t.DeadLetters && len(t.ExpectCounts) == 0 {
		d.found.errorAt(n.pos, codeTest, what+" expects nothing, so it cannot fail", "add expect:, expect_no_output:, expect_dead_letters: or expect_counts:")
	}
	return t
}

func (d testDecoder) list(n *node, what string) []*node {
	if n == nil {
		return nil
	}
	if n.shape != listNode {
		d.reader().wrongShape(n, what, "a list")
		return nil
	}
	return n.items
}

// step reads one item of `input:`: a record, or a map with the one key of another kind.
func (d testDecoder) step(n *node) TestStep {
	s := TestStep{Pos: n.pos, Record: TestRecord{Partition: -1}}
	x := d.reader()
	if n.shape == mapNode && n.get("source") != nil {
		x.object(n, "a record of the input", "source", "key", "value", "raw", "headers", "timestamp", "partition")
		s.Record = TestRecord{Source: x.literal(n.get("source"), "source"), Key: d.datum(n.get("key"), "key"), Value: d.value(n),
			Headers: d.headers(n.get("headers"))}
		s.Record.Timestamp, s.Record.HasTimestamp = x.millis(n.get("timestamp"), "timestamp")
		s.Record.Partition = d.partition(n)
		if !s.Record.Value.Set {
			d.found.errorAt(n.pos, codeMissing, "the record has no value", "write value: null for a tombstone")
		}
		return s
	}
	if !x.object(n, "a step of the input", "source", "advance_wall_clock", "advance_watermark", "restart", "rebalance", "commit") {
		return s
	}
	if len(n.entries) != 1 {
		d.found.errorAt(n.pos, codeTest, "a step is a record with its source:, or one of advance_wall_clock, advance_watermark, restart, rebalance, commit", "")
		return s
	}
	d.event(n.entries[0], &s)
	return s
}

// event reads a step that is no record.
func (d testDecoder) event(e entry, s *TestStep) {
	x := d.reader()
	switch e.key.text {
	case "advance_wall_clock":
		s.Kind = StepAdvanceWallClock
		text := x.literal(e.value, "advance_wall_clock")
		if text.Value == "" {
			return
		}
		value, err := ParseDuration(text.Value)
		if err == nil && value < 0 {
			err = fmt.Errorf("%q is negative; the clock only goes forward", text.Value)
		}
		if err != nil {
			d.found.at(e.value, codeValue, err.Error(), "")
		}
		s.Advance = topology.Span{Value: value, Set: true, Pos: text.Pos}
	case "advance_watermark":
		s.Kind = StepAdvanceWatermark
		if !x.object(e.value, "advance_watermark", "source", "to") {
			return
		}
		s.Source = x.literal(e.value.get("source"), "source")
		to, ok := x.millis(e.value.get("to"), "to")
		if s.Source.Value == "" || (!ok && e.value.get("to") == nil) {
			d.found.at(e.key, codeMissing, "advance_watermark needs source and to", "as in { source: clicks, to: 120000 }")
		}
		s.To = to
	case "restart", "rebalance", "commit":
		s.Kind = map[string]TestStepKind{"restart": StepRestart, "rebalance": StepRebalance, "commit": StepCommit}[e.key.text]
		if e.value.text != "true" {
			d.found.at(e.key, codeValue, e.key.text+" takes true only", "remove the step if it should not happen")
		}
	}
}

// value reads the value of a record: any YAML under `value:`, or the very bytes under `raw:`.
func (d testDecoder) value(n *node) Datum {
	raw := n.get("raw")
	if raw == nil {
		return d.datum(n.get("value"), "value")
	}
	if n.get("value") != nil {
		d.found.errorAt(raw.pos, codeTest, "both value and raw are written", "raw holds the bytes as they are, value is encoded")
	}
	text := d.reader().literal(raw, "raw")
	return Datum{Pos: text.Pos, Set: true, Text: text.Value, JSON: appendJSONString(nil, text.Value), Raw: true}
}

func (d testDecoder) datum(n *node, what string) Datum {
	if n == nil {
		return Datum{}
	}
	text, err := appendJSON(nil, n)
	if err != nil {
		d.found.at(n, codeTest, what+": "+err.Error(), "")
	}
	return Datum{Pos: n.pos, Set: true, Null: n.isNull(), Text: n.text, JSON: text}
}

func (d testDecoder) headers(n *node) []TestHeader {
	if n == nil {
		return nil
	}
	if n.shape != mapNode {
		d.reader().wrongShape(n, "headers", "a map of names")
		return nil
	}
	var list []TestHeader
	for _, e := range n.entries {
		if e.value.shape != scalarNode {
			d.reader().wrongShape(e.value, "header "+e.key.text, "plain text")
			continue
		}
		list = append(list, TestHeader{topology.Text{Value: e.key.text, Pos: e.key.pos}, d.datum(e.value, e.key.text)})
	}
	return list
}

// partition reads a record's partition; -1 stands for none.
func (d testDecoder) partition(n *node) int32 {
	if p := n.get("partition"); p != nil {
		return int32(d.whole(p, "partition", 0, math.MaxInt32))
	}
	return -1
}

func (d testDecoder) whole(n *node, what string, least, top int64) int64 {
	text := d.reader().literal(n, what)
	if text.Value == "" {
		return least
	}
	value, err := strconv.ParseInt(text.Value, 10, 64)
	if err != nil || value < least || value > top {
		d.found.at(n, codeValue, fmt.Sprintf("%s: %q is not a whole number from %d to %d", what, text.Value, least, top), "")
		return least
	}
	return value
}
