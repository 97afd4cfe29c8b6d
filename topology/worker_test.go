package topology_test

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"millrace/formats"
	"millrace/record"
	"millrace/store"
	"millrace/topology"
)

// worker is one task as far as these tests need one: it reads its inputs, ends epochs and starts again from what was
// committed. Two epochs are under way while one is frozen and not yet decided, as in production.
type worker struct {
	w        *world
	id       record.TaskID
	sub      *topology.Subtopology
	inputs   []record.TopicPartition
	instance *topology.Instance
	state    *store.State
	next     []record.Offset
	limit    int   // of Fire; 0: none
	reached  int64 // watermark, which must not go back

	frozen    *frozenEpoch
	committed progress
	changelog []change
	ends      []int // how long the topic out was after each epoch
}

// progress is what a task's progress record holds.
type progress struct {
	next      []record.Offset
	clock     []byte
	watermark int64
}

type frozenEpoch struct {
	progress
	outputs *topology.Outputs
	tallies []record.Tally
	changes []change
}

type change struct {
	store      int
	segment    int64
	key, value []byte
}

// start builds the task anew, with the state that its changelog gives.
func (k *worker) start() {
	t := k.w.t
	t.Helper()
	var err error
	if k.state, err = store.Open(store.NewMemory(), store.Options{Stores: k.sub.Stores, CacheBytes: 1 << 20}); err != nil {
		t.Fatalf("%v", err)
	}
	for _, c := range k.changelog {
		k.state.Apply(c.store, c.segment, c.key, c.value)
	}
	present := make([]bool, len(k.inputs))
	for i, tp := range k.inputs {
		present[i] = tp.Partition < k.w.count(tp.Topic)
	}
	k.instance, err = k.sub.Build(topology.Env{
		Task: k.id, Formats: formats.ByName{}, Present: present, Partitions: k.w.count, Writers: k.w.writers, MaxRecordBytes: 1 << 20,
		Store: func(i int) topology.Store { return stateStore{k.state.Store(i)} },
		Scratch: func() (topology.Store, func()) {
			s := store.NewScratch()
			return stateStore{s.Store}, s.Empty
		},
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	k.instance.SetNow(k.w.now)
	if k.committed.clock != nil {
		if err := k.instance.Clock().Restore(k.committed.clock); err != nil {
			t.Fatalf("%v", err)
		}
	}
	k.instance.Reopen()
	if got := k.instance.Clock().Watermark(); k.committed.clock != nil && got != k.committed.watermark {
		t.Fatalf("%s starts again at watermark %d, had committed %d", k.id, got, k.committed.watermark)
	}
	k.reached = k.instance.Clock().Watermark()
	k.next = append([]record.Offset(nil), k.committed.next...)
	k.frozen = nil
}

// restart loses all that is not committed.
func (k *worker) restart() { k.start() }

// has tells whether input i has a record that was not processed yet.
func (k *worker) has(i int) bool { return int(k.next[i]) < len(k.w.topics[k.inputs[i]]) }

// step processes the next record of input i. Windows that it leaves due are for fire to close.
func (k *worker) step(i int) error {
	r := k.w.topics[k.inputs[i]][k.next[i]]
	k.next[i]++
	// The operators may keep nothing of a record, so its bytes are destroyed afterwards.
	mine := record.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Headers: r.Headers, Timestamp: r.Timestamp, Offset: r.Offset}
	k.instance.SetNow(k.w.now)
	err := k.instance.Process(i, k.inputs[i], &mine)
	scribble(mine.Key)
	scribble(mine.Value)
	if got := k.instance.Clock().Watermark(); got < k.reached {
		k.w.t.Fatalf("%s: the watermark went back from %d to %d", k.id, k.reached, got)
	}
	k.reached = k.instance.Clock().Watermark()
	return err
}

func scribble(b []byte) {
	for i := range b {
		b[i] = '#'
	}
}

// fire closes what is due, with one call; false: nothing was.
func (k *worker) fire() bool {
	if !k.instance.Due() {
		return false
	}
	limit := k.limit
	if limit == 0 {
		limit = math.MaxInt
	}
	if err := k.instance.Fire(limit); err != nil {
		k.w.t.Fatalf("fire: %v", err)
	}
	return true
}

// drain processes all that there is, and tells whether there was anything.
func (k *worker) drain() (any bool) {
	for k.fire() {
		any = true
	}
	for i := range k.inputs {
		for k.has(i) {
			any = true
			if err := k.step(i); err != nil {
				k.w.t.Fatalf("%s: %v", k.id, err)
			}
			for k.fire() {
			}
		}
	}
	return any
}

// freeze ends the epoch; decide makes it seen.
func (k *worker) freeze() {
	k.decide()
	if err := k.instance.Freeze(); err != nil {
		k.w.t.Fatalf("freeze: %v", err)
	}
	k.state.Freeze()
	f := &frozenEpoch{outputs: k.instance.Swap(&topology.Outputs{}), tallies: k.instance.Tallies()}
	f.next = append(f.next, k.next...)
	f.clock, f.watermark = k.instance.Clock().Encode(nil), k.instance.Clock().Watermark()
	for i := range k.state.Stores() {
		k.state.Store(i).Changes(func(segment int64, key, value []byte) {
			f.changes = append(f.changes, change{i, segment, bytes.Clone(key), bytes.Clone(value)})
		})
	}
	k.frozen = f
}

func (k *worker) decide() {
	f := k.frozen
	if f == nil {
		return
	}
	k.frozen = nil
	k.state.Commit(make([]record.Offset, k.state.Stores()), time.Time{})
	k.committed = f.progress
	k.changelog = append(k.changelog, f.changes...)
	for _, box := range f.outputs.Boxes() {
		for cursor := box.Walk(); ; {
			r, ok := cursor.Next()
			if !ok {
				break
			}
			k.w.write(box.To.Topic, box.To.Partition, cloneRecord(r))
		}
	}
	k.ends = append(k.ends, len(k.w.read("out")))
	for _, t := range f.tallies {
		if t.Spread != nil {
			k.w.spreads[t.What].Merge(t.Spread)
			continue
		}
		k.w.tallies[fmt.Sprintf("%d %s %s", t.What, t.Where, t.Detail)] += t.N
	}
}

func (k *worker) commit() {
	k.freeze()
	k.decide()
}

// rows counts what the task's store i would hold after a restart.
func (k *worker) rows(i int) int {
	live := map[string]bool{}
	for _, c := range k.changelog {
		if c.store == i {
			id := fmt.Sprintf("%d %s", c.segment, c.key)
			if live[id] = c.value != nil; c.value == nil {
				delete(live, id)
			}
		}
	}
	return len(live)
}

func cloneRecord(r record.Record) record.Record {
	c := record.Record{Key: bytes.Clone(r.Key), Value: bytes.Clone(r.Value), Timestamp: r.Timestamp}
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, record.Header{Key: bytes.Clone(h.Key), Value: bytes.Clone(h.Value)})
	}
	return c
}
