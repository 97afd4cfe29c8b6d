package codec

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// maxDepth bounds the nesting, and with it the stack that a crafted document can claim.
const maxDepth = 512

// scanner walks one JSON document and checks all of it. Its methods return false after fail, and pos then no longer
// means anything.
type scanner struct {
	src    []byte
	pos    int
	syntax *SyntaxError
}

func (s *scanner) fail(offset int, message string) bool {
	if s.syntax == nil {
		if offset >= len(s.src) {
			offset, message = len(s.src), "unexpected end of the document"
		}
		s.syntax = &SyntaxError{offset, message}
	}
	return false
}

// peek skips white space and returns the next byte without taking it; 0 at the end, which is no valid byte there.
func (s *scanner) peek() byte {
	src, pos := s.src, s.pos
	for pos < len(src) {
		c := src[pos]
		if c > ' ' || (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
			s.pos = pos
			return c
		}
		pos++
	}
	s.pos = pos
	return 0
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks, by its high bit, the first byte of w that is a quote, a backslash, a control character or not ASCII.
// Bytes after the first may be marked wrongly, since a subtraction borrows.
func special(w uint64) uint64 {
	quote := w ^ ones*'"'
	slash := w ^ ones*'\\'
	return ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w | w) & highs
}

// plain skips bytes that are not special, by words, and returns where a special one stands, or where no whole word is left.
func plain(src []byte, pos int) int {
	for pos+8 <= len(src) {
		if m := special(binary.LittleEndian.Uint64(src[pos:])); m != 0 {
			return pos + bits.TrailingZeros64(m)>>3
		}
		pos += 8
	}
	return pos
}

// text scans a string from behind its opening quote to behind its closing one and returns what stands between.
func (s *scanner) text() (raw []byte, escaped, ok bool) {
	src, start, pos := s.src, s.pos, s.pos
	for {
		pos = plain(src, pos)
		if pos >= len(src) {
			return nil, false, s.fail(pos, "")
		}
		c := src[pos]
		switch {
		case c == '"':
			s.pos = pos + 1
			return src[start:pos:pos], escaped, true
		case c == '\\':
			escaped = true
			n := escapeLen(src[pos:])
			if n == 0 {
				return nil, false, s.fail(pos, "invalid escape in a string")
			}
			pos += n
		case c < ' ':
			return nil, false, s.fail(pos, "control character in a string: it must be escaped")
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(src[pos:])
			if r == utf8.RuneError && n == 1 {
				return nil, false, s.fail(pos, "string is not valid UTF-8")
			}
			pos += n
		default:
			pos++
		}
	}
}

// escapeLen is the length of the escape that b starts with; 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b[2:]); ok {
			return 6
		}
	}
	return 0
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20-'a' <= 5:
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// literal takes true, false or null.
func (s *scanner) literal(word string) bool {
	end := s.pos + len(word)
	if end > len(s.src) || string(s.src[s.pos:end]) != word {
		return s.fail(s.pos, "invalid word: JSON knows only true, false and null")
	}
	s.pos = end
	return true
}

// skip takes one value of any kind, which lies depth levels deep. Its first byte is at pos.
func (s *scanner) skip(depth int) bool {
	if s.pos >= len(s.src) {
		return s.fail(s.pos, "")
	}
	switch c := s.src[s.pos]; c {
	case '"':
		s.pos++
		_, _, ok := s.text()
		return ok
	case '{':
		return s.skipObject(depth + 1)
	case '[':
		return s.skipArray(depth + 1)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		var n number
		return s.number(&n)
	}
}

func (s *scanner) skipObject(depth int) bool {
	more := s.open(depth, '}')
	for more {
		if !s.key() {
			return false
		}
		if _, _, ok := s.text(); !ok || !s.colon() || !s.skip(depth) {
			return false
		}
		more = s.next('}')
	}
	return s.syntax == nil
}

func (s *scanner) skipArray(depth int) bool {
	more := s.open(depth, ']')
	for more {
		s.peek()
		if !s.skip(depth) {
			return false
		}
		more = s.next(']')
	}
	return s.syntax == nil
}

// open takes the bracket at pos and tells whether anything stands between it and its end, which it takes otherwise.
func (s *scanner) open(depth int, end byte) bool {
	if depth > maxDepth {
		return s.fail(s.pos, "nested more than 512 levels deep")
	}
	s.pos++
	if s.peek() == end {
		s.pos++
		return false
	}
	return true
}

// next takes a comma and returns true, or takes the end and returns false.
func (s *scanner) next(end byte) bool {
	switch s.peek() {
	case ',':
		s.pos++
		return true
	case end:
		s.pos++
		return false
	}
	return s.fail(s.pos, "want a comma or the end of the object or list")
}

// key takes the quote that a key begins with.
func (s *scanner) key() bool {
	if s.peek() != '"' {
		return s.fail(s.pos, "want a key in double quotes")
	}
	s.pos++
	return true
}

// colon takes the colon behind a key and the white space around it.
func (s *scanner) colon() bool {
	if s.peek() != ':' {
		return s.fail(s.pos, "want a colon after the key")
	}
	s.pos++
	s.peek()
	return true
}
