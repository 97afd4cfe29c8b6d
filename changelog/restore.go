package changelog

import (
	"context"
	"fmt"

	"millrace/record"
)

// Reader reads the changelog's partition at read_committed.
type Reader interface {
	// Read returns the next batch from the offset on; empty when nothing decided lies there yet.
	Read(ctx context.Context, from record.Offset) (record.Batch, error)
}

// Store takes what the changelog holds.
type Store interface {
	// Apply takes one committed change; nil ends the row.
	Apply(segment int64, key, value []byte)
	// Reached says that everything before next has been applied. It may flush, and block for it, and report progress.
	Reached(next record.Offset) error
}

// Restored tells what a restore did.
type Restored struct {
	Records  int64 // applied, tombstones included
	Position record.Offset
	Progress *Progress // the newest that was read; nil if none was
}

// Restore applies the changelog from the offset on until its own position reaches end, which is the high watermark as
// of after the tasks's former owner was fenced. Position counts, not records: a transaction's end is a marker without a
// record. Waiting for the high watermark, not for the last stable offset, is what makes a commit count whose markers
// were still being written when its process died.
func Restore(ctx context.Context, r Reader, s Store, from, end record.Offset) (Restored, error) {
	result := Restored{Position: from}
	var progress []byte // the newest so far; only the last one is worth parsing
	for result.Position < end {
		b, err := r.Read(ctx, result.Position)
		if err != nil {
			return result, err
		}
		for i := range b.Records {
			c, err := decode(&b.Records[i])
			if err != nil {
				return result, fmt.Errorf("%s@%d: %w", b.From, b.Records[i].Offset, err)
			}
			switch {
			case !c.progress:
				s.Apply(c.segment, c.key, c.value)
				result.Records++
			case c.value != nil:
				progress = append(progress[:0], c.value...)
			}
		}
		b.WorkedOff()
		if b.Next > result.Position {
			result.Position = b.Next
			if err := s.Reached(b.Next); err != nil {
				return result, err
			}
		}
		if err := ctx.Err(); err != nil {
			return result, context.Cause(ctx)
		}
	}
	if progress != nil {
		var err error
		if result.Progress, err = ParseProgress(progress); err != nil {
			return result, err
		}
	}
	return result, nil
}
