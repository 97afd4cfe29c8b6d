package topology

import (
	"encoding/binary"

	"millrace/record"
	"millrace/topology/aggregate"
)

// shuffleNode is the near side of a repartition topic. Where the aggregates allow it, rows are combined by group and
// window over the epoch, so that the topic carries one record a group instead of one an event.
type shuffleNode struct {
	in         *Instance
	plan       *shufflePlan
	partitions int32

	set     *aggregate.Set // nil: nothing is combined
	worker  *aggregate.Worker
	rows    Store // state, newest time (8 bytes), number of records (4 bytes)
	empty   func()
	singles []*record.Outbox // rows that could not be combined, by partition; they go behind the combined ones
	args    []record.Value

	key, value, state []byte
	holders           []*aggregator // whose results it sends on
	told              int64         // watermark that the tasks behind know as of the last epoch
	toldIdle          bool          // they do not wait for this task
	waking            bool          // … any more, as of this epoch, which may not have reached them yet
	ahead             []int64       // by partition: watermark that the records of this epoch carry so far
}

func newShuffleNode(in *Instance, plan *shufflePlan) (*shuffleNode, error) {
	s := &shuffleNode{in: in, plan: plan, partitions: in.env.Partitions(plan.topic.name), told: record.NoTime}
	for range s.partitions {
		s.ahead = append(s.ahead, record.NoTime)
	}
	if !plan.combine {
		return s, nil
	}
	items := plan.step.aggregate.items
	s.args = make([]record.Value, len(items))
	var err error
	if s.set, err = aggregate.NewSet(items); err != nil {
		return nil, err
	}
	s.worker = s.set.Bind()
	s.rows, s.empty = in.env.Scratch()
	for p := range s.partitions {
		s.singles = append(s.singles, &record.Outbox{To: record.TopicPartition{Topic: plan.topic.name, Partition: p}})
	}
	return s, nil
}

// send takes one row of a port.
func (s *shuffleNode) send(p *portNode, r *record.Row) error {
	var ok bool
	var err error
	if s.key, ok, err = p.groupKey(s.key[:0], s.plan.step.aggregate.key, r); !ok || err != nil {
		return err
	}
	watermark := s.in.watermarkBehind(s.holders)
	if s.set != nil && s.mayCombine(r.Time, watermark) {
		return s.combine(p, r)
	}
	s.single(p, r, watermark)
	return nil
}

// mayCombine tells whether a row cannot be late behind the topic. The tasks there are at most as far in time as this
// one, since they take the minimum over all writers: what is in time here is in time there. The exception is a writer
// that was left out of the minimum because it was idle; the clock's guard says how long that lasts. Rows that may be late
// travel alone, as they came, to be judged there: this decides about the form in which they travel, never about results.
func (s *shuffleNode) mayCombine(at, watermark int64) bool {
	return !s.toldIdle && !s.waking && watermark >= s.in.clock.Guard() && !s.late(at, watermark)
}

// wake raises the guard after the tasks behind were told that this one is idle no more. They know when the epoch that
// tells it is committed, which is before the next one ends; until then they may go on as far as the newest time that any
// source accepts.
func (s *shuffleNode) wake(idle bool) {
	woke := s.toldIdle && !idle
	if woke || s.waking { // the first time for a restart in between
		s.in.clock.SetGuard(s.in.newestAccepted())
	}
	s.waking = woke
}

// late tells whether a window refuses rows of this time at a watermark.
func (s *shuffleNode) late(at, watermark int64) bool {
	w := s.plan.step.aggregate.windows
	return w != nil && w.Closed(w.FirstEnd(at), watermark)
}

func (s *shuffleNode) combine(p *portNode, r *record.Row) error {
	for i, arg := range p.args {
		s.args[i] = record.Value{}
		if arg != nil {
			v, err := arg(r)
			if err != nil {
				return err
			}
			s.args[i] = v
		}
	}
	segment := int64(0)
	if w := s.plan.step.aggregate.windows; w != nil {
		segment = w.SliceEnd(r.Time)
	}
	old, found, err := s.rows.Load(segment, s.key)
	if err != nil {
		return fatal{err}
	}
	newest, n := r.Time, uint32(1)
	s.state = s.state[:0]
	if found {
		var at int64
		var count uint32
		if old, at, count, err = splitRow(old); err != nil {
			return fatal{err}
		}
		newest, n = max(newest, at), count+1
		s.state = append(s.state, old...)
	} else {
		s.state = s.set.Init(s.state)
	}
	if s.state, err = s.worker.Add(s.state, s.args, r); err != nil {
		return err
	}
	s.state = appendTrailer(s.state, newest, n)
	s.rows.Save(segment, s.key, s.state, true)
	return nil
}

// single sends one row as it is. In front of a row that is late by a watermark that its partition does not know yet, the
// watermark goes alone: the windows that it closes must be put out before the row changes what they share with others.
func (s *shuffleNode) single(p *portNode, r *record.Row, watermark int64) {
	partition := record.PartitionOf(s.key, s.partitions)
	if watermark > s.ahead[partition] && s.late(r.Time, watermark) {
		s.value = appendShuffle(s.value[:0], shuffleWatermark, s.in.env.Task.Partition, watermark)
		s.queue(partition, nil, watermark)
	}
	s.ahead[partition] = max(s.ahead[partition], watermark)
	v := appendShuffle(s.value[:0], shuffleRow, s.in.env.Task.Partition, watermark)
	v = binary.AppendUvarint(v, uint64(s.portNumber(p)))
	v = binary.AppendVarint(v, r.Time)
	v = binary.AppendVarint(binary.AppendVarint(v, r.Window.Start), r.Window.End)
	v = append(binary.AppendUvarint(v, uint64(len(r.From.Topic))+1), r.From.Topic...)
	v = binary.AppendUvarint(v, uint64(r.From.Partition))
	v = binary.AppendVarint(binary.AppendVarint(v, r.From.Offset), r.From.Timestamp)
	v = appendBytes(v, r.Key)
	if p.encoder != nil {
		s.state = p.encoder.Append(s.state[:0], r.Fields)
		v = appendBytes(v, s.state)
	} else {
		v = appendBytes(v, r.Value)
	}
	v = binary.AppendUvarint(v, uint64(len(r.Headers)))
	for _, h := range r.Headers {
		v = appendBytes(appendBytes(v, h.Key), h.Value)
	}
	s.value = v
	s.queue(partition, s.key, r.Time)
}

// queue puts s.value behind the single rows of a partition.
func (s *shuffleNode) queue(partition int32, key []byte, at int64) {
	at = max(at, 0) // Kafka takes no other timestamps
	if s.set != nil {
		s.singles[partition].Append(key, s.value, nil, at)
		return
	}
	s.in.out.Append(s.plan.topic, partition, &record.Record{Key: key, Value: s.value, Timestamp: at})
}

func (s *shuffleNode) portNumber(p *portNode) int {
	for i, plan := range s.plan.ports {
		if plan == p.plan {
			return i
		}
	}
	return 0
}

// flush ends the epoch: combined rows first, since they were in time when they came, then the single ones, then the
// watermark for every partition if it has moved.
func (s *shuffleNode) flush() error {
	if s.set != nil {
		if err := s.flushCombined(); err != nil {
			return err
		}
	}
	watermark, idle := s.in.watermarkBehind(s.holders), s.in.clock.AllIdle()
	s.wake(idle)
	if watermark == s.told && idle == s.toldIdle || watermark == record.NoTime && !idle {
		return nil
	}
	kind := shuffleWatermark
	if idle {
		kind = shuffleIdle
	}
	s.value = appendShuffle(s.value[:0], kind, s.in.env.Task.Partition, watermark)
	for p := range s.partitions {
		s.in.out.Append(s.plan.topic, p, &record.Record{Value: s.value, Timestamp: max(watermark, 0)})
		s.ahead[p] = watermark
	}
	s.told, s.toldIdle = watermark, idle
	return nil
}

func (s *shuffleNode) flushCombined() error {
	err := s.rows.Changed(func(segment int64, key, row []byte) error {
		state, newest, n, err := splitRow(row)
		if err != nil {
			return fatal{err}
		}
		// The watermark is the one that the tasks behind know: the rows were in time when they came, and a newer one in
		// front of them would make them late.
		v := appendShuffle(s.value[:0], shufflePartial, s.in.env.Task.Partition, s.told)
		v = binary.AppendVarint(v, segment)
		v = binary.AppendUvarint(v, uint64(n))
		v = append(binary.AppendVarint(v, newest), state...)
		s.value = v
		s.in.out.Append(s.plan.topic, record.PartitionOf(key, s.partitions), &record.Record{Key: key, Value: v, Timestamp: newest})
		return nil
	})
	if err != nil {
		return err
	}
	s.empty()
	for p, box := range s.singles {
		for cursor := box.Walk(); ; {
			r, ok := cursor.Next()
			if !ok {
				break
			}
			s.in.out.Append(s.plan.topic, int32(p), &r)
		}
		box.Reset()
	}
	return nil
}
