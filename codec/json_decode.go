package codec

import (
	"encoding/base64"
	"unicode/utf16"
	"unicode/utf8"

	"millrace/record"
)

// JSONDecoder decodes the planned fields of JSON objects.
type JSONDecoder struct {
	scanner
	fields  []Field
	root    *level
	whole   []int
	scratch []byte // strings that had escapes, decoded bytes
	wrong   *TypeError
	layout  layout
	noting  bool // values that are read are noted in layout.reads
}

// NewJSONDecoder returns a decoder for fields. Numbers of type any become long if they are written without fraction and
// exponent and fit int64, and double otherwise; lists and maps stay JSON text. A decimal is read from a number or from a
// string, a timestamp from RFC 3339 text, a timestamp_ms from an integer, bytes from base64.
func NewJSONDecoder(fields []Field) *JSONDecoder {
	d := &JSONDecoder{fields: fields}
	d.root, d.whole = plan(fields)
	return d
}

// Decode fills into[i] for fields[i]; into has at least as many. The whole document is checked, also where no field is
// read: by RFC 8259, as UTF-8, at most 512 levels deep. The last of equal keys wins. The error is a *SyntaxError, or a
// *TypeError for the first field of a wrong type; into is then of no use. into aliases src and the decoder's scratch
// until the next Decode.
func (d *JSONDecoder) Decode(src []byte, into []record.Value) error {
	try, learn := d.layout.ready()
	if try {
		d.begin(src, into)
		ok := d.predicted(into)
		d.layout.fitted(ok)
		if ok {
			return d.typeError()
		}
	}
	d.begin(src, into)
	d.noting, d.layout.reads = learn && len(d.whole) == 0, d.layout.reads[:0]
	if !d.document(into) {
		return d.syntax
	}
	if d.noting && d.wrong == nil {
		d.layout.learn(src, d.fields, into)
	}
	return d.typeError()
}

func (d *JSONDecoder) begin(src []byte, into []record.Value) {
	d.src, d.pos, d.syntax, d.wrong = src, 0, nil, nil
	d.scratch = d.scratch[:0]
	clear(into[:len(d.fields)])
}

// typeError is nil as an error, not only as a pointer, where there is none.
func (d *JSONDecoder) typeError() error {
	if d.wrong != nil {
		return d.wrong
	}
	return nil
}

func (d *JSONDecoder) document(into []record.Value) bool {
	c, start := d.peek(), d.pos
	switch {
	case c == '{':
		if !d.object(d.root, into, 1) {
			return false
		}
	case !d.skip(0):
		return false
	case len(d.root.entries) > 0:
		d.mismatch(Field{Type: record.Type{Kind: record.Map}}, start, kindAt(c))
	}
	end := d.pos
	if d.peek(); d.pos < len(d.src) {
		return d.fail(d.pos, "more text after the document")
	}
	for _, i := range d.whole {
		d.pos = start
		if !d.value(d.fields[i], &into[i], 0) {
			return false
		}
	}
	d.pos = end
	return true
}

// object decodes the object whose brace is at pos.
func (d *JSONDecoder) object(l *level, into []record.Value, depth int) bool {
	more := d.open(depth, '}')
	for i := 0; more; i++ {
		if !d.key() {
			return false
		}
		at, ok := d.known(l, i)
		if !ok || !d.colon() {
			return false
		}
		if at < 0 {
			ok = d.skip(depth)
		} else {
			ok = d.wanted(&l.entries[at], into, depth)
		}
		if !ok {
			return false
		}
		more = d.next('}')
	}
	return d.syntax == nil
}

// known takes the key at pos, the object's i-th, and returns its index in l.entries, or -1.
func (d *JSONDecoder) known(l *level, i int) (int, bool) {
	if i < len(l.guesses) {
		g := &l.guesses[i]
		end := d.pos + len(g.text)
		if len(g.text) > 0 && end <= len(d.src) && string(d.src[d.pos:end]) == string(g.text) {
			d.pos = end
			return g.entry, true
		}
	}
	raw, escaped, ok := d.text()
	if !ok {
		return -1, false
	}
	if escaped {
		// Such a key is not learnt: a guess compares the bytes as they are written.
		return l.find(d.unescape(raw)), true
	}
	at := l.find(raw)
	l.learn(i, raw, at)
	return at, true
}

// wanted decodes the value at pos for the fields that it is, and for those below it.
func (d *JSONDecoder) wanted(e *entry, into []record.Value, depth int) bool {
	start := d.pos
	if e.below != nil {
		e.below.clear(into) // an earlier equal key may have filled them
		if start < len(d.src) && d.src[start] == '{' {
			if !d.object(e.below, into, depth+1) {
				return false
			}
		} else if !d.skip(depth) {
			return false
		}
	}
	for _, i := range e.fields {
		if d.noting {
			d.layout.reads = append(d.layout.reads, read{start, i})
		}
		d.pos = start
		if !d.value(d.fields[i], &into[i], depth) {
			return false
		}
	}
	return true
}

// value decodes the value at pos as f's type. A wrong type is noted, and the rest of the document is still checked, so
// that whether a record is malformed does not depend on the fields that the plan reads.
func (d *JSONDecoder) value(f Field, out *record.Value, depth int) bool {
	if d.pos >= len(d.src) {
		return d.fail(d.pos, "")
	}
	start, c := d.pos, d.src[d.pos]
	*out = record.Value{}
	switch c {
	case 'n':
		out.Kind = record.Null
		return d.literal("null")
	case '"':
		d.pos++
		raw, escaped, ok := d.text()
		if !ok {
			return false
		}
		if escaped {
			raw = d.unescape(raw)
		}
		return d.fromText(f, raw, out, start)
	case 't', 'f', '{', '[':
		if !d.skip(depth) {
			return false
		}
		kind := kindAt(c)
		if !f.Type.Any && f.Type.Kind != kind {
			return d.mismatch(f, start, kind)
		}
		out.Kind = kind
		if kind != record.Bool {
			out.Raw = d.src[start:d.pos:d.pos]
		} else if c == 't' {
			out.Num = 1
		}
		return true
	}
	var n number
	if !d.number(&n) {
		return false
	}
	return d.fromNumber(f, &n, out, start)
}

// kindAt is the kind of the value that begins with c.
func kindAt(c byte) record.Kind {
	switch c {
	case '{':
		return record.Map
	case '[':
		return record.List
	case '"':
		return record.String
	case 't', 'f':
		return record.Bool
	case 'n':
		return record.Null
	}
	return record.Double
}

func (d *JSONDecoder) fromText(f Field, raw []byte, out *record.Value, start int) bool {
	if f.Type.Any || f.Type.Kind == record.String {
		out.Kind, out.Raw = record.String, raw
		return true
	}
	switch f.Type.Kind {
	case record.Time:
		if ms, ok := ParseRFC3339(raw); ok && f.Type.Form == record.RFC3339 {
			*out = record.TimeValue(ms)
			return true
		} else if f.Type.Form == record.RFC3339 {
			return d.wrongText(f, start, "string that is not an RFC 3339 time")
		}
	case record.Decimal:
		v, err := record.ParseDecimal(raw)
		if err != nil {
			return d.wrongText(f, start, "string that is not a decimal number")
		}
		*out = v
		return true
	case record.Bytes:
		at := len(d.scratch)
		grown, err := base64.StdEncoding.AppendDecode(d.scratch, raw)
		if err != nil {
			return d.wrongText(f, start, "string that is not base64")
		}
		d.scratch = grown
		*out = record.BytesValue(grown[at:len(grown):len(grown)])
		return true
	}
	return d.mismatch(f, start, record.String)
}

func (d *JSONDecoder) fromNumber(f Field, n *number, out *record.Value, start int) bool {
	kind := f.Type.Kind
	if f.Type.Any {
		v, ok := n.plainLong()
		if ok {
			*out = record.LongValue(v)
			return true
		}
		kind = record.Double
	}
	switch {
	case kind == record.Double:
		v, ok := n.double()
		if !ok {
			return d.wrongText(f, start, "number out of range")
		}
		*out = record.DoubleValue(v)
	case kind == record.Long, kind == record.Time && f.Type.Form == record.EpochMillis:
		v, got := n.long()
		if got != "" {
			return d.wrongText(f, start, got)
		}
		out.Kind, out.Num = kind, v
	case kind == record.Decimal:
		v, err := record.ParseDecimal(n.text)
		if err != nil {
			return d.wrongText(f, start, "number out of range")
		}
		*out = v
	default:
		return d.wrongText(f, start, "number")
	}
	return true
}

func (d *JSONDecoder) mismatch(f Field, start int, got record.Kind) bool {
	switch got {
	case record.Bool:
		return d.wrongText(f, start, "boolean")
	case record.Double:
		return d.wrongText(f, start, "number")
	}
	return d.wrongText(f, start, got.String())
}

// wrongText notes the first field of a wrong type and returns true: the document is well-formed so far.
func (d *JSONDecoder) wrongText(f Field, start int, got string) bool {
	if d.wrong == nil {
		d.wrong = &TypeError{Path: f.Path, Want: f.Type, Got: got, Offset: start}
	}
	return true
}

// unescape returns raw, whose escapes text has checked, without them, in the scratch. Scratch that grows moves; what was
// returned before stays valid where it was.
func (d *JSONDecoder) unescape(raw []byte) []byte {
	b := d.scratch
	start := len(b)
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			b = append(b, c)
			i++
			continue
		}
		if raw[i+1] != 'u' {
			b = append(b, unescaped[raw[i+1]])
			i += 2
			continue
		}
		r, _ := hex4(raw[i+2:])
		i += 6
		if utf16.IsSurrogate(r) {
			// A surrogate without its other half has no character; it becomes U+FFFD, as everywhere in Go.
			pair := rune(utf8.RuneError)
			if len(raw) >= i+6 && raw[i] == '\\' && raw[i+1] == 'u' {
				low, _ := hex4(raw[i+2:])
				pair = utf16.DecodeRune(r, low)
			}
			if r = pair; r != utf8.RuneError {
				i += 6
			}
		}
		b = utf8.AppendRune(b, r)
	}
	d.scratch = b
	return b[start:len(b):len(b)]
}

var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
