package topology

import (
	"errors"
	"fmt"
	"math"

	"millrace/record"
	"millrace/topology/expr"
)

// inputNode is where a topic's records enter a task: decoding, event time, watermark.
type inputNode struct {
	in      *Instance
	plan    *Input
	channel int // of the clock; a repartition topic has one a writer
	present bool
	writers int

	out       *streamNode
	decoder   Decoder // nil: nothing of the value is read
	time      expr.Eval
	maxFuture int64
	row       record.Row
	consumed  *tally
	nullValue *tally
	lateness  *record.Spread
	ports     []*shufflePort // of a repartition topic
	unpacked  record.Record
	headers   []record.Header
	lastTopic string // of the rows that were unpacked
}

// shufflePort is the far side of a port whose rows came through a repartition topic.
type shufflePort struct {
	port    *portNode
	decoder Decoder
	fields  []record.Value
}

func (n *inputNode) connect() error {
	if n.plan.shuffle != nil {
		return n.connectShuffle()
	}
	s := n.plan.source
	n.consumed = n.in.counter(record.Consumed, n.plan.Source, n.plan.Topic)
	n.nullValue = n.in.counter(record.Dropped, n.plan.Source, "null_value")
	n.lateness = n.in.spread(record.Lateness, n.plan.Source)
	n.maxFuture = s.spec.Watermark.MaxFuture.Value.Milliseconds()
	var err error
	if n.decoder, err = n.in.decoder(s.spec.Format.Value, s.out.layout); err != nil {
		return err
	}
	n.row.Fields = make([]record.Value, len(s.out.layout.Paths()))
	if s.time != nil {
		n.time = s.time.Bind()
	}
	n.out, err = n.in.node(s.out)
	return err
}

func (in *Instance) decoder(format string, l *expr.Layout) (Decoder, error) {
	if len(l.Paths()) == 0 {
		return nil, nil
	}
	var paths []FieldPath
	for _, p := range l.Paths() {
		paths = append(paths, FieldPath{Segments: p.Segments, Type: p.Type})
	}
	if format == "" {
		format = "json"
	}
	return in.env.Formats.Decoder(format, paths)
}

func (n *inputNode) process(r *record.Record) error {
	if n.plan.shuffle != nil {
		return n.unpack(r)
	}
	n.consumed.n++
	n.consumed.bytes += int64(len(r.Key) + len(r.Value))
	row := &n.row
	row.Key, row.Value, row.Headers, row.Time, row.From = r.Key, r.Value, r.Headers, r.Timestamp, n.in.origin
	if n.time == nil { // the record's own time counts whatever its value is
		if ok, err := n.takeTime(row); !ok {
			return err
		}
	}
	if r.Value == nil {
		n.nullValue.n++
		return nil
	}
	if n.decoder != nil {
		if err := n.decoder.Decode(r.Value, row.Fields); err != nil {
			return n.in.bad(n.in.sub.plan.errors.deserialization, "deserialization", n.plan.Source, err)
		}
	}
	if n.time != nil {
		if ok, err := n.takeTime(row); !ok {
			return err
		}
	}
	return n.out.deliver(row)
}

// takeTime finds the row's time and moves the clock by it; false means that the record has gone elsewhere.
func (n *inputNode) takeTime(row *record.Row) (bool, error) {
	ok, err := n.eventTime(row)
	if !ok {
		return false, err
	}
	n.lateness.Add(n.in.clock.Behind(n.channel, row.Time))
	if n.in.clock.Observe(n.channel, row.Time) {
		n.in.advance()
	}
	return true, nil
}

var (
	errNoGroup    = errors.New("the value of group_by is null")
	errNoTime     = errors.New("the timestamp is missing or null")
	errNegative   = errors.New("the timestamp is before 1970")
	errTooLarge   = errors.New("the timestamp is too large: it is milliseconds since 1970")
	errFuture     = errors.New("the timestamp is further in the future than max_future allows")
	errNoNewTime  = errors.New("no record of the partition has had a usable timestamp yet")
	errNotATime   = errors.New("the timestamp is neither a time nor a whole number of milliseconds")
	maxTimeMillis = int64(1) << 53
)

// eventTime sets the row's time; false means that the record has gone elsewhere and moves no time.
func (n *inputNode) eventTime(row *record.Row) (bool, error) {
	at, err := row.Time, error(nil)
	if n.time != nil {
		var v record.Value
		if v, err = n.time(row); err == nil {
			at, err = millis(v)
		}
	}
	switch {
	case err != nil:
	case at < 0:
		err = errNegative
	case at > maxTimeMillis:
		err = errTooLarge
	case n.maxFuture > 0 && at > n.in.now+n.maxFuture:
		err = errFuture
	default:
		row.Time = at
		return true, nil
	}
	if policy := n.timePolicy(err); policy != PartitionTime {
		return false, n.in.bad(policy, "timestamp", n.plan.Source, err)
	}
	newest, _, _ := n.in.clock.Channel(n.channel)
	if newest == record.NoTime {
		return false, n.in.bad(Fail, "timestamp", n.plan.Source, errNoNewTime)
	}
	row.Time = newest
	return true, nil
}

// timePolicy is what a record without a usable time gets. One of a broken clock goes to the dead letters where there are
// any: whatever else is wished for bad times, it must neither move time nor stop the job nor vanish.
func (n *inputNode) timePolicy(err error) Policy {
	policy := n.plan.source.invalidTimestamp
	future := errors.Is(err, errFuture)
	switch {
	case n.in.deadLetter != nil && (future || policy == PartitionTime && errors.Is(err, errTooLarge)):
		return DeadLetter
	case policy == PartitionTime && (future || errors.Is(err, errTooLarge)):
		return Skip
	}
	return policy
}

func millis(v record.Value) (int64, error) {
	switch v.Kind {
	case record.Time, record.Long:
		return v.Num, nil
	case record.Missing, record.Null:
		return 0, errNoTime
	}
	return 0, fmt.Errorf("%w: %s", errNotATime, v.Kind)
}

// newestAccepted is the newest event time that any source accepts now.
func (in *Instance) newestAccepted() int64 {
	newest := in.now
	for _, n := range in.inputs {
		if n.plan.source == nil || n.maxFuture <= 0 {
			return math.MaxInt64
		}
		newest = max(newest, in.now+n.maxFuture)
	}
	return newest
}
