package record

import "encoding/binary"

// Outbox collects the records that one epoch writes to one partition, already encoded, in order. It keeps no pointers
// per record, so that a million waiting records cost the garbage collector nothing, and it grows by chunks, so that
// nothing is copied when an epoch turns out larger than the last.
type Outbox struct {
	To     TopicPartition
	Count  int
	chunks [][]byte // records lie whole within a chunk
	used   int      // chunks in use; the ones behind keep their memory for the next epoch
	bytes  int
}

// outboxChunk is the size of a chunk; a larger record has one of its own. The first chunk starts small, because most
// partitions of a wide topic get little.
const (
	outboxChunk = 128 << 10
	outboxFirst = 1 << 10
)

// Bytes is the size of what waits.
func (o *Outbox) Bytes() int { return o.bytes }

// Reset empties the outbox and keeps its memory, but for chunks that a single large record made.
func (o *Outbox) Reset() {
	kept := o.chunks[:0]
	for _, c := range o.chunks {
		if cap(c) <= outboxChunk {
			kept = append(kept, c[:0])
		}
	}
	clear(o.chunks[len(kept):])
	o.chunks, o.used, o.Count, o.bytes = kept, 0, 0, 0
}

const noBytes = ^uint32(0) // length that stands for nil

// Append adds a record; all bytes are copied. nil key and value are kept apart from empty ones.
func (o *Outbox) Append(key, value []byte, headers []Header, timestamp int64) {
	size := 8 + 4 + len(key) + 4 + len(value) + 4
	for _, h := range headers {
		size += 8 + len(h.Key) + len(h.Value)
	}
	b := o.room(size)
	b = binary.LittleEndian.AppendUint64(b, uint64(timestamp))
	b = appendSized(b, key)
	b = appendSized(b, value)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(headers)))
	for _, h := range headers {
		b = appendSized(b, h.Key)
		b = appendSized(b, h.Value)
	}
	o.chunks[o.used-1] = b
	o.bytes += size
	o.Count++
}

// room returns the chunk that has room for size more bytes.
func (o *Outbox) room(size int) []byte {
	if o.used > 0 {
		c := o.chunks[o.used-1]
		if len(c)+size <= cap(c) {
			return c
		}
		if o.used == 1 && len(c)+size <= outboxChunk {
			return append(make([]byte, 0, min(max(4*cap(c), len(c)+size), outboxChunk)), c...)
		}
	}
	capacity := outboxChunk
	if o.used == 0 {
		capacity = outboxFirst
	}
	capacity = max(capacity, size)
	switch {
	case o.used == len(o.chunks):
		o.chunks = append(o.chunks, make([]byte, 0, capacity))
	case cap(o.chunks[o.used]) < size:
		o.chunks[o.used] = make([]byte, 0, capacity)
	}
	o.used++
	return o.chunks[o.used-1]
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
	chunks  [][]byte
	rest    []byte
	headers []Header
}

// Walk returns a cursor before the first record.
func (o *Outbox) Walk() Cursor { return Cursor{chunks: o.chunks[:o.used]} }

// Next returns the next record; ok is false at the end. The headers' slice is used again by the next call.
func (c *Cursor) Next() (r Record, ok bool) {
	for len(c.rest) == 0 {
		if len(c.chunks) == 0 {
			return Record{}, false
		}
		c.rest, c.chunks = c.chunks[0], c.chunks[1:]
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
