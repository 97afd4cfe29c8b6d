package changelog

import (
	"encoding/json"
	"fmt"

	"millrace/record"
)

// Progress is the last record that a task writes to each of its changelogs in an epoch. It says what the rows before it
// mean: up to which input offset, under which plan, by whom. A start compares it with the group's offsets, so that moved
// or expired offsets, a changelog that was made anew and a changed plan are seen instead of giving wrong numbers.
type Progress struct {
	Format          int               `json:"format"`
	Task            string            `json:"task"`
	StoreID         string            `json:"store_id"`     // of the incarnation of the rows on the writer's disk
	Fingerprints    map[string]string `json:"fingerprints"` // of the task's stores, by step
	Epoch           int64             `json:"epoch"`
	TransactionalID string            `json:"transactional_id"`
	Inputs          []InputOffset     `json:"inputs"`               // next offset of each input partition
	Clock           []byte            `json:"clock"`                // the task's event time; its format is the task's
	Changelogs      map[string]string `json:"changelogs,omitempty"` // identities of the topics, by step, as far as the brokers tell
}

// InputOffset is the next offset of one input partition.
type InputOffset struct {
	Topic     string        `json:"topic"`
	Partition int32         `json:"partition"`
	Next      record.Offset `json:"next"`
}

// ProgressFormat is the format that this program writes.
const ProgressFormat = 1

var progressKey = []byte{kindProgress}

// Encode returns the progress as the changelog and the checkpoint hold it.
func (p *Progress) Encode() ([]byte, error) {
	p.Format = ProgressFormat
	return json.Marshal(p)
}

// AppendProgress writes an encoded progress record, the last of the epoch, to a changelog's outbox.
func AppendProgress(box *record.Outbox, text []byte, now int64) {
	box.Append(progressKey, text, nil, now)
}

// ParseProgress reads what Encode wrote.
func ParseProgress(text []byte) (*Progress, error) {
	var p Progress
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("%w: progress record: %w", ErrFormat, err)
	}
	if p.Format != ProgressFormat {
		return nil, fmt.Errorf("%w: progress record of format %d, this program reads %d: it was written by a newer version", ErrFormat, p.Format, ProgressFormat)
	}
	return &p, nil
}

// LastProgress returns the newest progress record of a batch; nil if it has none.
func LastProgress(b record.Batch) (*Progress, error) {
	for i := len(b.Records) - 1; i >= 0; i-- {
		c, err := decode(&b.Records[i])
		if err != nil {
			return nil, fmt.Errorf("%s@%d: %w", b.From, b.Records[i].Offset, err)
		}
		if c.progress && c.value != nil {
			return ParseProgress(c.value)
		}
	}
	return nil, nil
}
