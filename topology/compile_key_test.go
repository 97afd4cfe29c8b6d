package topology

import (
	"testing"

	"millrace/record"
)

// TestWhoseKeysAreVerified compiles steps that need no repartition: what was said or learnt about a topic's key may be
// false, and each record is checked for it; a key that a step has made itself is right.
func TestWhoseKeysAreVerified(t *testing.T) {
	text := func(s string) Text { return Text{Value: s} }
	named := func(name, expr string) []Named { return []Named{{Name: text(name), Expr: text(expr)}} }
	source := func(name, key string) SourceSpec {
		return SourceSpec{Name: text(name), Topic: text(name), Key: text(key), Fields: []FieldSpec{{Name: text("user"), Type: record.Type{Kind: record.String}}}}
	}
	group := func(name, by string, from ...Text) StepSpec {
		return StepSpec{Name: text(name), From: from, GroupBy: named("user", by), Aggregate: named("n", "count()"), TTL: Span{Set: true, Forever: true}, To: []Text{text("out")}}
	}
	rename := StepSpec{Name: text("renamed"), From: []Text{text("counted"), text("said")}, Select: named("user", "value.user")}
	spec := &Spec{
		ApplicationID: "app", Sources: []SourceSpec{source("said", "value.user"), source("silent", "")}, Sinks: []SinkSpec{{Name: text("out"), Topic: text("out")}},
		Steps: []StepSpec{group("counted", "value.user", text("said")), group("learnt", "value.user", text("silent")), group("itself", "key", text("silent")),
			group("again", "value.user", text("counted")), rename, group("mixed", "value.user", text("renamed"))},
	}
	plan, found := Compile(spec, Options{Keyed: map[string]bool{"learnt": true}})
	if plan == nil {
		t.Fatal(found)
	}
	want := map[string]bool{"counted": true, "learnt": true, "itself": false, "again": false, "mixed": true}
	for _, s := range plan.steps {
		if s.aggregate == nil {
			continue
		}
		name := s.spec.Name.Value
		if p := s.ports[0]; p.ship != nil || !p.keyed || p.verify != want[name] {
			t.Errorf("step %s: repartitions %v, keyed %v, verified %v; want verified %v", name, p.ship != nil, p.keyed, p.verify, want[name])
		}
	}
}
