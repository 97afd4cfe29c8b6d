package topology

import (
	"bytes"
	"fmt"
	"strconv"

	"millrace/record"
)

// A groupKey turns the values of group_by into the key of the store's row and of the result, and back. One value is
// written as plain text, so that a result's key is what a consumer expects; several are joined by '|', with '|' and '\'
// in them escaped by '\'.
type groupKey struct{ fields []record.Field }

// append writes the key; ok is false when a value is null, which has no group.
func (g groupKey) append(dst []byte, values []record.Value) (key []byte, ok bool) {
	for i, v := range values {
		if v.IsNull() {
			return dst, false
		}
		if len(g.fields) == 1 {
			return appendText(dst, v), true
		}
		if i > 0 {
			dst = append(dst, '|')
		}
		from := len(dst)
		dst = appendText(dst, v)
		if bytes.ContainsAny(dst[from:], `|\`) {
			dst = append(dst[:from], escapePart(dst[from:])...)
		}
	}
	return dst, true
}

func escapePart(part []byte) []byte {
	var out []byte
	for _, c := range part {
		if c == '|' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return out
}

// parse fills out with the values that append wrote. They alias the key.
func (g groupKey) parse(key []byte, out []record.Value) error {
	rest := key
	for i, f := range g.fields {
		part := rest
		if len(g.fields) > 1 {
			part, rest = cutPart(rest)
		}
		v, err := parseText(part, f.Type)
		if err != nil {
			return fmt.Errorf("group key %q: %s: %w", key, f.Name, err)
		}
		out[i] = v
	}
	return nil
}

// cutPart returns the text up to the next '|' that is not escaped, unescaped.
func cutPart(b []byte) (part, rest []byte) {
	escaped := false
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			escaped = true
			i++
		case '|':
			return unescapePart(b[:i], escaped), b[i+1:]
		}
	}
	return unescapePart(b, escaped), nil
}

func unescapePart(part []byte, escaped bool) []byte {
	if !escaped {
		return part
	}
	var out []byte
	for i := 0; i < len(part); i++ {
		if part[i] == '\\' && i+1 < len(part) {
			i++
		}
		out = append(out, part[i])
	}
	return out
}

// appendText writes a scalar as plain text.
func appendText(dst []byte, v record.Value) []byte {
	switch v.Kind {
	case record.String, record.Bytes, record.List, record.Map:
		return append(dst, v.Raw...)
	case record.Bool:
		return strconv.AppendBool(dst, v.Num == 1)
	case record.Double:
		f := v.Float()
		if f == 0 {
			f = 0 // 0 and -0 are equal, and one group
		}
		return record.AppendDouble(dst, f)
	case record.Decimal:
		return record.AppendDecimal(dst, v)
	}
	return strconv.AppendInt(dst, v.Num, 10)
}

func parseText(part []byte, t record.Type) (record.Value, error) {
	kind := t.Kind
	if t.Any {
		kind = record.String
	}
	switch kind {
	case record.Bool:
		return record.BoolValue(string(part) == "true"), nil
	case record.Double:
		f, err := strconv.ParseFloat(string(part), 64)
		if err != nil {
			return record.Value{}, fmt.Errorf("%q is no number", part)
		}
		return record.DoubleValue(f), nil
	case record.Decimal:
		return record.ParseDecimal(part)
	case record.Long, record.Time, record.Duration:
		n, err := strconv.ParseInt(string(part), 10, 64)
		if err != nil {
			return record.Value{}, fmt.Errorf("%q is no whole number", part)
		}
		return record.Value{Kind: kind, Num: n}, nil
	}
	return record.Value{Kind: kind, Raw: part}, nil
}
