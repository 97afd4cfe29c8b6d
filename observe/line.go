package observe

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

// maxValue is the longest value, in bytes, that a log line carries: broker texts and keys may be of any length.
const maxValue = 1024

// clean makes a value safe to print: what is not printable (line breaks, terminal sequences, text-direction marks,
// invalid UTF-8) is written as an escape, and what is too long is cut. Names and errors come from other machines, so
// that a value must not be able to forge a line or to drive the reader's terminal.
func clean(s string) string {
	cut := 0
	if len(s) > maxValue {
		end := maxValue
		for end > maxValue-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s, cut = s[:end], len(s)-end
	}
	if cut == 0 && printable(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	if cut > 0 {
		fmt.Fprintf(&b, "...(%d more bytes)", cut)
	}
	return b.String()
}

func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// cleanField applies clean to whatever of f is text.
func cleanField(f zap.Field) zap.Field {
	switch f.Type {
	case zapcore.StringType:
		f.String = clean(f.String)
	case zapcore.ErrorType:
		return zap.String(f.Key, clean(fmt.Sprint(f.Interface)))
	}
	return f
}

// consoleEncoder writes a line for people: time, level, message in a column, then name=value in the order given.
func consoleEncoder(e zapcore.Entry, fields []zap.Field) *buffer.Buffer {
	b := linePool.Get()
	b.AppendTime(e.Time, "15:04:05.000")
	b.AppendString(fmt.Sprintf(" %-5s %-19s", e.Level.CapitalString(), e.Message))
	for _, f := range fields {
		b.AppendByte(' ')
		b.AppendString(f.Key)
		b.AppendByte('=')
		b.AppendString(quoteIfNeeded(fieldText(f)))
	}
	b.AppendByte('\n')
	return b
}

var linePool = buffer.NewPool()

// fieldText renders the few kinds of field that this package makes.
func fieldText(f zap.Field) string {
	switch f.Type {
	case zapcore.StringType:
		return f.String
	case zapcore.DurationType:
		return time.Duration(f.Integer).String()
	case zapcore.BoolType:
		return strconv.FormatBool(f.Integer == 1)
	case zapcore.Int64Type, zapcore.Int32Type:
		return strconv.FormatInt(f.Integer, 10)
	}
	enc := zapcore.NewMapObjectEncoder()
	f.AddTo(enc)
	return clean(fmt.Sprint(enc.Fields[f.Key]))
}

func quoteIfNeeded(s string) string {
	if s == "" || strings.ContainsAny(s, " \"=") {
		return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
	}
	return s
}

// short rounds a duration to what a person reads.
func short(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
