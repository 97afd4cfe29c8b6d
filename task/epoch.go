package task

import (
	"bytes"
	"encoding/base64"

	"millrace/changelog"
	"millrace/eos"
	"millrace/record"
	"millrace/topology"
)

// part is an epoch that was handed over.
type part struct {
	eos.Part
	progress []byte
	records  int64
}

// Freeze ends the task's epoch and returns what it did; nil if nothing. The one before must be decided.
func (t *Task) Freeze() (p *eos.Part, records int64, err error) {
	ended := t.do(func() {
		if p, err = t.freeze(); p != nil {
			records = t.pending.records
		}
	})
	if ended != nil {
		return nil, 0, ended
	}
	return p, records, err
}

func (t *Task) freeze() (*eos.Part, error) {
	clock := t.instance.Clock().Encode(nil)
	if !t.dirty && bytes.Equal(clock, t.told) {
		return nil, nil
	}
	if err := t.instance.Freeze(); err != nil {
		return nil, err
	}
	if t.spare == nil {
		t.spare = &topology.Outputs{}
	}
	t.spare.Reset() // it was the epoch before, which is decided
	full := t.instance.Swap(t.spare)
	t.spare = full
	t.epoch++
	out := &part{records: t.records}
	out.Task, out.Outputs, out.Tallies = t.id, full.Boxes(), t.instance.Tallies()
	out.Offsets = t.offsets(clock)
	if t.state != nil {
		t.state.Freeze()
		if err := t.encodeChanges(out, clock); err != nil {
			return nil, err
		}
	}
	t.dirty, t.hurried, t.quiet = false, false, false
	t.records, t.told, t.pending = 0, clock, out
	return &out.Part, nil
}

// offsets lists the next offset of each input. A task without a store has no progress record: it keeps its clock in the
// offsets' metadata, so that time does not go back for the tasks behind it.
func (t *Task) offsets(clock []byte) []eos.InputOffset {
	note := ""
	if t.state == nil && t.sub.KeepsTime() {
		note = base64.RawStdEncoding.EncodeToString(clock)
	}
	var offsets []eos.InputOffset
	for _, in := range t.inputs {
		if in.present {
			offsets = append(offsets, eos.InputOffset{TopicPartition: in.tp, Next: in.position, Metadata: note})
		}
	}
	return offsets
}

func (t *Task) encodeChanges(out *part, clock []byte) error {
	now := t.options.Clock().UnixMilli()
	p := changelog.Progress{Task: t.id.String(), StoreID: t.storeID, Epoch: t.epoch, TransactionalID: t.options.TransactionalID, Clock: clock, Fingerprints: map[string]string{}, Changelogs: map[string]string{}}
	for _, o := range out.Offsets {
		p.Inputs = append(p.Inputs, changelog.InputOffset{Topic: o.Topic, Partition: o.Partition, Next: o.Next})
	}
	for i, step := range t.sub.Stores {
		p.Fingerprints[step] = t.options.Plan.Fingerprint(step)
		if t.topicIDs[i] != "" {
			p.Changelogs[step] = t.topicIDs[i]
		}
	}
	var err error
	if out.progress, err = p.Encode(); err != nil {
		return err
	}
	for i := range t.sub.Stores {
		if len(t.changelogs) <= i {
			t.changelogs = append(t.changelogs, &record.Outbox{To: t.changelog(i)})
		}
		box := t.changelogs[i]
		box.Reset()
		t.state.Store(i).Changes(func(segment int64, key, value []byte) { t.encoder.Append(box, segment, key, value, now) })
		changelog.AppendProgress(box, out.progress, now)
	}
	out.Changelogs = t.changelogs
	return nil
}

// Committed tells the task that its frozen epoch is part of a committed transaction, with the changelogs now ending at
// ends.
func (t *Task) Committed(ends []record.Offset) error {
	return t.do(func() { Manual{t}.Committed(ends) })
}

// Status is what a task tells about itself.
type Status struct {
	Inputs []record.WatermarkStatus
	Stores []record.StoreStats
	Work   record.TaskStats
}

// Status asks the task how it is.
func (t *Task) Status() (s Status, err error) {
	err = t.do(func() {
		for i := range t.inputs {
			in := &t.inputs[i]
			if !in.present {
				continue
			}
			lag, _ := t.inbox.lag(i, in.position)
			w := t.instance.InputTime(i)
			w.Source, w.Topic, w.Partition, w.Lag = in.source, in.tp.Topic, in.tp.Partition, lag
			if w.Oldest = t.inbox.oldest(i); t.input == i && t.at < len(t.batch.Records) {
				w.Oldest = t.batch.Records[t.at].Timestamp
			}
			s.Inputs = append(s.Inputs, w)
		}
		spent := t.meter.take(t.options.Clock())
		s.Work = record.TaskStats{Task: t.id, Busy: spent[busy], Backpressured: spent[blocked], Windows: t.instance.Open()}
		if t.state == nil {
			return
		}
		hits, misses := t.state.CacheStats()
		for i, name := range t.sub.Stores {
			st := record.StoreStats{Task: t.id, Store: name, Keys: t.state.Rows(i), Bytes: int64(t.state.Store(i).CacheBytes()), Operations: t.state.Store(i).Operations()}
			if i == 0 {
				disk, valueLog := t.state.DiskBytes()
				st.Bytes += disk
				st.CacheHits, st.CacheMisses, st.ValueLogBytes = hits, misses, valueLog
			}
			s.Stores = append(s.Stores, st)
		}
	})
	return s, err
}
