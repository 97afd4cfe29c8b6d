package topology

import (
	"encoding/binary"
	"errors"
	"fmt"

	"millrace/record"
)

// A record of a repartition topic has the group's key as its key. Its value begins with version and kind; then come the
// number of the task that wrote it and that task's watermark as of this record, by which time crosses the topic.

const shuffleVersion = 1

type shuffleKind byte

const (
	shuffleRow       shuffleKind = iota // one row, with the record that it came from
	shufflePartial                      // a state that the writer has combined from several rows
	shuffleWatermark                    // nothing but time
	shuffleIdle                         // the writer's inputs are all idle: it holds nobody's time back
)

var errShuffle = errors.New("a record of the repartition topic is damaged or from another version")

func appendShuffle(b []byte, kind shuffleKind, writer int32, watermark int64) []byte {
	b = append(b, shuffleVersion, byte(kind))
	b = binary.AppendUvarint(b, uint64(writer))
	return binary.AppendVarint(b, watermark)
}

// reader takes a value apart; after the first failure everything is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.skip(n)
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	r.skip(n)
	return v
}

func (r *reader) skip(n int) {
	if n <= 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return
	}
	r.b = r.b[n:]
}

// bytes reads what appendBytes wrote; nil stays nil.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n == 0 || r.bad {
		return nil
	}
	if n-1 > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	part := r.b[: n-1 : n-1]
	r.b = r.b[n-1:]
	return part
}

func appendBytes(b, part []byte) []byte {
	if part == nil {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(part))+1), part...)
}

func (n *inputNode) connectShuffle() error {
	n.consumed = n.in.counter(record.Consumed, n.plan.Step, n.plan.Topic)
	for _, plan := range n.plan.shuffle.ports {
		port, err := newFarPort(n.in, plan)
		if err != nil {
			return err
		}
		n.ports = append(n.ports, port)
	}
	return nil
}

// newFarPort is the port behind the repartition topic: where and group_by were applied before it, the aggregates'
// arguments are evaluated here.
func newFarPort(in *Instance, plan *portPlan) (*shufflePort, error) {
	p := &portNode{in: in, plan: plan, step: plan.step.spec.Name.Value, args: bindAll(plan.args), folds: bindAll(plan.folds), aggregate: in.aggregator(plan.step.aggregate)}
	format := "json"
	if plan.in.raw != nil {
		format = plan.in.raw.spec.Format.Value
	}
	s := &shufflePort{port: p, fields: make([]record.Value, len(plan.in.layout.Paths()))}
	var err error
	if s.decoder, err = in.decoder(format, plan.in.layout); err != nil {
		return nil, err
	}
	if plan.in.fields != nil {
		p.encoder, err = in.env.Formats.Encoder("json", plan.in.fields)
	}
	return s, err
}

// unpack takes a record of a repartition topic: first its writer's time, then its row.
func (n *inputNode) unpack(rec *record.Record) error {
	n.consumed.n++
	n.consumed.bytes += int64(len(rec.Key) + len(rec.Value))
	if len(rec.Value) < 2 || rec.Value[0] != shuffleVersion {
		return n.damaged()
	}
	kind := shuffleKind(rec.Value[1])
	r := &reader{b: rec.Value[2:]}
	writer, watermark := r.uvarint(), r.varint()
	if r.bad || writer >= uint64(n.writers) {
		return n.damaged()
	}
	channel := n.channel + int(writer)
	moved := false
	if kind == shuffleIdle {
		moved = n.in.clock.Observe(channel, watermark)
		moved = n.in.clock.SetIdle(channel) || moved
	} else {
		moved = n.in.clock.Observe(channel, watermark)
	}
	if moved {
		n.in.advance()
	}
	switch kind {
	case shuffleRow:
		return n.unpackRow(rec.Key, r)
	case shufflePartial:
		segment, count, newest := r.varint(), r.uvarint(), r.varint()
		if r.bad {
			return n.damaged()
		}
		n.row.Key, n.row.Time, n.row.Headers = rec.Key, newest, nil
		n.in.current, n.in.origin, n.in.result = nil, record.Origin{}, &n.row // many records are to blame for what comes of it
		port := n.ports[0].port
		err := port.bad(port.aggregate.merge(segment, rec.Key, r.b, newest, int64(count)))
		n.in.result = nil
		return err
	}
	return nil
}

func (n *inputNode) unpackRow(key []byte, r *reader) error {
	port := r.uvarint()
	row := &n.row
	row.Time = r.varint()
	row.Window = record.Window{Start: r.varint(), End: r.varint()}
	row.From = record.Origin{Topic: n.topicName(r.bytes()), Partition: int32(r.uvarint()), Offset: r.varint(), Timestamp: r.varint()}
	row.Key, row.Value = r.bytes(), r.bytes()
	n.headers = n.headers[:0]
	for range r.uvarint() {
		if r.bad {
			break
		}
		n.headers = append(n.headers, record.Header{Key: r.bytes(), Value: r.bytes()})
	}
	if r.bad || port >= uint64(len(n.ports)) {
		return n.damaged()
	}
	row.Headers = n.headers
	n.unpacked = record.Record{Key: row.Key, Value: row.Value, Headers: row.Headers, Timestamp: row.From.Timestamp, Offset: row.From.Offset}
	n.in.current, n.in.origin = &n.unpacked, row.From
	far := n.ports[port]
	row.Fields = far.fields
	if far.decoder != nil {
		if err := far.decoder.Decode(row.Value, row.Fields); err != nil {
			return n.in.bad(n.in.sub.plan.errors.deserialization, "deserialization", far.port.step, err)
		}
	}
	return far.port.bad(far.port.aggregate.addKeyed(far.port, key, row))
}

// topicName is a topic's name as a string; rows mostly come from the same one as the row before.
func (n *inputNode) topicName(name []byte) string {
	if string(name) != n.lastTopic {
		n.lastTopic = string(name)
	}
	return n.lastTopic
}

func (n *inputNode) damaged() error {
	return fatal{fmt.Errorf("%s-%d@%d: %w", n.in.origin.Topic, n.in.origin.Partition, n.in.origin.Offset, errShuffle)}
}
