package expr

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"millrace/record"

	"pgregory.net/rapid"
)

// source draws an expression of the native operators. Most are well typed; the others test that both ways refuse alike.
func source(t *rapid.T, kind record.Kind, depth int) string {
	if depth == 0 || rapid.IntRange(0, 5).Draw(t, "leaf") == 0 {
		return leafSource(t, kind)
	}
	if rapid.IntRange(0, 19).Draw(t, "other type") == 0 {
		kind = rapid.SampledFrom([]record.Kind{record.Bool, record.Long, record.Double, record.Decimal, record.String}).Draw(t, "kind")
	}
	sub := func(k record.Kind) string { return source(t, k, depth-1) }
	number := rapid.SampledFrom([]record.Kind{record.Long, record.Double, record.Decimal})
	switch rapid.IntRange(0, 3).Draw(t, "shape") {
	case 0:
		return fmt.Sprintf("(%s ? %s : %s)", sub(record.Bool), sub(kind), sub(kind))
	case 1:
		return fmt.Sprintf("((%s) ?? (%s))", sub(kind), sub(kind))
	}
	switch kind {
	case record.Bool:
		return boolSource(t, sub, number)
	case record.Long:
		return rapid.SampledFrom([]func() string{
			func() string { return fmt.Sprintf("(%s %s %s)", sub(kind), pick(t, "+", "-", "*", "%"), sub(kind)) },
			func() string { return fmt.Sprintf("(-%s)", sub(kind)) },
			func() string { return fmt.Sprintf("int(%s)", sub(number.Draw(t, "number"))) },
			func() string { return fmt.Sprintf("(%s).Milliseconds()", sub(record.Duration)) },
		}).Draw(t, "long")()
	case record.Double:
		return rapid.SampledFrom([]func() string{
			func() string {
				other := number.Draw(t, "number")
				return fmt.Sprintf("(%s %s %s)", sub(kind), pick(t, "+", "-", "*", "/", "**"), sub(other))
			},
			func() string { return fmt.Sprintf("float(%s)", sub(number.Draw(t, "number"))) },
			func() string { return fmt.Sprintf("(%s).%s()", sub(record.Duration), pick(t, "Seconds", "Hours")) },
		}).Draw(t, "double")()
	case record.Decimal:
		other := pick(t, "long", "decimal")
		operand := map[string]record.Kind{"long": record.Long, "decimal": record.Decimal}[other]
		return fmt.Sprintf("(%s %s %s)", sub(kind), pick(t, "+", "-", "*"), sub(operand))
	case record.String:
		return rapid.SampledFrom([]func() string{
			func() string { return fmt.Sprintf("(%s + %s)", sub(kind), sub(kind)) },
			func() string { return fmt.Sprintf("string(%s)", sub(number.Draw(t, "number"))) },
		}).Draw(t, "string")()
	case record.Time:
		return fmt.Sprintf("(%s %s %s)", sub(kind), pick(t, "+", "-"), sub(record.Duration))
	}
	return rapid.SampledFrom([]func() string{
		func() string { return fmt.Sprintf("(%s - %s)", sub(record.Time), sub(record.Time)) },
		func() string { return fmt.Sprintf("(%s * %s)", sub(kind), sub(number.Draw(t, "number"))) },
		func() string { return fmt.Sprintf("(%s %s %s)", sub(kind), pick(t, "+", "-"), sub(kind)) },
	}).Draw(t, "duration")()
}

func boolSource(t *rapid.T, sub func(record.Kind) string, number *rapid.Generator[record.Kind]) string {
	comparison := func() string { return pick(t, "==", "!=", "<", "<=", ">", ">=") }
	return rapid.SampledFrom([]func() string{
		func() string {
			return fmt.Sprintf("(%s %s %s)", sub(record.Bool), pick(t, "&&", "||"), sub(record.Bool))
		},
		func() string { return fmt.Sprintf("not (%s)", sub(record.Bool)) },
		func() string {
			return fmt.Sprintf("(%s %s %s)", sub(number.Draw(t, "a")), comparison(), sub(number.Draw(t, "b")))
		},
		func() string { return fmt.Sprintf("(%s %s %s)", sub(record.String), comparison(), sub(record.String)) },
		func() string { return fmt.Sprintf("(%s %s %s)", sub(record.Time), comparison(), sub(record.Time)) },
		func() string { return fmt.Sprintf("(%s %s nil)", sub(number.Draw(t, "a")), pick(t, "==", "!=")) },
		func() string { return fmt.Sprintf("(%s in [1, 2.5, 7, nil])", sub(number.Draw(t, "a"))) },
		func() string { return fmt.Sprintf(`(%s in ["", "a", "ab"])`, sub(record.String)) },
		func() string {
			return fmt.Sprintf("(%s %s %s)", sub(record.String), pick(t, "contains", "startsWith", "endsWith"), sub(record.String))
		},
		func() string { return fmt.Sprintf(`(%s matches "^a+b?$")`, sub(record.String)) },
	}).Draw(t, "bool")()
}

func pick(t *rapid.T, words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }

func leafSource(t *rapid.T, kind record.Kind) string {
	switch kind {
	case record.Bool:
		return pick(t, "value.ok", "true", "false", "value.loose")
	case record.Long:
		return pick(t, "value.count", "value.big", "value.none", "value.loose", "0", "1", "-3", "9223372036854775807")
	case record.Double:
		return pick(t, "value.cost", "0.0", "2.5", "-1e18", "value.loose")
	case record.Decimal:
		return pick(t, "value.amount", `decimal("0.10")`, `decimal("-99999999999999999999.5")`)
	case record.String:
		return pick(t, "value.ad_id", "value.note", `"a"`, `""`, "key", "headers.h", "value.loose")
	case record.Time:
		return pick(t, "value.at", "timestamp", `date("2026-01-02")`, "window.end")
	}
	return pick(t, `duration("1500ms")`, `duration("100h")`, "(value.at - timestamp)")
}

// drawValue draws a value of a declared type, or null, or nothing.
func drawValue(t *rapid.T, typ record.Type) record.Value {
	switch rapid.IntRange(0, 9).Draw(t, "null") {
	case 0:
		return record.Value{}
	case 1:
		return record.NullValue()
	}
	kind := typ.Kind
	if typ.Any {
		kind = rapid.SampledFrom([]record.Kind{record.Bool, record.Long, record.Double, record.String, record.List}).Draw(t, "any")
	}
	switch kind {
	case record.Bool:
		return record.BoolValue(rapid.Bool().Draw(t, "bool"))
	case record.Long:
		return record.LongValue(rapid.OneOf(rapid.Int64(), rapid.Int64Range(-9, 9), rapid.Just(int64(math.MinInt64))).Draw(t, "long"))
	case record.Double:
		return record.DoubleValue(rapid.OneOf(rapid.Float64(), rapid.Just(math.NaN()), rapid.Just(7.0)).Draw(t, "double"))
	case record.Decimal:
		return record.DecimalValue(rapid.Int64().Draw(t, "decimal"), rapid.Int32Range(0, 4).Draw(t, "scale"))
	case record.String:
		return record.StringValue([]byte(rapid.StringMatching(`[ab0-9]{0,3}`).Draw(t, "string")))
	case record.Time:
		return record.TimeValue(rapid.Int64Range(-1e15, 1e15).Draw(t, "time"))
	case record.List:
		return record.Value{Kind: record.List, Raw: []byte(`[1]`)}
	}
	return record.Value{Kind: record.Map, Raw: []byte(`{}`)}
}

// An expression means the same compiled to closures, by declared types, and on the virtual machine, by the types of the
// values that it meets.
func TestNativeAndInterpretedAgree(t *testing.T) {
	failed, evaluated := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		kinds := []record.Kind{record.Bool, record.Long, record.Double, record.Decimal, record.String, record.Time, record.Duration}
		src := source(t, rapid.SampledFrom(kinds).Draw(t, "kind"), 4)
		native, machine := testScope(), testScope()
		p, err := compile(src, native, false)
		q, err2 := compile(src, machine, true)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%s: compiled %v, for the virtual machine %v", src, err, err2)
		}
		if err != nil {
			return
		}
		if !p.Native() || q.Native() {
			t.Fatalf("%s: native %v and %v", src, p.Native(), q.Native())
		}
		evalP, evalQ := p.Bind(), q.Bind()
		for range 4 {
			row := testRow(native.Value)
			for i, path := range native.Value.Paths() {
				row.Fields[i] = drawValue(t, path.Type)
			}
			v, err := evalP(row)
			w, err2 := evalQ(row)
			evaluated++
			if err != nil {
				failed++
			}
			if got, want := outcome(v, err), outcome(w, err2); got != want {
				t.Fatalf("%s: compiled it is %s, on the virtual machine %s", src, got, want)
			}
			if typ := p.Type(); err == nil && !v.IsNull() && !typ.Any && v.Kind != typ.Kind {
				t.Fatalf("%s is declared %s and gave %s", src, typ, show(v))
			}
		}
	})
	if evaluated < 20 || failed*10 > evaluated*9 { // -short draws twenty expressions, four rows each
		t.Errorf("%d evaluations, %d failed: too few test anything", evaluated, failed)
	}
}

func outcome(v record.Value, err error) string {
	if err != nil {
		return "error " + errors.Unwrap(err).Error()
	}
	return show(v)
}

// Whatever is written as an expression, compiling and evaluating it must not panic.
func TestAnyTextIsHandled(t *testing.T) {
	words := strings.Fields(`value . count value.tags ( ) [ ] { } , ; : ? ?. ?? # #acc .x let x = 1 2.5 "a" nil true + - * / % ** ..
		== != < > && || not in matches contains | upper map filter reduce sum len keys now date int string key headers meta window
		timestamp acc .Seconds() if else groupBy sortBy get $env`)
	rapid.Check(t, func(t *rapid.T) {
		src := strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 1, 12).Draw(t, "words"), " ")
		s := testScope()
		p, err := Compile(src, s)
		if err != nil {
			var problem *Error
			if !errors.As(err, &problem) || problem.Offset < 0 || problem.Offset+problem.Len > len(src) {
				t.Fatalf("%q: error %v", src, err)
			}
			return
		}
		if _, err := p.Bind()(testRow(s.Value)); err != nil && errors.Unwrap(err) == nil {
			t.Fatalf("%q: %v", src, err)
		}
	})
}
