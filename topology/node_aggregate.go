package topology

import (
	"encoding/binary"
	"errors"
	"slices"

	"millrace/record"
	"millrace/topology/aggregate"
	"millrace/topology/expr"
	"millrace/topology/window"
)

// aggregator is a grouped step at work. A row of its store is the aggregates' state, then the newest event time in it
// (8 bytes) and the number of its last revision (4 bytes).
type aggregator struct {
	in      *Instance
	plan    *aggregatePlan
	name    string
	store   Store
	set     *aggregate.Set
	worker  *aggregate.Worker
	folding []expr.Eval // the folds of the port whose row is being added

	watermark int64
	holders   []*aggregator // whose results it reads: its time is behind theirs
	promise   int64         // no result that is still to come is older
	dueAt     int64         // the watermark from which on fire has something to do
	open      []int64       // segments that may have rows, ascending
	closing   *closing
	fired     int64               // corrections: the first results of windows up to this end are out
	sweep     int64               // ttl: the next event time at which a shard is swept
	cursor    windowCursor        // slices: how far windows have been put out
	ended     map[string]struct{} // rows whose last change went out when they ended, in this epoch; see emitChanged

	key, state, merged []byte
	args               []record.Value
	refused            []int64

	result  resultNode
	late    *sinkNode
	tallies struct{ late, lateWindow, closed, expired *tally }
}

const rowTrailer = 8 + 4

func newAggregator(in *Instance, plan *aggregatePlan) (*aggregator, error) {
	a := &aggregator{in: in, plan: plan, name: plan.step.spec.Name.Value, watermark: record.NoTime, promise: record.NoTime, fired: record.NoTime, sweep: record.NoTime, ended: map[string]struct{}{}}
	a.store = in.env.Store(plan.store)
	a.args = make([]record.Value, len(plan.items))
	items := slices.Clone(plan.items)
	for i := range items {
		if items[i].Eval != nil {
			items[i].Eval = func(r *record.Row) (record.Value, error) { return a.folding[i](r) }
		}
	}
	var err error
	if a.set, err = aggregate.NewSet(items); err != nil {
		return nil, err
	}
	a.worker = a.set.Bind()
	a.tallies.late = in.counter(record.Late, a.name, "")
	a.tallies.lateWindow = in.counter(record.LateWindow, a.name, "")
	a.tallies.closed = in.counter(record.WindowClosed, a.name, "")
	a.tallies.expired = in.counter(record.Expired, a.name, "")
	return a, nil
}

// connect finds what is behind the step.
func (a *aggregator) connect() error {
	if a.plan.late.to != nil {
		var err error
		if a.late, err = newSinkNode(a.in, a.plan.late.to); err != nil {
			return err
		}
	}
	return a.result.connect(a)
}

// reopen takes up the restored rows.
func (a *aggregator) reopen() {
	a.open = a.open[:0]
	for _, id := range a.store.Segments() {
		if id != cursorSegment {
			a.open = append(a.open, id)
		}
	}
	a.closing, a.fired = nil, record.NoTime
	a.readCursor()
	a.schedule()
}

// add takes one row of a port whose key is the group's.
func (a *aggregator) add(p *portNode, r *record.Row) error {
	var ok bool
	var err error
	if a.key, ok, err = p.groupKey(a.key[:0], a.plan.key, r); !ok || err != nil {
		return err
	}
	return a.addKeyed(p, a.key, r)
}

// addKeyed takes one row whose group's key is known.
func (a *aggregator) addKeyed(p *portNode, key []byte, r *record.Row) error {
	for i, arg := range p.args {
		if arg == nil {
			a.args[i] = record.Value{}
			continue
		}
		v, err := arg(r)
		if err != nil {
			return err
		}
		a.args[i] = v
	}
	a.folding = p.folds
	w := a.plan.windows
	if w == nil {
		return a.update(a.shard(key), 0, key, r)
	}
	a.refused = a.refused[:0]
	accepted := false
	for end := w.FirstEnd(r.Time); end <= w.LastEnd(r.Time); end += w.Advance {
		if w.Closed(end, a.watermark) {
			a.refused = append(a.refused, end)
			continue
		}
		accepted = true
		if !a.plan.slices {
			if err := a.update(end, end, key, r); err != nil {
				return err
			}
		}
	}
	if accepted && a.plan.slices {
		if err := a.settle(); err != nil {
			return err
		}
		if err := a.update(w.SliceEnd(r.Time), 0, key, r); err != nil {
			return err
		}
	}
	if len(a.refused) > 0 {
		a.refuse(p, r)
	}
	return nil
}

// refuse gives a record that came too late for at least one of its windows what the late policy says.
func (a *aggregator) refuse(p *portNode, r *record.Row) {
	a.tallies.late.n++
	a.tallies.lateWindow.n += int64(len(a.refused))
	if a.late != nil {
		a.late.late(r, p, a.watermark-a.plan.windows.CloseTime(a.refused[0]), a.refused)
	}
}

// update adds the present arguments to one row. end is the window's, or 0 for rows that are no window.
func (a *aggregator) update(segment, end int64, key []byte, r *record.Row) error {
	newest, revision, err := a.begin(segment, key, r.Time)
	if err != nil {
		return err
	}
	if a.state, err = a.worker.Add(a.state, a.args, r); err != nil {
		return err
	}
	return a.save(segment, end, key, newest, revision)
}

// begin leaves a copy of the row's state in a.state, or that of no records where there is no row. newest is the newest
// event time of the row and of what is about to be added to it, which has the time at.
func (a *aggregator) begin(segment int64, key []byte, at int64) (newest int64, revision uint32, err error) {
	row, found, err := a.store.Load(segment, key)
	if err != nil {
		return 0, 0, fatal{err}
	}
	if found && a.expired(row) {
		a.tallies.expired.n++
		found = false
	}
	if !found {
		a.state = a.set.Init(a.state[:0])
		return at, 0, nil
	}
	state, newest, revision, err := splitRow(row)
	if err != nil {
		return 0, 0, fatal{err}
	}
	a.state = append(a.state[:0], state...)
	return max(newest, at), revision, nil
}

// save writes the row whose state is in a.state, and puts out what the emit mode asks for at once.
func (a *aggregator) save(segment, end int64, key []byte, newest int64, revision uint32) error {
	a.touch(segment)
	if a.deletes() {
		null, err := a.foldedToNull()
		if err != nil {
			return err
		}
		if null {
			a.store.Save(segment, key, nil, a.plan.emit == emitChanges)
			return nil
		}
	}
	correct := a.plan.emit == emitCorrections && end <= a.watermark
	if correct {
		revision++
	}
	state := len(a.state)
	a.state = appendTrailer(a.state, newest, revision)
	a.store.Save(segment, key, a.state, a.plan.emit == emitChanges)
	if correct {
		return a.result.emit(key, a.state[:state], newest, a.window(end), revision)
	}
	return nil
}

func (a *aggregator) window(end int64) record.Window {
	if a.plan.windows == nil {
		return record.Window{}
	}
	return record.Window{Start: a.plan.windows.Start(end), End: end}
}

// deletes tells whether the step is a single fold, whose null ends the row, as in Kafka Streams. Where corrections count
// their revisions the row has to stay: its null is a result like any other.
func (a *aggregator) deletes() bool {
	return len(a.plan.items) == 1 && a.plan.items[0].Call.Name == "fold" && a.plan.emit != emitCorrections
}

func (a *aggregator) foldedToNull() (bool, error) {
	var out [1]record.Value
	err := a.worker.Result(a.state, out[:])
	return out[0].IsNull(), err
}

func appendTrailer(state []byte, newest int64, revision uint32) []byte {
	state = binary.LittleEndian.AppendUint64(state, uint64(newest))
	return binary.LittleEndian.AppendUint32(state, revision)
}

var errRow = errors.New("a row of the store is damaged: it is too short")

func splitRow(row []byte) (state []byte, newest int64, revision uint32, err error) {
	n := len(row) - rowTrailer
	if n < 0 {
		return nil, 0, 0, errRow
	}
	return row[:n], int64(binary.LittleEndian.Uint64(row[n:])), binary.LittleEndian.Uint32(row[n+8:]), nil
}

// touch notes that a segment has rows.
func (a *aggregator) touch(segment int64) {
	n := len(a.open)
	if n > 0 && a.open[n-1] == segment {
		return
	}
	if i, found := slices.BinarySearch(a.open, segment); !found {
		a.open = slices.Insert(a.open, i, segment)
		a.schedule()
	}
}

// merge adds a partial state, which a task upstream has combined from n records with the newest time given, to a row.
func (a *aggregator) merge(segment int64, key, partial []byte, newest, n int64) error {
	if w := a.plan.windows; w != nil && w.Closed(w.LastEnd(segment-1), a.watermark) {
		// The task upstream combines only what cannot be late here; see shuffleNode.mayCombine.
		a.tallies.late.n += n
		a.tallies.lateWindow.n += n
		return nil
	}
	newest, revision, err := a.begin(segment, key, newest)
	if err != nil {
		return err
	}
	if a.state, err = a.worker.Merge(a.state, partial); errors.Is(err, aggregate.ErrCorrupt) {
		return fatal{err}
	} else if err != nil {
		return err // a sum that is too large for its type, which one task alone may never see
	}
	return a.save(segment, segment, key, newest, revision)
}

// promiseWindows raises the promise of a step with windows: a window that is not over may still put out a row as old as
// its start. While windows wait to be put out nothing is promised beyond them.
func (a *aggregator) promiseWindows() {
	w := a.plan.windows
	if a.watermark < -window.MaxTime || a.due() {
		return
	}
	a.promise = max(a.promise, w.Start(w.FirstEnd(a.watermark-w.Lateness)))
}
