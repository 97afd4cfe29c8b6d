package aggregate_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"millrace/record"
	"millrace/topology/aggregate"
)

// fixture builds sets and states with the least ceremony: every item reads the same argument.
type fixture struct {
	testing.TB
	set    *aggregate.Set
	worker *aggregate.Worker
	items  []aggregate.Item
	state  []byte
	offset int64
}

func newFixture(t testing.TB, typ record.Type, calls ...string) *fixture {
	t.Helper()
	f := &fixture{TB: t}
	for i, text := range calls {
		f.items = append(f.items, aggregate.Item{Name: fmt.Sprintf("f%d", i), Call: mustParse(t, text), Arg: typ})
	}
	f.build()
	return f
}

func mustParse(t testing.TB, text string) aggregate.Call {
	t.Helper()
	call, err := aggregate.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

func (f *fixture) build() {
	f.Helper()
	set, err := aggregate.NewSet(f.items)
	if err != nil {
		f.Fatal(err)
	}
	f.set, f.worker = set, set.Bind()
	f.state = set.Init(nil)
}

// addAt adds a record with an event time; its offset is one above that of the record before.
func (f *fixture) addAt(at int64, v record.Value) error {
	row := record.Row{Time: at, From: record.Origin{Offset: f.offset}}
	f.offset++
	args := make([]record.Value, len(f.items))
	for i, it := range f.items {
		if len(it.Call.Args) > 0 && it.Call.Name != "fold" {
			args[i] = v
		}
	}
	row.Fields = []record.Value{v}
	state, err := f.worker.Add(bytes.Clone(f.state), args, &row)
	if err == nil {
		f.state = state
	}
	return err
}

func (f *fixture) add(values ...record.Value) {
	f.Helper()
	for _, v := range values {
		if err := f.addAt(0, v); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fixture) result() []record.Value {
	f.Helper()
	out := make([]record.Value, len(f.items))
	if err := f.worker.Result(f.state, out); err != nil {
		f.Fatal(err)
	}
	return out
}

// wants compares the results, as text, with one expectation an item.
func (f *fixture) wants(want ...string) {
	f.Helper()
	for i, v := range f.result() {
		if got := show(v); got != want[i] {
			f.Errorf("%s = %s, want %s", f.items[i].Call.Name, got, want[i])
		}
	}
}

func show(v record.Value) string {
	switch v.Kind {
	case record.Long, record.Time, record.Duration:
		return fmt.Sprint(v.Num)
	case record.Bool:
		return fmt.Sprint(v.Num != 0)
	case record.Double:
		return fmt.Sprint(v.Float()) + "f"
	case record.Decimal:
		return string(record.AppendDecimal(nil, v)) + "d"
	case record.Null, record.Missing:
		return v.Kind.String()
	}
	return string(v.Raw)
}

func typ(k record.Kind) record.Type { return record.Type{Kind: k, Nullable: true} }

func long(n int64) record.Value     { return record.LongValue(n) }
func double(f float64) record.Value { return record.DoubleValue(f) }
func text(s string) record.Value    { return record.StringValue([]byte(s)) }
func dec(s string) record.Value {
	v, err := record.ParseDecimal([]byte(s))
	if err != nil {
		panic(err)
	}
	return v
}

var null, missing = record.NullValue(), record.Value{}

var numeric = []string{"count()", "count(x)", "sum(x)", "min(x)", "max(x)", "avg(x)"}

func TestNothingIsNullAndNullsAreSkipped(t *testing.T) {
	all := append([]string{"first(x)", "last(x)", "collect_list(x, 3)", "collect_set(x, 3)", "approx_distinct(x)"}, numeric...)
	for _, kind := range []record.Kind{record.Long, record.Double, record.Decimal, record.Duration} {
		f := newFixture(t, typ(kind), all...)
		f.wants("null", "null", "[]", "[]", "0", "0", "0", "null", "null", "null", "null")
		f.add(null, missing)
		f.wants("null", "null", "[]", "[]", "0", "2", "0", "null", "null", "null", "null")
	}
}

func TestNumbers(t *testing.T) {
	f := newFixture(t, typ(record.Long), numeric...)
	f.add(long(5), null, long(-3), long(2))
	f.wants("4", "3", "4", "-3", "5", "1.3333333333333333f")

	f = newFixture(t, typ(record.Double), numeric...)
	f.add(double(0.1), null, double(0.2), long(3))
	f.wants("4", "3", "3.3f", "0.1f", "3f", "1.1f")

	f = newFixture(t, typ(record.Decimal), numeric...)
	f.add(dec("0.10"), null, dec("0.2"), long(3))
	f.wants("4", "3", "3.30d", "0.10d", "3d", "1.10d")
	f.add(dec("0.05"), dec("0.05"), dec("-0.05"))
	f.wants("7", "6", "3.35d", "-0.05d", "3d", "0.55833333d")

	f = newFixture(t, typ(record.Duration), numeric...)
	f.add(record.DurationValue(7), record.DurationValue(8))
	f.wants("2", "2", "15", "7", "8", "8")
}

func TestExtremesOfOtherKinds(t *testing.T) {
	f := newFixture(t, typ(record.String), "min(x)", "max(x)")
	f.add(text("b"), text("abc"), text(""), text("b\x00"))
	f.wants("", "b\x00")
	f = newFixture(t, typ(record.Bool), "min(x)", "max(x)")
	f.add(record.BoolValue(true), record.BoolValue(false))
	f.wants("false", "true")
	f = newFixture(t, record.Type{Kind: record.Time, Form: record.RFC3339}, "min(x)", "max(x)", "last(x)")
	f.add(record.TimeValue(-5), record.TimeValue(3))
	f.wants("-5", "3", "3")
	for _, field := range f.set.Fields() {
		if field.Type.Form != record.RFC3339 || field.Type.Kind != record.Time || field.Type.Nullable {
			t.Errorf("%s has type %+v, want the argument's", field.Name, field.Type)
		}
	}
	nan, zero := double(math.NaN()), double(math.Copysign(0, -1))
	f = newFixture(t, typ(record.Double), "min(x)", "max(x)")
	f.add(double(0), nan, zero, double(math.Inf(1)), double(-1))
	f.wants("-1f", "NaNf")
	f = newFixture(t, typ(record.Double), "min(x)")
	f.add(double(0), zero)
	f.wants("-0f")
}

func TestSumOverflowIsAnError(t *testing.T) {
	f := newFixture(t, typ(record.Long), "sum(x)", "avg(x)")
	f.add(long(math.MaxInt64))
	err := f.addAt(0, long(1))
	if err == nil || !strings.Contains(err.Error(), "aggregate f0") {
		t.Fatalf("overflow: error %v, want one that names f0", err)
	}
	f.add(long(-1))
	f.wants("9223372036854775806", "4.611686018427388e+18f")

	f = newFixture(t, typ(record.Long), "sum(x)")
	f.add(long(math.MinInt64))
	if f.addAt(0, long(-1)) == nil {
		t.Error("a sum wrapped around below")
	}
	f = newFixture(t, typ(record.Long), "avg(x)")
	f.add(long(math.MinInt64), long(math.MinInt64), long(math.MaxInt64), long(math.MaxInt64))
	f.wants("-0.5f")
}

func TestDecimalSumOutgrowsALongAndComesBack(t *testing.T) {
	f := newFixture(t, typ(record.Decimal), "sum(x)", "max(x)", "avg(x)", "count()")
	small := len(f.state)
	f.add(dec("9223372036854775807"), dec("0.01"))
	f.wants("9223372036854775807.01d", "9223372036854775807d", "4611686018427387903.505d", "2")
	if len(f.state) == small {
		t.Error("the digits are nowhere in the state")
	}
	f.add(dec("-9223372036854775807"))
	f.wants("0.01d", "9223372036854775807d", "0.00333333d", "3")
	if len(f.state) != small {
		t.Errorf("%d bytes of state are left of the digits", len(f.state)-small)
	}
	f.add(dec("123456789012345678901234567890"))
	f.wants("123456789012345678901234567890.01d", "123456789012345678901234567890d", "30864197253086419725308641972.5025d", "4")
}

func TestDecimalAverageRoundsHalfAwayFromZero(t *testing.T) {
	cases := map[string][]string{
		"0.6666667d":  {"1.0", "1", "0"},
		"-0.6666667d": {"-1.0", "-1", "0"},
		"0.00000050d": {"0.00000100", "0"},
		"1.50d":       {"1.00", "2"},
	}
	for want, values := range cases {
		f := newFixture(t, typ(record.Decimal), "avg(x)")
		for _, v := range values {
			f.add(dec(v))
		}
		f.wants(want)
	}
	f := newFixture(t, typ(record.Decimal), "avg(x)")
	f.add(dec("-1"))
	for range 127 {
		f.add(dec("0"))
	}
	f.wants("-0.007813d") // -1/128 is -0.0078125
}

func TestDoublesDoNotDrown(t *testing.T) {
	f := newFixture(t, typ(record.Double), "sum(x)")
	f.add(double(1e16), double(1), double(1), double(-1e16))
	f.wants("2f")
	f = newFixture(t, typ(record.Double), "sum(x)")
	f.add(double(math.Inf(1)), double(1))
	f.wants("+Inff")
	f.add(double(math.Inf(-1)))
	f.wants("NaNf")
}

func TestFirstAndLastByEventTimeThenArrival(t *testing.T) {
	f := newFixture(t, typ(record.String), "first(x)", "last(x)")
	for _, r := range []struct {
		at int64
		v  record.Value
	}{{5, text("a")}, {9, text("b")}, {5, text("late")}, {9, text("longer tie")}, {3, null}, {10, missing}} {
		if err := f.addAt(r.at, r.v); err != nil {
			t.Fatal(err)
		}
	}
	f.wants("a", "longer tie")
	if err := f.addAt(-1, text("zero")); err != nil {
		t.Fatal(err)
	}
	f.wants("zero", "longer tie")
}

// Two topics may have records that are equal in time, offset and partition; then arrival decides.
func TestFirstAndLastOfTwoTopics(t *testing.T) {
	f := newFixture(t, typ(record.Long), "first(x)", "last(x)")
	for n := range int64(3) {
		f.offset = 7
		if err := f.addAt(5, long(n)); err != nil {
			t.Fatal(err)
		}
	}
	f.wants("0", "2")
}

func TestCollections(t *testing.T) {
	f := newFixture(t, typ(record.Long), "collect_list(x, 4)", "collect_set(x, 3)")
	f.add(long(10), null, long(9), long(10), long(-1), long(7), long(9))
	f.wants("[10,9,10,-1]", "[-1,7,9]")

	f = newFixture(t, typ(record.String), "collect_set(x, 9)", "collect_list(x, 2)")
	f.add(text("q\"\\\n\x01"), text("é\xff"), text(""), text("é\xff"))
	f.wants(`["","q\"\\\n\u0001","é`+"\uFFFD"+`"]`, `["q\"\\\n\u0001","é`+"\uFFFD"+`"]`)

	f = newFixture(t, typ(record.Decimal), "collect_set(x, 9)", "approx_distinct(x)")
	f.add(dec("1.50"), dec("1.5"), dec("12345678901234567890.0"), dec("12345678901234567890"), long(2), dec("-0.5"))
	f.wants("[-0.5,1.5,2,12345678901234567890]", "4")

	f = newFixture(t, record.Type{Any: true}, "collect_list(x, 9)")
	f.add(record.Value{Kind: record.Map, Raw: []byte(`{"a":[1]}`)}, record.BoolValue(true), record.BytesValue([]byte("hi")), double(1.5),
		record.TimeValue(1500), record.DurationValue(3))
	f.wants(`[{"a":[1]},true,"aGk=",1.5,1500,3]`)

	f = newFixture(t, record.Type{Kind: record.Time, Form: record.RFC3339}, "collect_list(x, 9)")
	f.add(record.TimeValue(1500))
	f.wants(`["1970-01-01T00:00:01.5Z"]`)

	f = newFixture(t, typ(record.Double), "collect_set(x, 2)")
	if f.addAt(0, double(math.NaN())) == nil {
		t.Error("NaN went into a list, which JSON cannot write")
	}
	f.add(double(0), double(math.Copysign(0, -1)))
	f.wants("[0]")
}

func TestValueOfAnotherKindIsAnError(t *testing.T) {
	f := newFixture(t, typ(record.Long), "sum(x)")
	if err := f.addAt(0, text("7")); err == nil || err.Error() != "aggregate f0: the value is a string where long|null is declared" {
		t.Errorf("error %v", err)
	}
}

func TestTypes(t *testing.T) {
	cases := []struct {
		call string
		arg  record.Type
		want string
	}{
		{"count()", record.Type{}, "long"},
		{"count(x)", typ(record.String), "long"},
		{"sum(x)", record.Type{Kind: record.Long}, "long"},
		{"sum(x)", typ(record.Double), "double|null"},
		{"sum(x)", typ(record.Decimal), "decimal|null"},
		{"avg(x)", record.Type{Kind: record.Long}, "double"},
		{"avg(x)", typ(record.Decimal), "decimal|null"},
		{"avg(x)", record.Type{Kind: record.Duration}, "duration"},
		{"min(x)", record.Type{Kind: record.Time}, "timestamp_ms"},
		{"first(x)", typ(record.Map), "map|null"},
		{"last(x)", record.Type{Any: true}, "any"},
		{"collect_set(x, 2)", typ(record.String), "list"},
		{"approx_distinct(x)", typ(record.String), "long"},
		{"sum(x)", typ(record.String), "error: aggregate r: sum: x is string|null and cannot be added; sum takes long, double, decimal or a duration"},
		{"avg(x)", typ(record.Time), "error: aggregate r: avg: x is timestamp_ms|null and has no average; avg takes long, double, decimal or a duration"},
		{"max(x)", typ(record.Map), "error: aggregate r: max: x is map|null and has no order; max takes numbers, times, durations, booleans, strings and bytes"},
		{"sum(x)", record.Type{Any: true}, "error: aggregate r: sum: x is any and cannot be added; sum takes long, double, decimal or a duration"},
		{"first(x)", record.Type{Kind: record.Null}, "error: aggregate r: first: x is null and has no type; cast it, or declare the field's type"},
	}
	for _, c := range cases {
		set, err := aggregate.NewSet([]aggregate.Item{{Name: "r", Call: mustParse(t, c.call), Arg: c.arg}})
		got := ""
		if err != nil {
			got = "error: " + err.Error()
		} else {
			got = set.Fields()[0].Type.String()
		}
		if got != c.want {
			t.Errorf("%s of %s:\n got %s\nwant %s", c.call, c.arg, got, c.want)
		}
	}
	twice := aggregate.Item{Name: "r", Call: mustParse(t, "count()")}
	if _, err := aggregate.NewSet([]aggregate.Item{twice, twice}); err == nil {
		t.Error("two aggregates of one name were accepted")
	}
	folded := aggregate.Item{Name: "r", Call: mustParse(t, "fold('', acc)"), Arg: typ(record.Long), Init: text(""),
		Eval: func(r *record.Row) (record.Value, error) { return r.Acc, nil }}
	_, err := aggregate.NewSet([]aggregate.Item{folded})
	var e *aggregate.Error
	if !errors.As(err, &e) || e.Offset != 5 || e.Len != 2 {
		t.Errorf("a fold from string to long: %v", err)
	}
}
