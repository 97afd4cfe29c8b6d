package expr

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"millrace/record"
)

// fields are the declared fields of the tests; row holds a value for each.
var fields = []record.Field{
	{Name: "ad_id", Type: record.Type{Kind: record.String}},
	{Name: "note", Type: record.Type{Kind: record.String, Nullable: true}},
	{Name: "count", Type: record.Type{Kind: record.Long}},
	{Name: "big", Type: record.Type{Kind: record.Long}},
	{Name: "cost", Type: record.Type{Kind: record.Double}},
	{Name: "amount", Type: record.Type{Kind: record.Decimal}},
	{Name: "ok", Type: record.Type{Kind: record.Bool}},
	{Name: "none", Type: record.Type{Kind: record.Long, Nullable: true}},
	{Name: "at", Type: record.Type{Kind: record.Time, Form: record.RFC3339}},
	{Name: "tags", Type: record.Type{Kind: record.List}},
	{Name: "device", Type: record.Type{Kind: record.Map}},
	{Name: "loose", Type: record.Type{Any: true}},
}

func values() []record.Value {
	return []record.Value{
		record.StringValue([]byte("ad-1")), record.NullValue(), record.LongValue(7), record.LongValue(1<<63 - 1),
		record.DoubleValue(2.5), record.DecimalValue(1230, 2), record.BoolValue(true), {}, record.TimeValue(61_000),
		{Kind: record.List, Raw: []byte(`["x","y",3]`)}, {Kind: record.Map, Raw: []byte(`{"os":"ios","n":{"v":1}}`)},
		record.LongValue(7),
	}
}

// testRow fills a row as the layout of a compiled program wants it; paths below a map are left missing.
func testRow(l *Layout) *record.Row {
	row := &record.Row{
		Key: []byte("k1"), Time: 1000, Window: record.Window{Start: 0, End: 60_000},
		From:    record.Origin{Topic: "clicks", Partition: 3, Offset: 42},
		Headers: []record.Header{{Key: []byte("h"), Value: []byte("first")}, {Key: []byte("h"), Value: []byte("last")}},
		Acc:     record.LongValue(10),
	}
	all := values()
	for _, p := range l.Paths() {
		v := record.Value{}
		for i, f := range fields {
			if len(p.Segments) == 1 && p.Segments[0] == f.Name {
				v = all[i]
			}
		}
		if strings.Join(p.Segments, ".") == "device.os" {
			v = record.StringValue([]byte("ios"))
		}
		row.Fields = append(row.Fields, v)
	}
	return row
}

func testScope() Scope {
	acc := record.Type{Kind: record.Long}
	return Scope{Value: NewSourceLayout(fields, false), Key: record.Type{Kind: record.String}, Window: true, Acc: &acc}
}

func show(v record.Value) string {
	if v.IsNull() {
		return "null"
	}
	return v.Kind.String() + " " + string(appendText(nil, v))
}

// run evaluates src natively where possible and on the virtual machine, and wants both to give the same.
func run(t *testing.T, src string) (result string, p *Program) {
	t.Helper()
	var results []string
	for _, interpret := range []bool{false, true} {
		s := testScope()
		compiled, problem := compile(src, s, interpret)
		if problem != nil {
			t.Errorf("%s: %v", src, problem)
			return "", &Program{}
		}
		v, err := compiled.Bind()(testRow(s.Value))
		if err != nil {
			results = append(results, "error "+errors.Unwrap(err).Error())
		} else {
			results = append(results, show(v))
		}
		if !interpret {
			p = compiled
		}
	}
	if results[0] != results[1] {
		t.Errorf("%s: compiled it is %s, on the virtual machine %s", src, results[0], results[1])
	}
	return results[0], p
}

func TestNative(t *testing.T) {
	for src, want := range map[string]string{
		`value.ad_id`: "string ad-1", `value["ad_id"]`: "string ad-1", `value?.ad_id`: "string ad-1", `key`: "string k1",
		`timestamp`: "time 1970-01-01T00:00:01Z", `meta.topic`: "string clicks", `meta.partition + meta.offset`: "long 45",
		`headers["h"]`: "string last", `headers.none`: "null", `window.end - window.start`: "duration 1m0s", `acc + 1`: "long 11",
		`value.device.os == "ios"`: "bool true", `value.ad_id == "ad-1" && value.count > 5 && !(value.cost < 1.0)`: "bool true",
		`value.count >= 7 and value.count <= 7 or false`: "bool true", `1 < value.count < 8`: "bool true",
		`8 < value.count`: "bool false", `not value.ok`: "bool false", `value.count in [1, 7.0]`: "bool true",
		`value.ad_id not in ["a", "ad-1"]`: "bool false", `value.count in [1,2,3,4,5,6,7,8,9,10]`: "bool true",
		`value.ad_id in ["1","2","3","4","5","6","7","8","9"]`: "bool false", `value.none in [1, nil]`: "bool true",
		`value.none == nil`: "bool true", `value.none != nil`: "bool false", `value.none == 1`: "bool false",
		`value.none != 1`: "bool true", `value.none < 1`: "bool false", `value.none >= 1`: "bool false", `value.note == value.none`: "",
		`value.note == nil`: "bool true", `!(value.loose == "x")`: "bool true", `value.none + 1`: "null", `-value.none`: "null",
		`value.note + "x"`: "null", `value.none ?? 5`: "long 5", `value.none ?? 2.5`: "double 2.5", `value.count ?? 2.5`: "double 7",
		`value.ok ? value.cost : 0`: "double 2.5", `value.none == 1 ? value.cost : 0`: "double 0", `value.ok ? 1 : nil`: "long 1",
		`value.none > 1 ? "a" : "b"`: "string b", `value.ad_id + "/" + key`: "string ad-1/k1",
		`value.ad_id contains "d-"`: "bool true", `value.ad_id startsWith "x"`: "bool false", `value.ad_id endsWith "1"`: "bool true",
		`value.note contains "x"`: "bool false", `value.ad_id matches "^ad-[0-9]$"`: "bool true", `value.note matches "x"`: "bool false",
		`value.amount * 100`: "decimal 1230.00", `value.amount * 1.5`: "decimal 18.450", `value.amount + value.count`: "decimal 19.30",
		`value.amount + value.cost`: "double 14.8", `value.amount == 12.3`: "bool true", `value.amount > 12`: "bool true",
		`value.amount - 0.30 == 12`: "bool true", `value.cost * 100`: "double 250", `-value.amount`: "decimal -12.30",
		`value.count / 2`: "double 3.5", `value.count % 4`: "long 3", `2 ** 3`: "double 8", `value.count - 10`: "long -3",
		`(value.at - timestamp).Seconds()`: "double 60", `(value.at - timestamp).Milliseconds()`: "long 60000",
		`value.at + duration("1s")`: "time 1970-01-01T00:01:02Z", `value.at > date("1970-01-01")`: "bool true",
		`duration("1h").Minutes() + duration("30m").Hours()`: "double 60.5", `duration("10s") * 3`: "duration 30s",
		`duration("1m") / duration("1s")`: "double 60", `value.at.UnixMilli()`: "long 61000", `value.none * duration("1s")`: "null",
		`int(value.cost)`: "long 2", `float(value.amount)`: "double 12.3", `string(value.count) + "!"`: "string 7!",
		`int("12")`: "long 12", `decimal("1.50")`: "decimal 1.50", `string(value.none)`: "null", `int(value.note)`: "null",
		`value.big == 9223372036854775807.0`: "bool false", `value.big < 9223372036854775808.0`: "bool true",
		`value.loose + 1`: "long 8", `value.loose == 7.0`: "bool true", `value.loose == "7"`: "bool false",
		`-9223372036854775807 - 1`: "long -9223372036854775808", `value.loose == nil`: "bool false",
	} {
		if want == "" {
			continue
		}
		if got, p := run(t, src); got != want {
			t.Errorf("%s = %s, want %s", src, got, want)
		} else if !p.Native() {
			t.Errorf("%s is interpreted", src)
		}
	}
}

func TestInterpreted(t *testing.T) {
	for src, want := range map[string]string{
		`upper(value.ad_id)`: "string AD-1", `upper(value.ad_id) == "AD-1" && value.count > 1`: "bool true",
		`len(value.tags)`: "long 3", `value.tags[0]`: "string x", `"y" in value.tags`: "bool true", `value.tags[2] + 1`: "long 4",
		`filter(value.tags, # == 3)`: "list [3]", `map(1..3, # * value.count)`: "list [7,14,21]", `any(value.tags, # == "x")`: "bool true",
		`count(value.tags, # != "x")`: "long 2", `map(value.tags, {{"t": #}})[0].t`: "string x", `let x = value.count; x * x`: "long 49",
		`{"a": value.amount, "b": [value.none, value.cost]}`: `map {"a":12.30,"b":[null,2.5]}`, `value.device[lower("OS")] ?? "?"`: "string ios",
		`keys({"b": 1, "a": 2, "c": 3})`: `list ["a","b","c"]`, `values({"b": 1, "a": 2})`: "list [2,1]",
		`toPairs({"b": 1, "a": 2})`: `list [["a",2],["b",1]]`, `value.tags ?? []`: `list ["x","y",3]`, `value.none ?? len("abc")`: "long 3",
		`value.note != nil && upper(value.note) == "X"`: "bool false", `value.note == nil ? "-" : upper(value.note)`: "string -",
		`reduce(1..4, #acc + #, 0)`: "long 10", `filter(value.tags, nil)`: "list []", `value.at.Year()`: "long 1970",
		`split("a,b", ",")`: `list ["a","b"]`, `value.count in 1..10`: "bool true", `1 < len(value.tags) < 4`: "bool true",
		`value.ad_id[0:2]`: "string ad", `int(trim(" 5 "))`: "long 5", `len(value)`: "", `map([1, 2], # + 0.5)`: "list [1.5,2.5]",
		`sum(map(1..3, # * 2))`: "long 12", `toJSON({"x": value.amount})`: "", `value.ok ? upper("a") : value.none`: "string A",
		`[decimal("1.10")][0] + 1`: "decimal 2.10", `groupBy(1..3, # % 2)`: `map {"0":[2],"1":[1,3]}`, `first(value.tags)?.x`: "",
		`"a" | upper()`: "string A", `max(value.count, 9.5)`: "double 9.5", `min(value.cost, value.count)`: "double 2.5",
		`sum([1, 2.5])`: "double 3.5", `abs(value.cost - 3)`: "double 0.5", `round(value.cost)`: "double 3", `mean([1, 2])`: "double 1.5",
		`median([1, 2, 9])`: "double 2", `sum([value.cost, 1])`: "double 3.5", `max([1, 2.5])`: "double 2.5", `sum(map([1.5], #))`: "double 1.5",
		`ceil(value.cost)`: "double 3", `get(value.device, "os")`: "string ios", `sort([3, 1])`: "list [1,3]", `last([1, 2.5])`: "double 2.5",
		`value.ok ? max(1, 2) : 2.5`: "double 2", `sum([])`: "long 0", `max([value.none, 1]) ?? 0`: "", `find([1, 2], # > 5) ?? 7`: "long 7",
	} {
		if want == "" {
			continue
		}
		if got, p := run(t, src); got != want {
			t.Errorf("%s = %s, want %s", src, got, want)
		} else if p.Native() {
			t.Errorf("%s is native", src)
		}
	}
}

func TestRuntimeErrors(t *testing.T) {
	for src, want := range map[string]string{
		`value.count / 0`: "division by zero", `value.count % 0`: "division by zero", `value.cost / 0.0`: "division by zero",
		`value.big + 1`: "does not fit a long", `value.big * 2`: "does not fit a long", `-value.big - 2`: "does not fit a long",
		`value.loose % 2.5`: "% needs whole numbers", `value.loose + "x"`: "+ does not work between long and string",
		`value.loose < "x"`: "cannot compare long with string", `value.loose contains "x"`: "contains needs a string, and this is long",
		`value.loose && true`: "a condition must be boolean, and this is long", `int(value.ad_id)`: `int() cannot convert "ad-1"`,
		`int(1e300)`: "does not fit a long", `upper(value.note)`: "null", `let xs = 1..1000; count(xs, any(xs, any(xs, # > 2000)))`: "1,000,000",
		`reduce(1..60, #index == 0 ? "xxxxxxxx" : #acc + #acc, "")`: "16 MiB", `1..10000000`: "memory budget",
		`decimal(value.ad_id)`: "decimal() cannot convert", `value.tags[9]`: "out of range", `duration(value.ad_id)`: "invalid duration",
		`value.at + duration("1h") * value.big`: "duration out of range", `fromJSON(value.ad_id)`: "invalid character",
		`value.loose.Seconds()`: "long has no method .Seconds()",
	} {
		got, _ := run(t, src)
		if !strings.HasPrefix(got, "error ") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want an error with %q", src, got, want)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, c := range []struct {
		src, at, message, hint string
	}{
		{`value.adid == "x"`, "adid", "unknown field adid", `did you mean "ad_id"?`},
		{`value.ad_id == 5`, "==", "== does not work between string and long", "convert"},
		{`vlaue.ad_id`, "vlaue", "unknown name vlaue", `did you mean "value"?`},
		{`ad_id == "x"`, "ad_id", "unknown name ad_id", `did you mean "value.ad_id"?`},
		{`"äö" == value.ad_idd`, "ad_idd", "unknown field ad_idd", `did you mean "ad_id"?`},
		{`value.ad_id.x`, "x", "field ad_id is string and has no field x", "map"},
		{`value.count + "x"`, "+", "+ does not work between long|string", ""},
		{`value.cost % 2`, "%", "% does not work between double and", "int()"},
		{`value.ad_id < nil`, "<", "<", "??"},
		{`value.at > 61000`, ">", "> does not work between timestamp and long", "UnixMilli"},
		{`value.count && true`, "count", "a condition must be boolean, and this is long", ""},
		{`uper(value.ad_id)`, "uper", "unknown function uper", `did you mean "upper"?`},
		{`now() > timestamp`, "now", "now() does not exist", "timestamp"},
		{`upper(value.count)`, "", "cannot use int as argument", ""},
		{`meta.partion`, "partion", "meta has no part partion", `did you mean "partition"?`},
		{`value.ad_id matches "("`, `"("`, "missing closing )", "RE2"},
		{`duration("10 s")`, `"10 s"`, "unknown unit", ""},
		{`value.count +`, "", "unexpected token EOF", ""},
		{`value.count in ["a"]`, `"a"`, "long can never be in a list with this string", ""},
		{`let key = 1; key`, "key", "key is taken", ""},
		{`int(1, 2)`, "int", "int() takes one argument, not 2", ""},
		{`value.ad_id.Seconds()`, "Seconds", "string has no method Seconds", ""},
		{`value.at.Local()`, "Local", "time zone", "timezone"},
		{`headers`, "headers", "headers are read one by one", ""},
		{` `, "", "empty", ""},
		{"`" + strings.Repeat("x", 20), "", "literal not terminated", ""},
		{strings.Repeat("1+", 600) + "1", "", "exceeds maximum allowed nodes", ""},
	} {
		_, err := Compile(c.src, testScope())
		var problem *Error
		if !errors.As(err, &problem) {
			t.Errorf("%s compiles", c.src)
			continue
		}
		wantMessage, _, _ := strings.Cut(c.message, "|")
		if !strings.Contains(problem.Message, wantMessage) || !strings.Contains(problem.Hint, c.hint) {
			t.Errorf("%s: %q, hint %q; want %q, %q", c.src, problem.Message, problem.Hint, c.message, c.hint)
		}
		if end := problem.Offset + problem.Len; problem.Offset < 0 || end > len(c.src) {
			t.Errorf("%s: place %d+%d lies outside", c.src, problem.Offset, problem.Len)
		} else if c.at != "" && c.src[problem.Offset:end] != c.at {
			t.Errorf("%s: points at %q, want %q", c.src, c.src[problem.Offset:end], c.at)
		}
	}
}

func TestCompileBool(t *testing.T) {
	if _, err := CompileBool(`value.count`, testScope()); err == nil {
		t.Error("a long compiles as a condition")
	}
	for src, want := range map[string]bool{
		`value.ok`: true, `value.none == 1`: false, `value.device.gone`: false, `any(value.tags, # == "x")`: true,
		`value.ad_id + "!" == "ad-1!"`: true, `nil`: false,
	} {
		s := testScope()
		p, err := CompileBool(src, s)
		if src == "nil" {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got, err := p.BindBool()(testRow(s.Value)); err != nil || got != want {
			t.Errorf("%s = %v, %v; want %v", src, got, err, want)
		}
	}
	s := testScope()
	p, _ := CompileBool(`value.loose`, s)
	var failed *RuntimeError
	if _, err := p.BindBool()(testRow(s.Value)); !errors.As(err, &failed) {
		t.Errorf("a long that is found at run time counts as a condition: %v", err)
	}
}

func TestTypes(t *testing.T) {
	for src, want := range map[string]string{
		`value.at`: "timestamp", `value.at + duration("1s")`: "timestamp", `timestamp`: "timestamp_ms", `value.at - timestamp`: "duration",
		`value.amount * 100`: "decimal", `value.cost * 100`: "double", `value.none ?? 0`: "long", `value.none`: "long|null",
		`value.none + 1`: "long|null", `value.note`: "string|null", `value.ok ? 1 : 2.5`: "double", `value.ok ? value.at : nil`: "timestamp|null",
		`value.loose`: "any", `value.loose + 1`: "any", `value.loose == 1`: "boolean", `upper(key)`: "string|null", `len(key)`: "long|null",
		`{"a": 1}`: "map|null", `[1]`: "list|null", `value.ok ? 1 : "x"`: "any", `value.device.os`: "any", `value`: "map",
		`max(1, 2)`: "long|null",
	} {
		p, err := Compile(src, testScope())
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if got := p.Type().String(); got != want {
			t.Errorf("type of %s is %s, want %s", src, got, want)
		}
	}
	p, _ := Compile(`value.device.os`, testScope())
	if path, ok := p.FieldPath(); !ok || strings.Join(path, "/") != "device/os" {
		t.Errorf("field path %v, %v", path, ok)
	}
	p, _ = Compile(`value.count + 1`, testScope())
	if path, ok := p.FieldPath(); ok {
		t.Errorf("a sum has the field path %v", path)
	}
}

func TestLongKey(t *testing.T) {
	p, err := Compile(`key + 1`, Scope{Key: record.Type{Kind: record.Long}})
	if err != nil {
		t.Fatal(err)
	}
	eval := p.Bind()
	if v, err := eval(&record.Row{Key: binary.BigEndian.AppendUint64(nil, 41)}); err != nil || show(v) != "long 42" {
		t.Errorf("got %s, %v", show(v), err)
	}
	if _, err := eval(&record.Row{Key: []byte("41")}); err == nil {
		t.Error("a key of two bytes is taken as a long")
	}
	if v, err := eval(&record.Row{}); err != nil || !v.IsNull() {
		t.Errorf("no key: %s, %v", show(v), err)
	}
}

func TestEvaluationAllocatesNothing(t *testing.T) {
	s := testScope()
	var evals []Eval
	for _, src := range []string{
		`value.ad_id == "ad-1" && value.count > 5 || value.cost <= 1`, `value.amount * 100 + value.count`, `value.ad_id + "/" + key`,
		`value.none ?? value.count`, `value.count in [1,2,3,4,5,6,7,8,9]`, `(value.at - timestamp).Seconds() > 5 ? value.cost : 0`,
		`value.ad_id contains "d" and not (headers.h startsWith "x")`, `string(value.count)`, `value.ad_id matches "^ad-"`,
		`value.loose + 1 > 2`,
	} {
		p, err := Compile(src, s)
		if err != nil || !p.Native() {
			t.Fatalf("%s: %v", src, err)
		}
		evals = append(evals, p.Bind())
	}
	row := testRow(s.Value)
	allocs := testing.AllocsPerRun(1000, func() {
		for _, eval := range evals {
			if _, err := eval(row); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

func benchmark(b *testing.B, src string) {
	s := testScope()
	p, err := CompileBool(src, s)
	if err != nil {
		b.Fatal(err)
	}
	test, row := p.BindBool(), testRow(s.Value)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := test(row); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFilterNative(b *testing.B) {
	benchmark(b, `value.ad_id == "ad-1" && value.cost > 2.0 && value.count >= 7`)
}

func BenchmarkFilterInterpreted(b *testing.B) {
	benchmark(b, `upper(value.ad_id) == "AD-1" && value.cost > 2.0`)
}

func BenchmarkArithmetic(b *testing.B) {
	benchmark(b, `value.count * 3 - 1 > 4 && value.at - timestamp > duration("10s")`)
}

// Programs are bound once a task: two bindings share nothing.
func TestBindingsAreIndependent(t *testing.T) {
	s := testScope()
	p, _ := Compile(`value.ad_id + "!"`, s)
	first, second := p.Bind(), p.Bind()
	row := testRow(s.Value)
	v, _ := first(row)
	other := testRow(s.Value)
	for i := range other.Fields {
		other.Fields[i] = record.StringValue([]byte("zz-9"))
	}
	if _, err := second(other); err != nil {
		t.Fatal(err)
	}
	if show(v) != "string ad-1!" {
		t.Errorf("the other binding's evaluation changed the value to %s", show(v))
	}
}

func TestDurationOfTimes(t *testing.T) {
	got, _ := run(t, `value.at - date("1970-01-01T00:00:00.5Z")`)
	if want := "duration " + (60*time.Second + 500*time.Millisecond).String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
