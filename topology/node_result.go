package topology

import (
	"strconv"

	"millrace/record"
	"millrace/topology/expr"
)

// resultNode turns a group's state into a row and hands it on: having, select, then whatever reads the step.
type resultNode struct {
	a       *aggregator
	having  func(*record.Row) (bool, error)
	selects []expr.Eval
	out     *streamNode
	row     record.Row
	chosen  record.Row // of select
	headers [2]record.Header
	start   []byte
	end     []byte

	filtered *tally
}

func (n *resultNode) connect(a *aggregator) error {
	n.a = a
	n.row.Fields = make([]record.Value, len(a.plan.fields))
	n.selects = bindAll(a.plan.selects)
	n.chosen.Fields = make([]record.Value, len(n.selects))
	if a.plan.having != nil {
		n.having = a.plan.having.BindBool()
	}
	n.filtered = a.in.counter(record.Filtered, a.name, "")
	n.headers[0].Key, n.headers[1].Key = []byte("window_start"), []byte("window_end")
	var err error
	n.out, err = a.in.node(a.plan.out)
	return err
}

// emit puts out a group's row. newest is the newest event time in it, which becomes the result's. revision is 0 for
// steps that have none.
func (n *resultNode) emit(key, state []byte, newest int64, w record.Window, revision uint32) error {
	a := n.a
	row := &n.row
	if key == nil {
		key = []byte{} // the empty group is a group, not the lack of one
	}
	groups := len(a.plan.key.fields)
	if err := a.plan.key.parse(key, row.Fields[:groups]); err != nil {
		return fatal{err}
	}
	at := groups
	if a.plan.windows != nil {
		row.Fields[at], row.Fields[at+1] = record.TimeValue(w.Start), record.TimeValue(w.End)
		at += 2
	}
	if err := a.worker.Result(state, row.Fields[at:at+len(a.plan.items)]); err != nil {
		return fatal{err}
	}
	if a.plan.revision {
		at += len(a.plan.items)
		row.Fields[at] = record.LongValue(int64(revision))
		row.Fields[at+1] = record.BoolValue(a.plan.windows.Closed(w.End, a.watermark))
	}
	row.Key, row.Time, row.Window = key, newest, w
	row.Headers = nil
	if a.plan.windows != nil && a.plan.emit != emitChanges {
		n.start, n.end = strconv.AppendInt(n.start[:0], w.Start, 10), strconv.AppendInt(n.end[:0], w.End, 10)
		n.headers[0].Value, n.headers[1].Value = n.start, n.end
		row.Headers = n.headers[:]
	}
	outer := a.in.result
	a.in.result = row
	err := n.forward(row)
	a.in.result = outer
	return err
}

func (n *resultNode) forward(row *record.Row) error {
	policy := n.a.in.sub.plan.errors.processing
	if n.having != nil {
		ok, err := n.having(row)
		if err != nil {
			return n.a.in.bad(policy, "processing", n.a.name, err)
		}
		if !ok {
			n.filtered.n++
			return nil
		}
	}
	if len(n.selects) == 0 {
		return n.out.deliver(row)
	}
	for i, s := range n.selects {
		v, err := s(row)
		if err != nil {
			return n.a.in.bad(policy, "processing", n.a.name, err)
		}
		n.chosen.Fields[i] = v
	}
	n.chosen.Key, n.chosen.Headers, n.chosen.Time, n.chosen.Window = row.Key, row.Headers, row.Time, row.Window
	return n.out.deliver(&n.chosen)
}

// remove tells the sinks that keep one row a key that the group's row has ended. Other sinks only ever see rows.
func (n *resultNode) remove(key []byte, w record.Window) error {
	n.row.Key, n.row.Time, n.row.Window, n.row.Headers = key, max(n.a.watermark, 0), w, nil
	for _, s := range n.out.sinks {
		if s.use.sink.upsert && s.key == nil {
			if err := s.put(&n.row, nil); err != nil {
				return err
			}
		}
	}
	return nil
}
