package kafka

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"

	"millrace/record"
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

// fetchFrom lets sarama ask the wire with and without a tap, and returns what both make of the answer. Partition 0 of
// topic a is asked for; the answer may have more.
func fetchFrom(t fataler, w *wire, version int16, next int64, answer *kmsg.FetchResponse) (tapped, plain record.Batch, tappedErr, plainErr error) {
	tapped, _, tappedErr = fetchTapped(t, w, version, next, answer)
	b, err := open(w.addr(), w.fetchConfig(version))
	block, plainErr := w.ask(t, b, err, next, answer)
	if plainErr == nil {
		plain, plainErr = decode(record.TopicPartition{Topic: "a"}, next, block)
	}
	return tapped, plain, tappedErr, plainErr
}

func fetchTapped(t fataler, w *wire, version int16, next int64, answer *kmsg.FetchResponse) (record.Batch, *tap, error) {
	answer.Version = version
	b, tap, err := openTapped(w.addr(), w.fetchConfig(version))
	block, err := w.ask(t, b, err, next, answer)
	if err != nil {
		return record.Batch{}, tap, err
	}
	batch, err := tap.decode(record.TopicPartition{Topic: "a"}, next, block)
	return batch, tap, err
}

func (w *wire) fetchConfig(version int16) *sarama.Config {
	if version >= flexibleFetch {
		return w.config(sarama.V2_7_0_0)
	}
	return w.config(sarama.V2_4_0_0)
}

// ask sends one Fetch over a broker that was just opened, and closes it.
func (w *wire) ask(t fataler, b *sarama.Broker, err error, next int64, answer *kmsg.FetchResponse) (*sarama.FetchResponseBlock, error) {
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer closeBroker(b)
	var body []byte
	if answer.IsFlexible() {
		body = append(body, 0) // tags of the header
	}
	body = answer.AppendTo(body)
	request := &sarama.FetchRequest{Version: answer.Version, MinBytes: 1, SessionEpoch: -1}
	request.AddBlock("a", 0, next, 1, -1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-w.requests
		w.answers <- body
	}()
	response, err := b.Fetch(request)
	<-done
	if err != nil {
		return nil, err
	}
	return response.GetBlock("a", 0), nil
}
