package expr

import (
	"fmt"
	"strconv"
	"time"
	"unsafe"

	"millrace/record"
)

// convert computes the conversions to numbers and the methods of times and durations; null stays null.
func convert(o op, v record.Value) (record.Value, error) {
	if v.IsNull() {
		return record.NullValue(), nil
	}
	switch o {
	case opToLong:
		return toLong(v)
	case opToDouble:
		return toDouble(v)
	case opToDecimal:
		return toDecimal(v)
	}
	if o == opUnixMilli {
		if v.Kind == record.Time {
			return record.LongValue(v.Num), nil
		}
	} else if v.Kind == record.Duration {
		d := time.Duration(v.Num)
		switch o {
		case opSeconds:
			return record.DoubleValue(d.Seconds()), nil
		case opMinutes:
			return record.DoubleValue(d.Minutes()), nil
		case opHours:
			return record.DoubleValue(d.Hours()), nil
		case opMilliseconds:
			return record.LongValue(d.Milliseconds()), nil
		}
	}
	return v, fmt.Errorf("%s has no method %s", v.Kind, symbols[o])
}

func toLong(v record.Value) (record.Value, error) {
	n, ok := v.Num, true
	switch v.Kind {
	case record.Long:
	case record.Double:
		n, ok = truncate(v.Float())
	case record.Decimal:
		n, _, ok = record.DecimalToLong(v)
	case record.String:
		var err error
		if n, err = strconv.ParseInt(text(v.Raw), 10, 64); err != nil {
			return v, notANumber(opToLong, v)
		}
	default:
		return v, notConvertible(opToLong, v)
	}
	if !ok {
		return v, errNotAFiniteLong
	}
	return record.LongValue(n), nil
}

func toDouble(v record.Value) (record.Value, error) {
	switch {
	case numeric(v.Kind):
		return record.DoubleValue(asDouble(v)), nil
	case v.Kind != record.String:
		return v, notConvertible(opToDouble, v)
	}
	f, err := strconv.ParseFloat(text(v.Raw), 64)
	if err != nil || f-f != 0 { // NaN and the infinities are no numbers that a field could have
		return v, notANumber(opToDouble, v)
	}
	return record.DoubleValue(f), nil
}

func toDecimal(v record.Value) (record.Value, error) {
	switch v.Kind {
	case record.Decimal:
		return v, nil
	case record.Long:
		return asDecimal(v), nil
	case record.Double:
		return record.DecimalFromDouble(v.Float())
	case record.String:
		d, err := record.ParseDecimal(v.Raw)
		if err != nil {
			return v, notANumber(opToDecimal, v)
		}
		return d, nil
	}
	return v, notConvertible(opToDecimal, v)
}

func notANumber(o op, v record.Value) error {
	return fmt.Errorf("%s cannot convert %q: not a number that it can hold", symbols[o], v.Raw[:min(len(v.Raw), 40)])
}

func notConvertible(o op, v record.Value) error {
	return fmt.Errorf("%s cannot convert %s", symbols[o], v.Kind)
}

// text looks at bytes as a string, for functions that keep nothing of it.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// appendText appends what string(x) gives: numbers and booleans as in JSON, times as RFC 3339 in UTC.
func appendText(dst []byte, v record.Value) []byte {
	switch v.Kind {
	case record.Bool:
		return strconv.AppendBool(dst, v.Num != 0)
	case record.Long:
		return strconv.AppendInt(dst, v.Num, 10)
	case record.Double:
		return record.AppendDouble(dst, v.Float())
	case record.Decimal:
		return record.AppendDecimal(dst, v)
	case record.Time:
		return time.UnixMilli(v.Num).UTC().AppendFormat(dst, "2006-01-02T15:04:05.999Z07:00")
	case record.Duration:
		return append(dst, time.Duration(v.Num).String()...)
	}
	return append(dst, v.Raw...)
}
