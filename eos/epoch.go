// Package eos carries one epoch through Kafka: everything that the tasks of this process did since the last commit
// becomes visible at once, or not at all. It decides the order; package kafka does the talking.
package eos

import (
	"context"
	"maps"
	"time"

	"millrace/crash"
	"millrace/record"
)

// Part is what one task contributes to an epoch. The committer owns it until Commit returns.
type Part struct {
	Task       record.TaskID
	Outputs    []*record.Outbox // results, repartitioned rows, late and dead letters
	Changelogs []*record.Outbox // one a store, in the store's order; the last record of each is the progress record
	Offsets    []InputOffset
	Tallies    []record.Tally
}

// InputOffset is the next offset of one input partition, with what the task wants to find beside it at its next start.
type InputOffset struct {
	record.TopicPartition
	Next     record.Offset
	Metadata string
}

// Epoch is what one transaction carries.
type Epoch struct {
	Number int64
	Parts  []Part
	// Owned tells whether every task of the epoch is still this member's. It is asked under the gate of the group's
	// generation, directly before the offsets are committed: offsets of a partition that was revoked are not fenced by
	// a later generation.
	Owned func() bool
	// ResultsFirst writes the changelogs only after all results are acknowledged. Without a transaction a failure in
	// between would otherwise leave a changelog that has forgotten the rows of a result that was never written.
	ResultsFirst bool
}

// Result is what the brokers said to a committed epoch.
type Result struct {
	Ends    map[record.TopicPartition]record.Offset // next offset of every partition written to
	Produce time.Duration
	Offsets time.Duration
	End     time.Duration
}

// Producer is the transactional producer of the process. Any error of any method leaves the outcome undecided: the
// caller drops the epoch and recovers, it never calls the producer again for the same epoch.
type Producer interface {
	// Begin makes the producer ready: it takes a new producer epoch when the connection has had faults since the last, so
	// that a late request of an old transaction can never decide this one.
	Begin(ctx context.Context) error
	// Produce writes the outboxes within the transaction and returns the next offset of every partition once all of it is
	// acknowledged.
	Produce(ctx context.Context, boxes []*record.Outbox) (map[record.TopicPartition]record.Offset, error)
	// CommitOffsets adds the input offsets to the transaction under the group's present generation.
	CommitOffsets(ctx context.Context, offsets []InputOffset, owned func() bool) error
	// Commit ends the transaction. After nil, and only then, the epoch is decided as committed.
	Commit(ctx context.Context) error
}

// Commit carries the epoch through Kafka. After an error nothing is known about it: the transaction may even have been
// committed. The caller then drops every overlay and starts all tasks anew from what the brokers say, the same way as
// after a crash.
//
// The order is what makes a crash at any point harmless: all writes are acknowledged before the offsets, so a restore
// that reads up to the end offset sees them; the offsets are in the same transaction as the writes; and the store learns
// of the epoch only after it is decided.
func Commit(ctx context.Context, p Producer, e Epoch) (Result, error) {
	var r Result
	begin := time.Now()
	if err := p.Begin(ctx); err != nil {
		return r, err
	}
	crash.At("commit.begin")
	var err error
	if r.Ends, err = e.produce(ctx, p); err != nil {
		return r, err
	}
	crash.At("commit.produced")
	produced := time.Now()
	r.Produce = produced.Sub(begin)
	if err := p.CommitOffsets(ctx, e.offsets(), e.Owned); err != nil {
		return r, err
	}
	crash.At("commit.offsets")
	added := time.Now()
	r.Offsets = added.Sub(produced)
	if err := p.Commit(ctx); err != nil {
		return r, err
	}
	crash.At("commit.ended")
	r.End = time.Since(added)
	return r, nil
}

func (e Epoch) produce(ctx context.Context, p Producer) (map[record.TopicPartition]record.Offset, error) {
	results, changelogs := e.boxes()
	if !e.ResultsFirst || len(results) == 0 || len(changelogs) == 0 {
		return p.Produce(ctx, append(results, changelogs...))
	}
	ends, err := p.Produce(ctx, results)
	if err != nil {
		return nil, err
	}
	more, err := p.Produce(ctx, changelogs)
	if err != nil {
		return nil, err
	}
	maps.Copy(more, ends)
	return more, nil
}

func (e Epoch) boxes() (results, changelogs []*record.Outbox) {
	for _, p := range e.Parts {
		for _, b := range p.Outputs {
			if b.Count > 0 {
				results = append(results, b)
			}
		}
		changelogs = append(changelogs, p.Changelogs...)
	}
	return results, changelogs
}

func (e Epoch) offsets() []InputOffset {
	var offsets []InputOffset
	for _, p := range e.Parts {
		offsets = append(offsets, p.Offsets...)
	}
	return offsets
}

// Ends returns the part's changelog positions after the epoch, in the stores' order; -1 where nothing was written.
func (r Result) ChangelogEnds(p Part) []record.Offset {
	ends := make([]record.Offset, len(p.Changelogs))
	for i, b := range p.Changelogs {
		ends[i] = -1
		if end, ok := r.Ends[b.To]; ok {
			ends[i] = end
		}
	}
	return ends
}
