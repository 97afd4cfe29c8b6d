package formats

import (
	"testing"

	"millrace/record"
	"millrace/topology"
)

func TestEncodersOfOneValue(t *testing.T) {
	text, long, at := record.Type{Kind: record.String}, record.Type{Kind: record.Long}, record.Type{Kind: record.Time, Form: record.RFC3339}
	for _, c := range []struct {
		format string
		typ    record.Type
		value  record.Value
		want   string
		null   bool
	}{
		{format: "string", typ: text, value: record.StringValue([]byte("a")), want: "a"},
		{format: "string", typ: text, value: record.StringValue(nil), want: ""},
		{format: "string", typ: text, value: record.NullValue(), null: true},
		{format: "string", typ: text, value: record.Value{}, null: true},
		{format: "string", typ: long, value: record.LongValue(-7), want: "-7"},
		{format: "string", typ: at, value: record.TimeValue(1500), want: "1970-01-01T00:00:01.500Z"},
		{format: "string", typ: record.Type{Kind: record.Time}, value: record.TimeValue(1500), want: "1500"},
		{format: "bytes", typ: record.Type{Kind: record.Bytes}, value: record.BytesValue([]byte{0, 255}), want: "\x00\xff"},
		{format: "bytes", typ: text, value: record.NullValue(), null: true},
		{format: "long", typ: long, value: record.LongValue(258), want: "\x00\x00\x00\x00\x00\x00\x01\x02"},
		{format: "long", typ: at, value: record.TimeValue(1), want: "\x00\x00\x00\x00\x00\x00\x00\x01"},
		{format: "long", typ: long, value: record.NullValue(), null: true},
		{format: "", typ: long, value: record.LongValue(1), want: `{"v":1}`},
		{format: "json", typ: long, value: record.NullValue(), want: `{"v":null}`},
	} {
		e, err := ByName{}.Encoder(c.format, []record.Field{{Name: "v", Type: c.typ}})
		if err != nil {
			t.Fatalf("%s of %s: %v", c.format, c.typ, err)
		}
		for _, dst := range [][]byte{nil, make([]byte, 0, 64)} {
			if got := e.Append(dst, []record.Value{c.value}); string(got) != c.want || (got == nil) != c.null {
				t.Errorf("%s of %+v is %q (nil: %v), want %q (nil: %v)", c.format, c.value, got, got == nil, c.want, c.null)
			}
		}
	}
}

func TestFormatsRefuseWhatTheyCannotHold(t *testing.T) {
	one := func(typ record.Type) []record.Field { return []record.Field{{Name: "v", Type: typ}} }
	for name, c := range map[string]struct {
		format string
		fields []record.Field
	}{
		"text in long":     {"long", one(record.Type{Kind: record.String})},
		"anything in long": {"long", one(record.Type{Any: true})},
		"number in bytes":  {"bytes", one(record.Type{Kind: record.Double})},
		"two fields":       {"string", append(one(record.Type{}), one(record.Type{})...)},
		"no field":         {"long", nil},
		"unknown":          {"avro", one(record.Type{})},
	} {
		if _, err := (ByName{}).Encoder(c.format, c.fields); err == nil {
			t.Errorf("%s: an encoder was made", name)
		}
	}
	for _, format := range []string{"string", "long", "bytes", "avro"} {
		if _, err := (ByName{}).Decoder(format, []topology.FieldPath{{Segments: []string{"a"}}}); err == nil {
			t.Errorf("%s: a decoder of field a was made", format)
		}
	}
}

func TestDecodersOfOneValue(t *testing.T) {
	for _, c := range []struct{ format, src, want string }{
		{"string", "text", "text"}, {"bytes", "\x00\x01", "\x00\x01"}, {"long", "\x00\x00\x00\x00\x00\x00\x00\x07", "7"},
		{"", `{"value": "x"}`, "x"}, {"json", `{"value": "x"}`, "x"},
	} {
		d, err := ByName{}.Decoder(c.format, []topology.FieldPath{{Segments: []string{"value"}, Type: record.Type{Any: true}}})
		if err != nil {
			t.Fatal(err)
		}
		into := make([]record.Value, 1)
		if err := d.Decode([]byte(c.src), into); err != nil {
			t.Fatal(err)
		}
		got := string(into[0].Raw)
		if into[0].Kind == record.Long {
			got = string('0' + rune(into[0].Num))
		}
		if got != c.want {
			t.Errorf("%s of %q is %q, want %q", c.format, c.src, got, c.want)
		}
	}
}
