package topology

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"millrace/record"
)

func TestGroupKeyText(t *testing.T) {
	text := func(s string) record.Value { return record.StringValue([]byte(s)) }
	for _, c := range []struct {
		values []record.Value
		want   string
	}{
		{[]record.Value{text(`a|b\c`)}, `a|b\c`}, // one value is plain
		{[]record.Value{text(`a|b`), text(`\`)}, `a\|b|\\`},
		{[]record.Value{text(""), text(""), text("")}, `||`},
		{[]record.Value{record.LongValue(-5), record.BoolValue(true)}, `-5|true`},
		{[]record.Value{record.DoubleValue(1e6)}, `1000000`}, // as sinks write it
		{[]record.Value{record.DoubleValue(math.Copysign(0, -1))}, `0`},
		{[]record.Value{record.DecimalValue(1230, 2)}, `12.30`},
	} {
		var g groupKey
		for _, v := range c.values {
			g.fields = append(g.fields, record.Field{Type: record.Type{Kind: v.Kind}})
		}
		if key, ok := g.append(nil, c.values); !ok || string(key) != c.want {
			t.Errorf("%v: key %q, want %q", c.values, key, c.want)
		}
	}
	for _, null := range []record.Value{{}, record.NullValue()} {
		g := groupKey{fields: make([]record.Field, 2)}
		if _, ok := g.append(nil, []record.Value{text("a"), null}); ok {
			t.Errorf("a null value has a group")
		}
	}
}

// No two groups have one key, and the key gives the group back.
func TestGroupKeyRoundTrip(t *testing.T) {
	kinds := []record.Kind{record.String, record.Bytes, record.Long, record.Double, record.Decimal, record.Bool, record.Time, record.Duration}
	rapid.Check(t, func(t *rapid.T) {
		var g groupKey
		var values []record.Value
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			v := record.Value{Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
			switch v.Kind {
			case record.String, record.Bytes:
				v.Raw = []byte(rapid.StringOf(rapid.SampledFrom([]rune{'a', '|', '\\', 'é'})).Draw(t, "text"))
			case record.Double:
				f := rapid.Float64().Draw(t, "double")
				if f == 0 {
					f = 0
				}
				v = record.DoubleValue(f)
			case record.Decimal:
				v = record.DecimalValue(rapid.Int64().Draw(t, "coefficient"), rapid.Int32Range(0, 20).Draw(t, "scale"))
			case record.Bool:
				v.Num = rapid.Int64Range(0, 1).Draw(t, "bool")
			default:
				v.Num = rapid.Int64().Draw(t, "number")
			}
			g.fields = append(g.fields, record.Field{Type: record.Type{Kind: v.Kind}})
			values = append(values, v)
		}
		key, ok := g.append(nil, values)
		if !ok {
			t.Fatal("no key")
		}
		back := make([]record.Value, len(values))
		if err := g.parse(key, back); err != nil {
			t.Fatal(err)
		}
		again, _ := g.append(nil, back)
		if d := cmp.Diff(string(key), string(again)); d != "" {
			t.Fatalf("%v came back as %v", values, back)
		}
		for i := range values {
			if back[i].Kind != values[i].Kind || back[i].Num != values[i].Num || string(back[i].Raw) != string(values[i].Raw) {
				t.Fatalf("%v came back as %v", values[i], back[i])
			}
		}
	})
}
