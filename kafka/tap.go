package kafka

import (
	"encoding/binary"
	"io"
	"net"
	"sync"

	"millrace/record"

	"github.com/IBM/sarama"
)

// A tap takes the records out of the answers to Fetch before sarama sees them: sarama makes a heap object of every record,
// which costs as much as all the rest of fetching. What it is given instead is the same answer with empty record sets,
// so that it goes on reading all else. Only sets that walk.go can read are taken (whole batches of version 2 with right
// checksums); the others stay where they are and reach us through sarama. One request at a time is under way on a
// tapped connection.
type tap struct {
	sets   map[record.TopicPartition][]byte
	answer *answerBytes // that they lie in
	memory memory
}

// decode makes one batch of a partition's part of the last answer, wherever its records are.
func (t *tap) decode(tp record.TopicPartition, next record.Offset, block *sarama.FetchResponseBlock) (record.Batch, error) {
	if set := t.sets[tp]; set != nil {
		return t.decodeSet(gather(tp, next, block), set)
	}
	return decode(tp, next, block)
}

// openTapped dials a broker for fetching.
func openTapped(addr string, config *sarama.Config) (*sarama.Broker, *tap, error) {
	own, t := *config, &tap{}
	own.Net.Proxy.Dialer = tapDialer{config.Net.Proxy.Dialer, t}
	b, err := open(addr, &own)
	return b, t, err
}

type tapDialer struct {
	to interface {
		Dial(network, address string) (net.Conn, error)
	}
	tap *tap
}

func (d tapDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.to.Dial(network, address)
	if err != nil {
		return nil, err
	}
	return &tapConn{Conn: conn, tap: d.tap, fetches: map[int32]int16{}}, nil
}

// tapConn is a tapped connection: it notes which requests are Fetch, and hands sarama one whole answer after the other.
type tapConn struct {
	net.Conn
	tap   *tap
	out   []byte // what sarama has not read yet of the last answer
	blind bool   // what comes is passed on as it is

	mu      sync.Mutex
	fetches map[int32]int16 // versions of the requests that have no answer, by correlation id
}

const (
	fetchKey      = 1
	requestHead   = 4 + 2 + 2 + 4 // size, api key, version, correlation id
	flexibleFetch = 12            // first version with compact lengths and tagged fields
	oldestTapped  = 11            // Kafka 2.4
)

// Write sees one whole request: sarama writes each with one call.
func (c *tapConn) Write(p []byte) (int, error) {
	if len(p) >= requestHead && binary.BigEndian.Uint16(p[4:]) == fetchKey {
		c.mu.Lock()
		c.fetches[int32(binary.BigEndian.Uint32(p[8:]))] = int16(binary.BigEndian.Uint16(p[6:]))
		c.mu.Unlock()
	}
	return c.Conn.Write(p)
}

func (c *tapConn) Read(p []byte) (int, error) {
	if len(c.out) == 0 {
		if c.blind {
			return c.Conn.Read(p)
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

// next reads an answer.
func (c *tapConn) next() error {
	var size [4]byte
	if _, err := io.ReadFull(c.Conn, size[:]); err != nil {
		return err
	}
	n := int32(binary.BigEndian.Uint32(size[:]))
	if n < 0 || n > sarama.MaxResponseSize {
		c.out, c.blind = size[:], true // sarama refuses it
		return nil
	}
	answer := c.tap.memory.answer(int(4 + n))
	frame := answer.b
	copy(frame, size[:])
	if _, err := io.ReadFull(c.Conn, frame[4:]); err != nil {
		return err
	}
	c.out = frame
	version, ok := c.isFetch(frame)
	if !ok || version < oldestTapped {
		return nil
	}
	c.tap.sets = map[record.TopicPartition][]byte{}
	rest, ok := cut(frame, version, c.tap.sets)
	if !ok {
		clear(c.tap.sets) // sarama shall say what is wrong with it
		return nil
	}
	c.out, c.tap.answer = rest, answer
	answer.users.Store(int32(len(c.tap.sets)) + 1)
	answer.release() // what we had of it
	return nil
}

func (c *tapConn) isFetch(frame []byte) (version int16, ok bool) {
	if len(frame) < 8 {
		return 0, false
	}
	id := int32(binary.BigEndian.Uint32(frame[4:]))
	c.mu.Lock()
	defer c.mu.Unlock()
	version, ok = c.fetches[id]
	delete(c.fetches, id)
	return version, ok
}

// cut copies an answer to Fetch without the record sets that can be read here, which go to sets; false if the answer
// cannot be made sense of. KIP-482 describes the flexible form.
func cut(frame []byte, version int16, sets map[record.TopicPartition][]byte) (rest []byte, ok bool) {
	w := &answerWalk{b: frame, flexible: version >= flexibleFetch, ok: true}
	w.skip(4 + 4) // size, correlation id
	w.tags()
	w.skip(4 + 2 + 4) // throttle time, error, session id
	for range w.count() {
		topic := w.text()
		for range w.count() {
			tp := record.TopicPartition{Topic: topic, Partition: int32(w.number(4))}
			w.skip(2 + 8 + 8 + 8) // error, high watermark, last stable offset, log start
			for range w.count() { // aborted transactions
				w.skip(8 + 8)
				w.tags()
			}
			w.skip(4) // preferred replica
			head := w.at
			size := max(w.length(4), 0)
			set := w.skip(size)
			if set = readable(set); set != nil {
				sets[tp] = set
				rest = w.empty(append(rest, frame[w.copied:head]...))
			}
			w.tags()
		}
		w.tags()
	}
	w.tags()
	if !w.ok || w.at != len(frame) {
		return nil, false
	}
	rest = append(rest, frame[w.copied:]...)
	binary.BigEndian.PutUint32(rest, uint32(len(rest)-4))
	return rest, true
}

// answerWalk goes through an answer from field to field. After the first that is not there, ok is false and nothing moves.
type answerWalk struct {
	b        []byte
	at       int
	copied   int // how far the answer has been copied
	flexible bool
	ok       bool
}

func (w *answerWalk) skip(n int) []byte {
	if n < 0 || n > len(w.b)-w.at {
		w.ok = false
	}
	if !w.ok {
		return nil
	}
	w.at += n
	return w.b[w.at-n : w.at : w.at]
}

// number reads an integer of n bytes; 0 if it is not there.
func (w *answerWalk) number(n int) (v int64) {
	for _, c := range w.skip(n) {
		v = v<<8 | int64(c)
	}
	return v
}

func (w *answerWalk) uvarint() int {
	if !w.ok {
		return 0
	}
	v, n := binary.Uvarint(w.b[w.at:])
	if n <= 0 || v > uint64(len(w.b)) {
		w.ok = false
		return 0
	}
	w.at += n
	return int(v)
}

// length reads a length, of n bytes where it is not compact; -1 for null.
func (w *answerWalk) length(n int) int {
	switch {
	case w.flexible:
		return w.uvarint() - 1
	case n == 2:
		return int(int16(w.number(2)))
	}
	return int(int32(w.number(4)))
}

// count is the length of an array. Each of its elements has at least a byte, so that a wrong one ends soon.
func (w *answerWalk) count() int {
	n := w.length(4)
	if n > len(w.b)-w.at {
		w.ok = false
	}
	if !w.ok {
		return 0
	}
	return max(n, 0)
}

func (w *answerWalk) text() string { return string(w.skip(max(w.length(2), 0))) }

// tags skips tagged fields.
func (w *answerWalk) tags() {
	if !w.flexible {
		return
	}
	for n := w.uvarint(); n > 0 && w.ok; n-- {
		w.uvarint()
		w.skip(w.uvarint())
	}
}

// empty appends the length of an empty record set, and goes on copying behind the one that has just been read.
func (w *answerWalk) empty(b []byte) []byte {
	w.copied = w.at
	if w.flexible {
		return append(b, 1)
	}
	return append(b, 0, 0, 0, 0)
}
