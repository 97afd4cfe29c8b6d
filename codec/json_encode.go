package codec

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"

	"millrace/record"
)

// JSONEncoder writes rows of fixed fields as JSON objects. It keeps nothing between calls.
type JSONEncoder struct {
	keys  []string // `"name":`, escaped once
	forms []record.TimeForm
}

// NewJSONEncoder returns an encoder for rows whose i-th value is fields[i].
func NewJSONEncoder(fields []record.Field) *JSONEncoder {
	e := &JSONEncoder{}
	for _, f := range fields {
		key := append(appendString(nil, []byte(f.Name)), ':')
		e.keys = append(e.keys, string(key))
		e.forms = append(e.forms, f.Type.Form)
	}
	return e
}

// Append appends values, one a field, as an object in the fields' order. A Missing value is left out, a Null is written.
func (e *JSONEncoder) Append(dst []byte, values []record.Value) []byte {
	dst = append(dst, '{')
	first := len(dst)
	for i, key := range e.keys {
		if values[i].Kind == record.Missing {
			continue
		}
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = append(dst, key...)
		dst = AppendJSON(dst, values[i], e.forms[i])
	}
	return append(dst, '}')
}

// AppendJSON appends v as JSON; form says how a time is written. Doubles are the shortest text that reads back as the same
// number; NaN and the infinities, which JSON cannot express, become null, and so does a Missing value. Bytes are base64, a
// duration is text such as "1m30s". Strings come out as valid UTF-8: what is not becomes U+FFFD.
func AppendJSON(dst []byte, v record.Value, form record.TimeForm) []byte {
	switch v.Kind {
	case record.Bool:
		return strconv.AppendBool(dst, v.Num != 0)
	case record.Long:
		return strconv.AppendInt(dst, v.Num, 10)
	case record.Double:
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return append(dst, "null"...)
		}
		return record.AppendDouble(dst, f)
	case record.Decimal:
		return record.AppendDecimal(dst, v)
	case record.String:
		return appendString(dst, v.Raw)
	case record.Bytes:
		dst = base64.StdEncoding.AppendEncode(append(dst, '"'), v.Raw)
		return append(dst, '"')
	case record.Time:
		if form == record.RFC3339 {
			return append(AppendRFC3339(append(dst, '"'), v.Num), '"')
		}
		return strconv.AppendInt(dst, v.Num, 10)
	case record.Duration:
		return append(appendDuration(append(dst, '"'), v.Num), '"')
	case record.List, record.Map:
		return append(dst, v.Raw...)
	}
	return append(dst, "null"...)
}

// appendDuration writes ns as time.Duration does, without its allocation for the usual whole seconds.
func appendDuration(dst []byte, ns int64) []byte {
	if ns < 0 || ns%int64(time.Second) != 0 {
		return append(dst, time.Duration(ns).String()...)
	}
	seconds := ns / int64(time.Second)
	if seconds >= 3600 {
		dst = append(strconv.AppendInt(dst, seconds/3600, 10), 'h')
	}
	if seconds >= 60 {
		dst = append(strconv.AppendInt(dst, seconds/60%60, 10), 'm')
	}
	return append(strconv.AppendInt(dst, seconds%60, 10), 's')
}

// appendString appends b as a JSON string.
func appendString(dst, b []byte) []byte {
	dst = append(dst, '"')
	for len(b) > 0 {
		n := clean(b)
		dst = append(dst, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			break
		}
		if c := b[0]; c < utf8.RuneSelf {
			dst = appendEscape(dst, c)
			b = b[1:]
			continue
		}
		r, size := utf8.DecodeRune(b)
		dst = utf8.AppendRune(dst, r) // utf8.RuneError stands for a byte that is not UTF-8
		b = b[size:]
	}
	return append(dst, '"')
}

// clean is the length of the part of b that needs neither an escape nor a check.
func clean(b []byte) int {
	n := 0
	for ; n+8 <= len(b); n += 8 {
		if m := special(binary.LittleEndian.Uint64(b[n:])); m != 0 {
			return n + bits.TrailingZeros64(m)>>3
		}
	}
	for n < len(b) && b[n] >= ' ' && b[n] < utf8.RuneSelf && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}

const hexDigits = "0123456789abcdef"

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
