package codec

import (
	"bytes"
	"encoding/binary"

	"millrace/record"
)

// layout predicts the next document from one that has been decoded: what stands between the values is the same, byte for
// byte. Producers write their records with one template, so that it nearly always is, and comparing it is several times
// cheaper than scanning it. The prediction is checked in full: the text between the values is compared, the values are
// scanned, and a document that differs in anything but its values is decoded anew without a prediction. A layout thus
// changes neither what is accepted nor what comes out, only its price.
type layout struct {
	pieces []piece // empty: nothing is predicted
	tail   []byte  // behind the last value
	hits   int     // documents that fitted lately
	misses int
	wait   int // documents until the next one is learnt
	pause  int // what wait is set to when this layout does not pay
	reads  []read
}

// piece is a value and what stands before it. Objects are not values here, since wanted ones may lie in them, unless they
// are wanted as a whole.
type piece struct {
	before separator
	field  int  // index of the field that it is; -1: nobody reads it
	text   bool // a string is taken as it is
	// As what a number is taken as it is, without and with a fraction; Missing: not as it is.
	whole, fraction record.Kind
	depth           int // of the object that it lies in
	object          bool
}

// read is a value that was decoded for a field.
type read struct{ start, field int }

const (
	maxPieces = 256
	maxPause  = 1 << 12
	memory    = 1 << 10 // hits after which they count for half
	fitsWell  = 64      // hits after which a layout was worth to be learnt
)

// separator is a text that is compared by words.
type separator struct {
	text         []byte
	word0, word1 uint64 // its first 16 bytes
	mask0, mask1 uint64 // which of them there are
}

func newSeparator(text []byte) separator {
	s := separator{text: bytes.Clone(text)}
	var padded, mask [16]byte
	for i := range copy(padded[:], text) {
		mask[i] = 0xff
	}
	s.word0, s.mask0 = binary.LittleEndian.Uint64(padded[:]), binary.LittleEndian.Uint64(mask[:])
	s.word1, s.mask1 = binary.LittleEndian.Uint64(padded[8:]), binary.LittleEndian.Uint64(mask[8:])
	return s
}

// at tells whether the text stands at pos.
func (s *separator) at(src []byte, pos int) bool {
	if pos+16 <= len(src) {
		head := src[pos : pos+16]
		if (binary.LittleEndian.Uint64(head)^s.word0)&s.mask0|(binary.LittleEndian.Uint64(head[8:])^s.word1)&s.mask1 != 0 {
			return false
		}
		if len(s.text) <= 16 {
			return true
		}
	}
	end := pos + len(s.text)
	return end <= len(src) && string(src[pos:end]) == string(s.text)
}

// predicted decodes the document if it has the predicted layout. If it has not, into and d are to be set up anew.
func (d *JSONDecoder) predicted(into []record.Value) bool {
	src, pos := d.src, 0
	for i := range d.layout.pieces {
		p := &d.layout.pieces[i]
		if !p.before.at(src, pos) {
			return false
		}
		pos += len(p.before.text)
		if pos >= len(src) {
			return false
		}
		switch c := src[pos]; {
		case c == '"':
			end := plain(src, pos+1)
			if !p.text || end == len(src) || src[end] != '"' { // or it has escapes, or other than ASCII
				break
			}
			if p.field >= 0 {
				into[p.field] = record.Value{Kind: record.String, Raw: src[pos+1 : end : end]}
			}
			pos = end + 1
			continue
		case c-'0' <= 9:
			n, fraction, end := plainNumber(src, pos)
			kind := p.whole
			if fraction > 0 {
				kind = p.fraction
			}
			if end < 0 || kind == record.Missing {
				break
			}
			switch {
			case p.field < 0:
			case kind == record.Double:
				into[p.field] = record.DoubleValue(float64(n) / exactPowers[fraction])
			default: // only a decimal keeps a fraction
				into[p.field] = record.Value{Kind: kind, Num: int64(n), Scale: int32(fraction)}
			}
			pos = end
			continue
		case c == '{' && !p.object:
			return false
		}
		d.pos = pos
		if p.field < 0 && !d.skip(p.depth) || p.field >= 0 && !d.value(d.fields[p.field], &into[p.field], p.depth) {
			return false
		}
		pos = d.pos
	}
	return string(src[pos:]) == string(d.layout.tail)
}

// plainNumber returns a number without sign and exponent as its digits, with how many of them stand behind the point; end is -1
// if it is another one, is none, has more digits than a double or an int64 holds exactly, or ends the document.
func plainNumber(src []byte, pos int) (n uint64, fraction, end int) {
	end = digits(src, pos, &n)
	if end-pos > 18 || src[pos] == '0' && end-pos > 1 || end == len(src) {
		return 0, 0, -1
	}
	if src[end] == '.' {
		point := end + 1
		end = digits(src, point, &n)
		if fraction = end - point; fraction == 0 || end-pos > 16 || end == len(src) {
			return 0, 0, -1
		}
	}
	if src[end]|0x20 == 'e' {
		return 0, 0, -1
	}
	return n, fraction, end
}

// ready tells whether a document is to be tried, or is to be learnt once it is decoded.
func (l *layout) ready() (try, learn bool) {
	if l.wait == 0 {
		return len(l.pieces) > 0, len(l.pieces) == 0
	}
	l.wait--
	return false, l.wait == 0
}

// fitted notes whether a document that was tried had the layout. One that rarely fits is given up, and the longer it takes
// to the next attempt the less the last one was worth.
func (l *layout) fitted(ok bool) {
	if ok {
		if l.hits++; l.hits == memory { // what fitted long ago says little
			l.hits, l.misses = l.hits/2, l.misses/2
		}
		return
	}
	if l.misses++; l.misses <= 4+l.hits/8 {
		return
	}
	if l.hits >= fitsWell {
		l.pause = 0
	}
	l.giveUp()
}

func (l *layout) giveUp() {
	l.pieces = l.pieces[:0]
	l.pause = min(max(2*l.pause, 1), maxPause)
	l.wait, l.hits, l.misses = l.pause, 0, 0
}

// learn takes the layout of a document that is valid and has been decoded, with the values that were read of it.
func (l *layout) learn(src []byte, fields []Field, into []record.Value) {
	l.pieces, l.hits, l.misses = l.pieces[:0], 0, 0
	if !l.decided(into) || !l.cut(src) {
		l.giveUp()
	}
	for i := range l.pieces {
		if p := &l.pieces[i]; p.field >= 0 {
			p.text, p.whole, p.fraction = plainKinds(fields[p.field].Type)
		}
	}
}

// plainKinds tells what of a field of the type needs no conversion; see piece.
func plainKinds(t record.Type) (text bool, whole, fraction record.Kind) {
	switch {
	case t.Any:
		return true, record.Long, record.Double
	case t.Kind == record.Double, t.Kind == record.Decimal:
		return false, t.Kind, t.Kind
	case t.Kind == record.Long, t.Kind == record.Time && t.Form == record.EpochMillis:
		return false, t.Kind, record.Missing
	}
	return t.Kind == record.String, record.Missing, record.Missing
}

// decided tells whether each value that was read is its field's: an equal key later in the document replaces it.
func (l *layout) decided(into []record.Value) bool {
	for i, r := range l.reads {
		if into[r.field].Kind == record.Missing {
			return false
		}
		for _, earlier := range l.reads[:i] {
			if earlier.field == r.field {
				return false
			}
		}
	}
	return true
}

// cut divides the document into its values and what stands between them; false if it has too many, or one that was read
// lies in another.
func (l *layout) cut(src []byte) bool {
	s, from, depth, reads := scanner{src: src}, 0, 0, l.reads
	for s.pos < len(src) {
		start, c := s.pos, src[s.pos]
		field := -1
		if len(reads) > 0 && reads[0].start == start {
			field, reads = reads[0].field, reads[1:]
		}
		switch {
		case c == '{' && field < 0:
			depth++
			fallthrough
		case c == '}' || c == ',' || c == ':' || c <= ' ':
			if c == '}' {
				depth--
			}
			s.pos++
			continue
		}
		if !s.skip(depth) || len(l.pieces) == maxPieces {
			return false
		}
		end := s.pos
		if c == '"' && s.peek() == ':' { // a key belongs to what stands before its value
			continue
		}
		s.pos = end
		l.pieces = append(l.pieces, piece{before: newSeparator(src[from:start]), field: field, text: true, whole: record.Long, fraction: record.Double, depth: depth, object: c == '{'})
		from = end
	}
	l.tail = append(l.tail[:0], src[from:]...)
	return len(reads) == 0 && len(l.pieces) > 0
}
