package config

import (
	"fmt"
	"math"
	"slices"

	"millrace/topology"
)

// expect reads `expect:`, a list of records a sink.
func (d testDecoder) expect(n *node, what string) []SinkExpectation {
	if n.shape != mapNode {
		d.reader().wrongShape(n, "expect of "+what, "a map of sinks")
		return nil
	}
	var list []SinkExpectation
	for _, e := range n.entries {
		sink := SinkExpectation{Sink: topology.Text{Value: e.key.text, Pos: e.key.pos}}
		for _, item := range d.list(e.value, "what sink "+e.key.text+" must hold") {
			sink.Records = append(sink.Records, d.expected(item, false))
		}
		list = append(list, sink)
	}
	return list
}

// expected reads one record that must come out. A dead letter also says where it came from and why.
func (d testDecoder) expected(n *node, deadLetter bool) ExpectedRecord {
	r := ExpectedRecord{Pos: n.pos, Partition: -1}
	x := d.reader()
	known := []string{"key", "value", "raw", "match", "tombstone", "headers", "timestamp", "partition"}
	if deadLetter {
		known = append(known, "source", "reason")
	}
	if !x.object(n, "an expected record", known...) {
		return r
	}
	r.Key, r.Value, r.Headers = d.datum(n.get("key"), "key"), d.value(n), d.headers(n.get("headers"))
	r.Timestamp, r.HasTimestamp = x.millis(n.get("timestamp"), "timestamp")
	r.Partition = d.partition(n)
	if deadLetter {
		r.Source = x.literal(n.get("source"), "source")
		r.Reason = x.literal(n.get("reason"), "reason")
		reasons := []string{"deserialization", "processing", "production", "timestamp"}
		if r.Reason.Value != "" && !slices.Contains(reasons, r.Reason.Value) {
			d.found.at(n.get("reason"), codeWord, fmt.Sprintf("%q is not a reason", r.Reason.Value), didYouMean(r.Reason.Value, reasons))
		}
	}
	if m := n.get("match"); m != nil {
		switch word := x.literal(m, "match"); word.Value {
		case "subset":
			r.Subset = true
		case "exact":
		default:
			d.found.at(m, codeWord, fmt.Sprintf("%q is neither exact nor subset", word.Value), "")
		}
	}
	if tombstone := n.get("tombstone"); tombstone != nil {
		if r.Tombstone = tombstone.text == "true"; !r.Tombstone {
			d.found.at(tombstone, codeValue, "tombstone takes true only", "remove the key if the record has a value")
		}
	}
	if r.Value.Null {
		r.Tombstone = true
	}
	switch {
	case r.Tombstone && r.Value.Set && !r.Value.Null:
		d.found.errorAt(n.pos, codeTest, "a tombstone has no value", "")
	case !r.Tombstone && !r.Value.Set && !r.Key.Set && !deadLetter:
		d.found.errorAt(n.pos, codeTest, "the expected record has neither key nor value", "")
	}
	return r
}

// counts reads `expect_counts:`, a map of places to maps of outcomes.
func (d testDecoder) counts(n *node, what string) []CountExpectation {
	if n.shape != mapNode {
		d.reader().wrongShape(n, "expect_counts of "+what, "a map of sources, steps and sinks")
		return nil
	}
	var list []CountExpectation
	for _, place := range n.entries {
		if place.value.shape != mapNode {
			d.reader().wrongShape(place.value, "expect_counts of "+place.key.text, "a map of outcomes")
			continue
		}
		for _, e := range place.value.entries {
			outcome, ok := outcomeWords[e.key.text]
			if !ok {
				d.found.at(e.key, codeWord, fmt.Sprintf("%q is not an outcome", e.key.text), didYouMean(e.key.text, outcomeOrder))
				continue
			}
			list = append(list, CountExpectation{
				Where: topology.Text{Value: place.key.text, Pos: place.key.pos}, Outcome: outcome,
				Pos: e.value.pos, N: d.whole(e.value, e.key.text, 0, math.MaxInt64),
			})
		}
	}
	return list
}
