package codec

import (
	"encoding/binary"
	"math"
	"strconv"
	"unsafe"

	"millrace/record"
)

// number is a scanned number: its text, and its value as mantissa * 10^exponent if whole is true.
type number struct {
	text     []byte
	mantissa uint64
	exponent int
	negative bool
	plain    bool // neither a fraction nor an exponent
	whole    bool // mantissa holds all digits
}

// number scans the number at pos by JSON's grammar: no leading zeros, digits on both sides of the point.
func (s *scanner) number(n *number) bool {
	src, start := s.src, s.pos
	pos := start
	*n = number{plain: true}
	if pos < len(src) && src[pos] == '-' {
		n.negative = true
		pos++
	}
	first := pos
	pos = digits(src, pos, &n.mantissa)
	count := pos - first
	switch {
	case count == 0:
		return s.fail(pos, "want a value")
	case count > 1 && src[first] == '0':
		return s.fail(first, "number with a leading zero")
	}
	if pos < len(src) && src[pos] == '.' {
		n.plain = false
		point := pos + 1
		pos = digits(src, point, &n.mantissa)
		if pos == point {
			return s.fail(pos, "want a digit after the point")
		}
		count += pos - point
		n.exponent = point - pos
	}
	if pos < len(src) && src[pos]|0x20 == 'e' {
		n.plain = false
		if pos = exponent(src, pos+1, n); pos < 0 {
			return s.fail(s.pos, "number without digits in its exponent")
		}
	}
	n.whole = count <= 19 // the largest number of 19 digits fits uint64
	n.text = src[start:pos:pos]
	s.pos = pos
	return true
}

// digits appends the digits at pos to the mantissa, modulo 2^64, and returns where they end.
func digits(src []byte, pos int, mantissa *uint64) int {
	m := *mantissa
	for pos+8 <= len(src) {
		w := binary.LittleEndian.Uint64(src[pos:])
		if !eightDigits(w) {
			break
		}
		m = m*1e8 + eight(w)
		pos += 8
	}
	for pos < len(src) {
		c := src[pos] - '0'
		if c > 9 {
			break
		}
		m = m*10 + uint64(c)
		pos++
	}
	*mantissa = m
	return pos
}

// eightDigits tells whether all bytes of w are digits: their upper halves are 3, and still are with 6 added.
func eightDigits(w uint64) bool {
	return w&(ones*0xf0) == ones*'0' && (w+ones*6)&(ones*0xf0) == ones*'0'
}

// eight is the number that eight digits are, the first of them in the lowest byte: neighbours are joined to numbers of
// two digits, these to numbers of four, and these to the whole.
func eight(w uint64) uint64 {
	w &= ones * 0x0f
	w = w*10 + w>>8
	const mask = 0x000000ff000000ff
	return (w&mask*(100+1000000<<32) + w>>16&mask*(1+10000<<32)) >> 32
}

func exponent(src []byte, pos int, n *number) int {
	negative := false
	if pos < len(src) && (src[pos] == '-' || src[pos] == '+') {
		negative = src[pos] == '-'
		pos++
	}
	start, e := pos, 0
	for pos < len(src) && src[pos]-'0' <= 9 {
		e = min(e*10+int(src[pos]-'0'), 1<<20) // beyond every double's range already
		pos++
	}
	if pos == start {
		return -1
	}
	if negative {
		e = -e
	}
	n.exponent += e
	return pos
}

// plainLong returns a number that is written without fraction and exponent, if int64 holds it.
func (n *number) plainLong() (int64, bool) {
	if !n.plain || !n.whole {
		return 0, false
	}
	if n.negative {
		return -int64(n.mantissa), n.mantissa <= 1<<63
	}
	return int64(n.mantissa), n.mantissa < 1<<63
}

// long returns the number if it is integral, also when written as 5.0 or 1e3, as some producers do; otherwise it says
// what the number is.
func (n *number) long() (v int64, got string) {
	if v, ok := n.plainLong(); ok {
		return v, ""
	}
	d, err := record.ParseDecimal(n.text)
	if err != nil {
		return 0, "number out of range"
	}
	v, exact, ok := record.DecimalToLong(d)
	switch {
	case !ok:
		return 0, "number out of range"
	case !exact:
		return 0, "number that is not integral"
	}
	return v, ""
}

var exactPowers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// double returns the nearest double; ok is false beyond the range of doubles.
func (n *number) double() (f float64, ok bool) {
	// Mantissa and power are both exact doubles here, so that one operation rounds once and correctly.
	if n.whole && n.mantissa <= 1<<53 && n.exponent >= -22 && n.exponent <= 22 {
		f = float64(n.mantissa)
		if n.exponent < 0 {
			f /= exactPowers[-n.exponent]
		} else {
			f *= exactPowers[n.exponent]
		}
		if n.negative {
			f = -f
		}
		return f, true
	}
	// ParseFloat keeps nothing of its argument, so that it may look at the document's own bytes.
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(n.text), len(n.text)), 64)
	return f, err == nil && !math.IsInf(f, 0)
}
