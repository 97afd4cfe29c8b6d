package aggregate

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"

	"millrace/record"
)

// appendJSON appends a collected value as JSON: bytes as base64, a duration as nanoseconds, a time in the form its
// field has. Lists and maps are JSON text already.
func appendJSON(dst []byte, v record.Value, form record.TimeForm) []byte {
	switch v.Kind {
	case record.Bool:
		return strconv.AppendBool(dst, v.Num != 0)
	case record.Long, record.Duration:
		return strconv.AppendInt(dst, v.Num, 10)
	case record.Double:
		return strconv.AppendFloat(dst, v.Float(), 'g', -1, 64)
	case record.Decimal:
		return record.AppendDecimal(dst, v)
	case record.Time:
		if form == record.EpochMillis {
			return strconv.AppendInt(dst, v.Num, 10)
		}
		dst = append(dst, '"')
		dst = time.UnixMilli(v.Num).UTC().AppendFormat(dst, time.RFC3339Nano)
		return append(dst, '"')
	case record.String:
		return appendJSONString(dst, v.Raw)
	case record.Bytes:
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, v.Raw)
		return append(dst, '"')
	case record.List, record.Map:
		return append(dst, v.Raw...)
	}
	return append(dst, "null"...)
}

// appendJSONString quotes what JSON demands and nothing else; bytes that are not UTF-8 become U+FFFD.
func appendJSONString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		b := s[i]
		if b >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
		switch {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\n':
			dst = append(dst, '\\', 'n')
		case b == '\r':
			dst = append(dst, '\\', 'r')
		case b == '\t':
			dst = append(dst, '\\', 't')
		case b < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}
