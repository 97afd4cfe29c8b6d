package aggregate

import (
	"fmt"

	"millrace/record"
)

// compile chooses the accumulator for an item's function and argument type.
func compile(it Item) (accumulator, *Error) {
	t := it.Arg
	if len(it.Call.Args) > 0 && !t.Any && t.Kind <= record.Null {
		return nil, typeError(it, "has no type", "cast it, or declare the field's type")
	}
	switch it.Call.Name {
	case "count":
		return count{}, nil
	case "sum":
		return compileSum(it)
	case "avg":
		return compileAvg(it)
	case "min":
		return compileExtreme(it, -1)
	case "max":
		return compileExtreme(it, +1)
	case "first":
		return edge{typ: t, sign: -1}, nil
	case "last":
		return edge{typ: t, sign: +1}, nil
	case "collect_list":
		return list{collection{form: t.Form, limit: it.Call.Limit}}, nil
	case "collect_set":
		return set{collection{form: t.Form, limit: it.Call.Limit}}, nil
	case "approx_distinct":
		return distinct{precision: it.Call.Precision}, nil
	case "fold":
		return compileFold(it)
	}
	return nil, &Error{Len: it.Call.Len, Message: fmt.Sprintf("unknown aggregate %s", it.Call.Name), Hint: nearest(it.Call.Name)}
}

func compileSum(it Item) (accumulator, *Error) {
	t := nullableIfUnset(it.Arg)
	switch {
	case t.Any:
	case t.Kind == record.Long, t.Kind == record.Duration:
		return sumLong{typ: t}, nil
	case t.Kind == record.Double:
		return sumDouble{typ: t}, nil
	case t.Kind == record.Decimal:
		return sumDecimal{typ: t}, nil
	}
	return nil, typeError(it, "cannot be added", "sum takes long, double, decimal or a duration")
}

func compileAvg(it Item) (accumulator, *Error) {
	t := nullableIfUnset(it.Arg)
	switch {
	case t.Any:
	case t.Kind == record.Long:
		return avgLong{typ: record.Type{Kind: record.Double, Nullable: t.Nullable}}, nil
	case t.Kind == record.Duration:
		return avgLong{typ: t}, nil
	case t.Kind == record.Double:
		return avgDouble{typ: t}, nil
	case t.Kind == record.Decimal:
		return avgDecimal{typ: t}, nil
	}
	return nil, typeError(it, "has no average", "avg takes long, double, decimal or a duration")
}

// compileExtreme returns min for sign -1 and max for sign +1.
func compileExtreme(it Item, sign int) (accumulator, *Error) {
	t := nullableIfUnset(it.Arg)
	if !t.Any {
		switch t.Kind {
		case record.Bool, record.Long, record.Double, record.Time, record.Duration:
			return extremeNumber{typ: t, sign: sign}, nil
		case record.Decimal:
			return extremeDecimal{typ: t, sign: sign}, nil
		case record.String, record.Bytes:
			return extremeBytes{typ: t, sign: sign}, nil
		}
	}
	return nil, typeError(it, "has no order", it.Call.Name+" takes numbers, times, durations, booleans, strings and bytes")
}

func compileFold(it Item) (accumulator, *Error) {
	if it.Eval == nil {
		return nil, &Error{Len: it.Call.Len, Message: "fold has no compiled expression", Hint: "this is a mistake of the caller"}
	}
	init, err := coerce(it.Init, it.Arg)
	if err != nil {
		return nil, &Error{
			Offset: it.Call.Args[0].Offset, Len: len(it.Call.Args[0].Text),
			Message: fmt.Sprintf("fold starts with a %s and goes on with a %s", it.Init.Kind, it.Arg),
			Hint:    "make both the same type",
		}
	}
	if init.IsNull() {
		it.Arg.Nullable = true
		init = record.NullValue()
	}
	init.Raw = append([]byte(nil), init.Raw...)
	return fold{typ: it.Arg, init: init, eval: it.Eval}, nil
}

// nullableIfUnset adds that a value of unknown type may be null. Without nulls among the arguments there is no null
// among the results, because a group exists only since its first record.
func nullableIfUnset(t record.Type) record.Type {
	t.Nullable = t.Nullable || t.Any
	return t
}

func typeError(it Item, problem, hint string) *Error {
	e := &Error{Len: it.Call.Len, Hint: hint, Message: fmt.Sprintf("%s: the argument %s", it.Call.Name, problem)}
	if n := len(it.Call.Args); n > 0 {
		arg := it.Call.Args[n-1]
		e.Offset, e.Len = arg.Offset, len(arg.Text)
		e.Message = fmt.Sprintf("%s: %s is %s and %s", it.Call.Name, arg.Text, it.Arg, problem)
	}
	return e
}
