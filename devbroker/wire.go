package devbroker

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// The faults that kfake does not offer happen on the wire: its connections pass through here, frame by frame. A request
// is size(4) key(2) version(2) correlation(4) …, its response size(4) correlation(4) ….

// rule is one fault on the wire; wires.mu guards left, hits and changed.
type rule struct {
	apiKey       int16
	left         int // requests still to meet; Always: no end
	dropRequest  bool
	dropResponse bool
	delay        time.Duration
	held         chan struct{} // closed when held requests may go on; nil: does not hold
	releaseOnce  sync.Once

	hits    int
	changed chan struct{} // closed and replaced at each hit
}

// wires are all connections of a Broker, and the rules for them.
type wires struct {
	mu     sync.Mutex
	rules  []*rule
	open   map[*wire]struct{}
	closed bool
}

func newWires() *wires { return &wires{open: make(map[*wire]struct{})} }

func (w *wires) add(r *rule) *Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.changed = make(chan struct{})
	if r.left != 0 {
		w.rules = append(w.rules, r)
	}
	return &Fault{wireFault{w, r}}
}

// meet returns the first rule for a request that does more than count, and takes the request off the budget of each
// rule that it met.
func (w *wires) meet(apiKey int16) *rule {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found *rule
	for _, r := range slices.Clone(w.rules) {
		counts := !r.dropRequest && !r.dropResponse && r.delay == 0 && r.held == nil
		if r.apiKey != apiKey || found != nil && !counts {
			continue
		}
		if !counts {
			found = r
		}
		if r.left > 0 {
			if r.left--; r.left == 0 {
				w.remove(r)
			}
		}
		r.hits++
		close(r.changed)
		r.changed = make(chan struct{})
	}
	return found
}

// remove is called with mu held.
func (w *wires) remove(r *rule) {
	w.rules = slices.DeleteFunc(w.rules, func(other *rule) bool { return other == r })
}

// cut closes the connections without mu, because closing one takes it out of the set.
func (w *wires) cut() {
	w.mu.Lock()
	open := make([]*wire, 0, len(w.open))
	for c := range w.open {
		open = append(open, c)
	}
	w.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

func (w *wires) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cut()
}

type wireFault struct {
	wires *wires
	rule  *rule
}

func (f wireFault) Hits() int {
	f.wires.mu.Lock()
	defer f.wires.mu.Unlock()
	return f.rule.hits
}

func (f wireFault) Wait(ctx context.Context, n int) error {
	for {
		f.wires.mu.Lock()
		hits, changed := f.rule.hits, f.rule.changed
		f.wires.mu.Unlock()
		if hits >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f wireFault) Remove() {
	f.wires.mu.Lock()
	defer f.wires.mu.Unlock()
	f.wires.remove(f.rule)
}

// listener hands out connections that obey the rules.
type listener struct {
	net.Listener
	wires *wires
}

func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &wire{Conn: inner, wires: l.wires, done: make(chan struct{})}
	l.wires.mu.Lock()
	defer l.wires.mu.Unlock()
	if l.wires.closed {
		inner.Close()
		return nil, net.ErrClosed
	}
	l.wires.open[c] = struct{}{}
	return c, nil
}

// wire is one client's connection. kfake reads from one goroutine at a time and writes whole responses from another.
type wire struct {
	net.Conn
	wires     *wires
	rest      []byte // of the request frame that is being handed over
	done      chan struct{}
	closeOnce sync.Once

	mu    sync.Mutex
	marks map[uint32]*rule // what shall happen to the response, by correlation id
}

// largestRequest is what Kafka's socket.request.max.bytes allows by default.
const largestRequest = 100 << 20

func (c *wire) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if err := c.readFrame(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *wire) readFrame() error {
	var size [4]byte
	if _, err := io.ReadFull(c.Conn, size[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 8 || n > largestRequest {
		return io.ErrUnexpectedEOF
	}
	frame := make([]byte, 4+n)
	copy(frame, size[:])
	if _, err := io.ReadFull(c.Conn, frame[4:]); err != nil {
		return err
	}
	if r := c.wires.meet(int16(binary.BigEndian.Uint16(frame[4:]))); r != nil {
		if err := c.obey(r, binary.BigEndian.Uint32(frame[8:])); err != nil {
			return err
		}
	}
	c.rest = frame
	return nil
}

// obey does what a rule wants before the request is handled, and notes what it wants afterwards.
func (c *wire) obey(r *rule, correlation uint32) error {
	switch {
	case r.dropRequest:
		c.Close()
		return io.EOF
	case r.held != nil:
		select {
		case <-r.held:
		case <-c.done:
			return io.EOF
		}
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.marks == nil {
			c.marks = make(map[uint32]*rule)
		}
		c.marks[correlation] = r
	}
	return nil
}

func (c *wire) Write(p []byte) (int, error) {
	if len(p) >= 8 {
		correlation := binary.BigEndian.Uint32(p[4:])
		c.mu.Lock()
		r := c.marks[correlation]
		delete(c.marks, correlation)
		c.mu.Unlock()
		switch {
		case r == nil:
		case r.dropResponse:
			c.Close()
			return 0, net.ErrClosed
		case r.delay > 0:
			timer := time.NewTimer(r.delay)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-c.done:
				return 0, net.ErrClosed
			}
		}
	}
	return c.Conn.Write(p)
}

func (c *wire) Close() error {
	err := net.ErrClosed
	c.closeOnce.Do(func() {
		c.wires.mu.Lock()
		delete(c.wires.open, c)
		c.wires.mu.Unlock()
		close(c.done)
		err = c.Conn.Close()
	})
	return err
}
