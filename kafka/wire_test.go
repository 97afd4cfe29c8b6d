package kafka

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/IBM/sarama"
)

// wire is a broker that is nothing but a socket: it keeps what sarama writes, and answers with what a test says.
type wire struct {
	t        testing.TB
	listener net.Listener
	requests chan []byte // whole, without their size
	answers  chan []byte // without size and correlation id
}

func newWire(t testing.TB) *wire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, listener: l, requests: make(chan []byte, 1), answers: make(chan []byte, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.serve(c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return w
}

// serve answers one connection after the other, until it is closed.
func (w *wire) serve(c net.Conn) {
	defer c.Close()
	for {
		head := make([]byte, 4)
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		request := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(c, request); err != nil {
			return
		}
		w.requests <- request
		answer := <-w.answers
		frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(answer)))
		frame = append(frame, request[4:8]...)
		if _, err := c.Write(append(frame, answer...)); err != nil {
			return
		}
	}
}

// config asks nothing of the broker that it does not know.
func (w *wire) config(version sarama.KafkaVersion) *sarama.Config {
	c, err := Config{ClientID: "wire"}.sarama()
	if err != nil {
		w.t.Fatal(err)
	}
	c.ApiVersionsRequest, c.Version = false, version
	return c
}

func (w *wire) addr() string { return w.listener.Addr().String() }
