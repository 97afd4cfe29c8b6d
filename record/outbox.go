package record

import "encoding/binary"

// Outbox collects the records that one epoch writes to one partition, already encoded, in order. It keeps no pointers
// per record, so that a million waiting records cost the garbage collector nothing.
type Outbox struct {
	To    TopicPartition
	Count int
	buf   []byte
}

// Bytes is the size of what waits.
func (o *Outbox) Bytes() int { return len(o.buf) }

// Reset empties the outbox and keeps its memory.
func (o *Outbox) Reset() { o.Count, o.buf = 0, o.buf[:0] }

const noBytes = ^uint32(0) // length that stands for nil

// Append adds a record; all bytes are copied. nil key and value are kept apart from empty ones.
func (o *Outbox) Append(key, value []byte, headers []Header, timestamp int64) {
	b := o.buf
	b = binary.LittleEndian.AppendUint64(b, uint64(timestamp))
	b = appendSized(b, key)
	b = appendSized(b, value)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(headers)))
	for _, h := range headers {
		b = appendSized(b, h.Key)
		b = appendSized(b, h.Value)
	}
	o.buf = b
	o.Count++
}

func appendSized(b, part []byte) []byte {
	if part == nil {
		return binary.LittleEndian.AppendUint32(b, noBytes)
	}
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
}

func takeSized(b []byte) (part, rest []byte) {
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	if n == noBytes {
		return nil, b
	}
	return b[:n:n], b[n:]
}

// Cursor walks an Outbox. The parts that Next returns alias the outbox and live until its Reset.
type Cursor struct {
	rest    []byte
	headers []Header
}

// Walk returns a cursor before the first record.
func (o *Outbox) Walk() Cursor { return Cursor{rest: o.buf} }

// Next returns the next record; ok is false at the end. The headers' slice is used again by the next call.
func (c *Cursor) Next() (r Record, ok bool) {
	if len(c.rest) == 0 {
		return Record{}, false
	}
	b := c.rest
	r.Timestamp = int64(binary.LittleEndian.Uint64(b))
	r.Key, b = takeSized(b[8:])
	r.Value, b = takeSized(b)
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	c.headers = c.headers[:0]
	for range n {
		var h Header
		h.Key, b = takeSized(b)
		h.Value, b = takeSized(b)
		c.headers = append(c.headers, h)
	}
	if n > 0 {
		r.Headers = c.headers
	}
	c.rest = b
	return r, true
}
