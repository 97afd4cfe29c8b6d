package codec

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	"millrace/record"

	"pgregory.net/rapid"
)

func TestEncode(t *testing.T) {
	fields := []record.Field{
		{Name: "s\"x"}, {Name: "gone"}, {Name: "null"}, {Name: "t", Type: record.Type{Kind: record.Time, Form: record.RFC3339}},
		{Name: "ms", Type: record.Type{Kind: record.Time}}, {Name: "d"}, {Name: "f"}, {Name: "l"}, {Name: "b"}, {Name: "raw"},
		{Name: "span"}, {Name: "nan"},
	}
	values := []record.Value{
		record.StringValue([]byte("a\"\\\n\x01\xffé")), {}, record.NullValue(), record.TimeValue(61250), record.TimeValue(61250),
		record.DecimalValue(-5, 2), record.DoubleValue(1e21), record.LongValue(math.MinInt64), record.BoolValue(true),
		{Kind: record.List, Raw: []byte(`[1]`)}, record.DurationValue(int64(90 * time.Second)), record.DoubleValue(math.NaN()),
	}
	got := string(NewJSONEncoder(fields).Append([]byte("x"), values))
	want := `x{"s\"x":"a\"\\\n\u0001` + "\uFFFDé" + `","null":null,"t":"1970-01-01T00:01:01.250Z","ms":61250,"d":-0.05,"f":1e+21,` +
		`"l":-9223372036854775808,"b":true,"raw":[1],"span":"1m30s","nan":null}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if empty := string(NewJSONEncoder(fields[1:2]).Append(nil, values[1:2])); empty != "{}" {
		t.Errorf("only missing values: %s", empty)
	}
}

// What any bytes are encoded to is valid JSON and valid UTF-8, and reads back as the standard library reads it.
func TestEncodeStringProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) })).Draw(t, "in")
		out := AppendJSON(nil, record.StringValue(in), record.EpochMillis)
		var back string
		if err := json.Unmarshal(out, &back); err != nil || !utf8.Valid(out) {
			t.Fatalf("%q became %q: %v", in, out, err)
		}
		if utf8.Valid(in) && back != string(in) {
			t.Fatalf("%q came back as %q", in, back)
		}
		var into [1]record.Value
		d := NewJSONDecoder([]Field{{Type: record.Type{Any: true}}})
		if err := d.Decode(out, into[:]); err != nil || string(into[0].Raw) != back {
			t.Fatalf("%q decodes to %q (%v), want %q", out, into[0].Raw, err, back)
		}
	})
}

func TestNumbersRoundTrip(t *testing.T) {
	d := NewJSONDecoder([]Field{{Type: record.Type{Kind: record.Double}}})
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		var into [1]record.Value
		for _, text := range [][]byte{AppendJSON(nil, record.DoubleValue(f), 0), strconv.AppendFloat(nil, f, 'f', 17, 64)} {
			want, _ := strconv.ParseFloat(string(text), 64)
			if err := d.Decode(text, into[:]); err != nil || into[0].Float() != want {
				t.Fatalf("%s decodes to %v (%v), want %v", text, into[0].Float(), err, want)
			}
		}
		if want, _ := json.Marshal(f); string(AppendJSON(nil, record.DoubleValue(f), 0)) != normalExponent(want) {
			t.Fatalf("%s, the standard library writes %s", AppendJSON(nil, record.DoubleValue(f), 0), want)
		}
	})
}

// normalExponent undoes that encoding/json shortens e-09 to e-9.
func normalExponent(b []byte) string {
	if n := len(b); n >= 3 && b[n-3] == 'e' && b[n-2] == '-' {
		return string(b[:n-1]) + "0" + string(b[n-1])
	}
	return string(b)
}

func TestRFC3339Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(-62167219200000, 253402300799999).Draw(t, "ms")
		zone := time.FixedZone("", 60*rapid.IntRange(-23*60, 23*60).Draw(t, "zone"))
		text := time.UnixMilli(ms).In(zone).Format(time.RFC3339Nano)
		if len(text) < 20 || text[4] != '-' {
			t.Skip("the offset moved the year out of range")
		}
		if got, ok := ParseRFC3339([]byte(text)); !ok || got != ms {
			t.Fatalf("%s = %d, %v; want %d", text, got, ok, ms)
		}
		utc := string(AppendRFC3339(nil, ms))
		if back, err := time.Parse(time.RFC3339Nano, utc); err != nil || back.UnixMilli() != ms {
			t.Fatalf("%d written as %s: %v", ms, utc, err)
		}
	})
}

func TestRFC3339Refuses(t *testing.T) {
	for _, text := range []string{
		"", "2026-01-02", "2026-01-02T03:04:05", "2026-13-02T03:04:05Z", "2026-00-02T03:04:05Z", "2026-02-29T03:04:05Z",
		"2026-01-02T24:04:05Z", "2026-01-02T03:60:05Z", "2026-01-02T03:04:61Z", "2026-01-02T03:04:05.Z",
		"2026-01-02T03:04:05+0100", "2026-01-02T03:04:05Zx", "2026-01-0xT03:04:05Z", "2026-01-02X03:04:05Z",
	} {
		if ms, ok := ParseRFC3339([]byte(text)); ok {
			t.Errorf("%q is taken as %d", text, ms)
		}
	}
}

func TestScalarFormats(t *testing.T) {
	fields := []Field{field(ScalarField, record.String)}
	var into [1]record.Value
	if err := NewStringDecoder(fields).Decode([]byte("hi"), into[:]); err != nil || show(into[0]) != "string hi" {
		t.Errorf("string: %s, %v", show(into[0]), err)
	}
	if err := NewBytesDecoder(fields).Decode([]byte("\xff"), into[:]); err != nil || show(into[0]) != "bytes \xff" {
		t.Errorf("bytes: %s, %v", show(into[0]), err)
	}
	long := AppendLong(nil, record.LongValue(-2))
	if err := NewLongDecoder(fields).Decode(long, into[:]); err != nil || show(into[0]) != "long -2" {
		t.Errorf("long: %s, %v", show(into[0]), err)
	}
	if err := NewLongDecoder(fields).Decode(long[1:], into[:]); err == nil {
		t.Error("7 bytes are taken as a long")
	}
	if err := NewLongDecoder(nil).Decode(long, nil); err != nil {
		t.Errorf("long without planned fields: %v", err)
	}
}

func TestAppendText(t *testing.T) {
	for _, c := range []struct {
		v    record.Value
		want string
	}{
		{record.StringValue([]byte("a\"b")), `a"b`}, {record.LongValue(-7), "-7"}, {record.BoolValue(false), "false"},
		{record.DoubleValue(0.1), "0.1"}, {record.DoubleValue(math.Inf(-1)), "-Inf"}, {record.TimeValue(5), "5"},
		{record.DecimalValue(1230, 2), "12.30"}, {record.NullValue(), ""}, {record.DurationValue(3_600e9), "1h0m0s"},
	} {
		if got := string(AppendText(nil, c.v)); got != c.want {
			t.Errorf("%v = %q, want %q", c.v.Kind, got, c.want)
		}
	}
}

var (
	resultFields = []record.Field{
		{Name: "ad_id", Type: record.Type{Kind: record.String}}, {Name: "window_start", Type: record.Type{Kind: record.Time}},
		{Name: "clicks", Type: record.Type{Kind: record.Long}}, {Name: "spend", Type: record.Type{Kind: record.Double}},
		{Name: "amount", Type: record.Type{Kind: record.Decimal}}, {Name: "at", Type: record.Type{Kind: record.Time, Form: record.RFC3339}},
	}
	resultValues = []record.Value{
		record.StringValue([]byte("ad-000017")), record.TimeValue(1700000000000), record.LongValue(12), record.DoubleValue(3.75),
		record.DecimalValue(123450, 2), record.TimeValue(1700000000123),
	}
)

func TestEncodeAllocatesNothing(t *testing.T) {
	e := NewJSONEncoder(resultFields)
	buf := make([]byte, 0, 1024)
	allocs := testing.AllocsPerRun(1000, func() { buf = e.Append(buf[:0], resultValues) })
	if allocs != 0 {
		t.Errorf("%v allocations a row, want 0", allocs)
	}
}

func BenchmarkEncode(b *testing.B) {
	e := NewJSONEncoder(resultFields)
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = e.Append(buf[:0], resultValues)
	}
}
