package topology

import (
	"errors"
	"fmt"
	"strconv"

	"millrace/record"
	"millrace/topology/expr"
)

// sinkNode writes a stream's rows to a topic.
type sinkNode struct {
	in         *Instance
	use        *sinkUse
	name       string
	partitions int32
	encoder    Encoder
	key        expr.Eval
	headerEval []expr.Eval

	keyBuf, valueBuf []byte
	headers          []record.Header
	headerBufs       [][]byte
	produced         *tally
	latency          *record.Spread
}

func newSinkNode(in *Instance, use *sinkUse) (*sinkNode, error) {
	s := use.sink
	k := &sinkNode{in: in, use: use, name: s.spec.Name.Value, partitions: in.env.Partitions(s.topic.name)}
	if k.partitions <= 0 {
		return nil, fmt.Errorf("sink %s: topic %s has no partitions", k.name, s.topic.name)
	}
	k.produced = in.counter(record.Produced, k.name, s.topic.name)
	k.latency = in.spread(record.Latency, k.name)
	if use.key != nil {
		k.key = use.key.Bind()
	}
	for _, h := range use.headers {
		k.headerEval = append(k.headerEval, h.value.Bind())
	}
	k.headerBufs = make([][]byte, len(use.headers))
	if use.fields == nil {
		return k, nil
	}
	fields := use.fields
	if form := s.spec.TimestampFormat.Value; form != "" {
		fields = append([]record.Field(nil), fields...)
		for i := range fields {
			if fields[i].Type.Kind == record.Time {
				fields[i].Type.Form = map[string]record.TimeForm{"epoch_ms": record.EpochMillis, "rfc3339": record.RFC3339}[form]
			}
		}
	}
	var err error
	k.encoder, err = in.env.Formats.Encoder(s.spec.Format.Value, fields)
	return k, err
}

var errNoKey = errors.New("the row has no key, and an upsert needs one")

func (k *sinkNode) write(r *record.Row) error {
	value := r.Value
	if k.encoder != nil {
		k.valueBuf = k.encoder.Append(k.valueBuf[:0], r.Fields)
		value = k.valueBuf
	}
	return k.put(r, value)
}

// put writes a value, nil for a tombstone, under the row's key.
func (k *sinkNode) put(r *record.Row, value []byte) error {
	key := r.Key
	if k.key != nil {
		v, err := k.key(r)
		if err != nil {
			return k.bad(err)
		}
		key = nil
		if !v.IsNull() {
			k.keyBuf = appendText(k.keyBuf[:0], v)
			key = k.keyBuf
		}
	}
	if key == nil && k.use.sink.upsert {
		return k.bad(errNoKey)
	}
	partition := k.in.env.Task.Partition % k.partitions
	if key != nil {
		partition = record.PartitionOf(key, k.partitions) // before the window is added: a group's windows stay together
	}
	if key != nil && k.use.sink.spec.KeyWithWindow {
		k.keyBuf = append(append(k.keyBuf[:0], key...), '|')
		k.keyBuf = strconv.AppendInt(k.keyBuf, r.Window.Start, 10)
		key = k.keyBuf
	}
	headers, err := k.rowHeaders(r)
	if err != nil {
		return k.bad(err)
	}
	if size := len(key) + len(value); size > k.in.env.MaxRecordBytes {
		return k.in.bad(k.in.sub.plan.errors.production, "production", k.name, fmt.Errorf("the result has %d bytes, %s takes %d", size, k.use.sink.topic.name, k.in.env.MaxRecordBytes))
	}
	k.produced.n++
	k.produced.bytes += int64(len(key) + len(value))
	k.latency.Add(k.in.now - r.Time)
	k.in.out.Append(k.use.sink.topic, partition, &record.Record{Key: key, Value: value, Headers: headers, Timestamp: r.Time})
	return nil
}

func (k *sinkNode) rowHeaders(r *record.Row) ([]record.Header, error) {
	if len(k.headerEval) == 0 {
		return r.Headers, nil
	}
	k.headers = append(k.headers[:0], r.Headers...)
	for i, e := range k.headerEval {
		v, err := e(r)
		if err != nil {
			return nil, err
		}
		h := record.Header{Key: k.use.headers[i].name}
		if !v.IsNull() {
			k.headerBufs[i] = appendText(k.headerBufs[i][:0], v)
			h.Value = k.headerBufs[i]
		}
		k.headers = append(k.headers, h)
	}
	return k.headers, nil
}

func (k *sinkNode) bad(err error) error {
	return k.in.bad(k.in.sub.plan.errors.processing, "processing", k.name, err)
}

// late writes a record that windows have refused: as it came, with how late it was.
func (k *sinkNode) late(r *record.Row, p *portNode, lateBy int64, refused []int64) {
	out := record.Record{Key: r.Key, Value: r.Value, Timestamp: r.Time}
	if c := k.in.current; c != nil {
		out.Key, out.Value = c.Key, c.Value
	}
	if p != nil && p.encoder != nil { // a derived row has no bytes of its own
		k.valueBuf = p.encoder.Append(k.valueBuf[:0], r.Fields)
		out.Key, out.Value = r.Key, k.valueBuf
	}
	var by, ends []byte
	by = strconv.AppendInt(by, lateBy, 10)
	for i, end := range refused {
		if i > 0 {
			ends = append(ends, ',')
		}
		ends = strconv.AppendInt(ends, end, 10)
	}
	out.Headers = append(append(k.headers[:0], r.Headers...), record.Header{Key: []byte("millrace-late-by-ms"), Value: by}, record.Header{Key: []byte("millrace-window-end"), Value: ends})
	k.headers = out.Headers
	partition := k.in.env.Task.Partition % k.partitions
	if out.Key != nil {
		partition = record.PartitionOf(out.Key, k.partitions)
	}
	k.produced.n++
	k.produced.bytes += int64(len(out.Key) + len(out.Value))
	k.latency.Add(k.in.now - r.Time)
	k.in.out.Append(k.use.sink.topic, partition, &out)
}
