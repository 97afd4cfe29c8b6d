package task

import (
	"time"

	"millrace/eos"
	"millrace/record"
)

// Manual drives a task by hand on the caller's goroutine, instead of Run: the test command does, with a clock of its own
// and no broker. It is the same task.
type Manual struct{ *Task }

// Step does a bounded piece of work; false means that there is nothing to do.
func (m Manual) Step() (worked bool, err error) { return m.step() }

// Tick looks after idleness and flushes, as of the task's clock.
func (m Manual) Tick() error { return m.tick() }

// Freeze ends the task's epoch; nil if it did nothing.
func (m Manual) Freeze() (*eos.Part, error) { return m.freeze() }

// Committed takes a committed epoch's changelog ends.
func (m Manual) Committed(ends []record.Offset) {
	if m.state != nil && m.pending != nil {
		m.state.SetNote(m.pending.progress)
		m.state.Commit(ends, m.options.Clock())
	}
	m.pending = nil
}

// AdvanceSource moves the watermark of a source by decree, on this task's partition of it.
func (m Manual) AdvanceSource(source string, to time.Time) {
	for i := range m.inputs {
		if in := &m.inputs[i]; in.source == source && in.present {
			in.heard = m.options.Clock()
			m.instance.AdvanceInput(i, to.UnixMilli())
			m.dirty = true
		}
	}
}

// Watermark is the task's event time, ms; record.NoTime before there is any.
func (m Manual) Watermark() int64 { return m.instance.Clock().Watermark() }
