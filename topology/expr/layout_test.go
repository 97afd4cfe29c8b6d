package expr

import (
	"errors"
	"testing"

	"millrace/record"
)

func TestSourceLayoutAllotsOnDemand(t *testing.T) {
	l := NewSourceLayout(fields, false)
	if len(l.Paths()) != 0 {
		t.Fatalf("slots before anything was asked for: %v", l.Paths())
	}
	for i, path := range [][]string{{"cost"}, {"device", "os"}, {"cost"}, {"ad_id"}} {
		slot, _, err := l.Slot(path)
		if want := []int{0, 1, 0, 2}[i]; err != nil || slot != want {
			t.Errorf("slot of %v = %d, %v; want %d", path, slot, err, want)
		}
	}
	if got := l.Paths(); len(got) != 3 || got[1].Segments[1] != "os" || !got[1].Type.Any || got[2].Type.Kind != record.String {
		t.Errorf("paths %v", got)
	}
	var problem *Error
	if _, _, err := l.Slot([]string{"coost"}); !errors.As(err, &problem) || problem.Hint != `did you mean "cost"?` {
		t.Errorf("unknown field: %v", err)
	}
	if _, _, err := l.Slot([]string{"zzzzzz"}); err == nil || len(l.Paths()) != 3 {
		t.Errorf("an unknown field got a slot: %v", l.Paths())
	}
}

func TestOpenLayout(t *testing.T) {
	s := Scope{Value: NewSourceLayout(nil, true)}
	p, err := Compile(`value.a.b > 1 && value.c == "x"`, s)
	if err != nil || !p.Native() || len(s.Value.Paths()) != 2 {
		t.Fatalf("%v, paths %v", err, s.Value.Paths())
	}
	row := &record.Row{Fields: []record.Value{record.DoubleValue(1.5), record.StringValue([]byte("x"))}}
	if ok, err := p.BindBool()(row); err != nil || !ok {
		t.Errorf("got %v, %v", ok, err)
	}
}

func TestDottedNames(t *testing.T) {
	l := NewSourceLayout([]record.Field{{Name: "device.os", Type: record.Type{Kind: record.String}}}, false)
	if _, typ, err := l.Slot([]string{"device", "os"}); err != nil || typ.Kind != record.String {
		t.Errorf("device.os: %v, %v", typ, err)
	}
	if _, typ, err := l.Slot([]string{"device"}); err != nil || typ.Kind != record.Map {
		t.Errorf("device: %v, %v", typ, err)
	}
	if _, _, err := l.Slot([]string{"device", "so"}); err == nil {
		t.Error("device.so is taken")
	}
}

// The formats string, long and bytes have one field, which is the value itself.
func TestSingleValue(t *testing.T) {
	s := Scope{Value: NewSourceLayout([]record.Field{{Name: "value", Type: record.Type{Kind: record.Long}}}, false)}
	for _, src := range []string{`value + 1`, `value.value + 1`} {
		p, err := Compile(src, s)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := p.Bind()(&record.Row{Fields: []record.Value{record.LongValue(4)}}); err != nil || show(v) != "long 5" {
			t.Errorf("%s = %s, %v", src, show(v), err)
		}
	}
	if n := len(s.Value.Paths()); n != 1 {
		t.Errorf("%d slots for one value", n)
	}
}

func TestRowLayout(t *testing.T) {
	rowFields := []record.Field{
		{Name: "ad_id", Type: record.Type{Kind: record.String}}, {Name: "clicks", Type: record.Type{Kind: record.Long}},
		{Name: "last", Type: record.Type{Kind: record.Map}},
	}
	s := Scope{Value: NewRowLayout(rowFields)}
	row := &record.Row{Fields: []record.Value{
		record.StringValue([]byte("a")), record.LongValue(3), {Kind: record.Map, Raw: []byte(`{"os":{"v":7}}`)},
	}}
	for src, want := range map[string]string{
		`value.clicks`: "long 3", `value.last.os.v + value.clicks`: "long 10", `value.last.gone.v`: "null", `value.last.os`: `map {"v":7}`,
	} {
		p, err := Compile(src, s)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if v, err := p.Bind()(row); err != nil || show(v) != want {
			t.Errorf("%s = %s, %v; want %s", src, show(v), err, want)
		}
		if _, plain := p.FieldPath(); plain != (src == `value.clicks`) {
			t.Errorf("%s: is a field: %v", src, plain)
		}
	}
	for _, src := range []string{`value`, `value.clicks.x`, `value.click`} {
		if _, err := Compile(src, s); err == nil {
			t.Errorf("%s compiles", src)
		}
	}
	if n := len(s.Value.Paths()); n != 3 {
		t.Errorf("a derived row has %d slots, want 3", n)
	}
}
