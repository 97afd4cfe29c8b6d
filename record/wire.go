package record

import "encoding/binary"

// A record on the wire is what a batch of version 2 holds of it: its length, attributes, the distances of its timestamp and
// its offset from the batch's first, key, value, headers. Lengths and distances are zigzag varints, -1 is the length of nil.

// MaxFraming is the most that a record without headers has beside its key and its value.
const MaxFraming = binary.MaxVarintLen32 + 1 + binary.MaxVarintLen64 + 4*binary.MaxVarintLen32

// appendWire appends a record. timeDelta and offsetDelta are its distances from the batch's first.
func appendWire(b []byte, r *Record, timeDelta, offsetDelta int64) []byte {
	size := 1 + varintLen(timeDelta) + varintLen(offsetDelta) + sizedLen(r.Key) + sizedLen(r.Value) + varintLen(int64(len(r.Headers)))
	for i := range r.Headers {
		size += sizedLen(r.Headers[i].Key) + sizedLen(r.Headers[i].Value)
	}
	b = appendVarint(b, int64(size))
	b = append(b, 0)
	b = appendVarint(b, timeDelta)
	b = appendVarint(b, offsetDelta)
	b = appendSized(b, r.Key)
	b = appendSized(b, r.Value)
	b = appendVarint(b, int64(len(r.Headers)))
	for i := range r.Headers {
		b = appendSized(b, r.Headers[i].Key)
		b = appendSized(b, r.Headers[i].Value)
	}
	return b
}

// appendVarint does what binary.AppendVarint does; most numbers have one byte or two, and those are written in line.
func appendVarint(b []byte, v int64) []byte {
	u := uint64(v<<1) ^ uint64(v>>63)
	if u < 0x80 {
		return append(b, byte(u))
	}
	return binary.AppendUvarint(b, u)
}

func appendSized(b, part []byte) []byte {
	if part == nil {
		return append(b, 1)
	}
	return append(appendVarint(b, int64(len(part))), part...)
}

func sizedLen(part []byte) int { return varintLen(int64(len(part))) + len(part) } // nil's length is as short as 0's

func varintLen(v int64) int {
	n := 1
	for u := uint64(v<<1) ^ uint64(v>>63); u >= 0x80; u >>= 7 {
		n++
	}
	return n
}

// Wire walks records on the wire. It never reads outside of its bytes, whatever they are.
type Wire struct {
	b      []byte
	at     int
	failed bool
}

// WireOf returns a Wire before the first record.
func WireOf(b []byte) Wire { return Wire{b: b} }

// Next reads a record into r, whose Offset and Timestamp are the distances from the batch's first; the headers are appended
// to headers. Everything aliases the bytes. false means that they do not hold a whole record here.
func (w *Wire) Next(r *Record, headers *[]Header) bool {
	end := w.number()
	end += int64(w.at)
	w.at++ // attributes: none is used
	r.Timestamp, r.Offset = w.number(), w.number()
	r.Key, r.Value = w.bytes(), w.bytes()
	r.Headers = nil
	if n := w.number(); n > 0 {
		from := len(*headers)
		for ; n > 0 && !w.failed; n-- {
			*headers = append(*headers, Header{Key: w.bytes(), Value: w.bytes()})
		}
		r.Headers = (*headers)[from:len(*headers):len(*headers)]
	}
	return !w.failed && int64(w.at) == end
}

func (w *Wire) number() int64 {
	if w.at < len(w.b) && w.b[w.at] < 0x80 {
		v := w.b[w.at]
		w.at++
		return int64(v>>1) ^ -int64(v&1)
	}
	return w.long()
}

// long reads a number of more than one byte.
func (w *Wire) long() int64 {
	if w.at > len(w.b) {
		w.failed = true
		return 0
	}
	v, n := binary.Varint(w.b[w.at:])
	if n <= 0 {
		w.failed, w.at = true, len(w.b)
		return 0
	}
	w.at += n
	return v
}

func (w *Wire) bytes() []byte {
	n := w.number()
	switch {
	case n == -1:
		return nil
	case n < 0 || n > int64(len(w.b)-w.at):
		w.failed, w.at = true, len(w.b)
		return nil
	}
	from := w.at
	w.at += int(n)
	return w.b[from:w.at:w.at]
}
