// Package changelog writes a store's changes to its compacted topic and reads them back. Values are absolute, one record
// a row and epoch, so that reading any part twice changes nothing. It knows neither Kafka's client nor Badger.
package changelog

import (
	"encoding/binary"
	"errors"
	"fmt"

	"millrace/record"
)

// A changelog record's key begins with its kind: a row, or the task's progress. The row's key follows behind its segment.
// A value begins with the version of its format; an absent value is a tombstone: the row has ended.
const (
	kindProgress = 0
	kindRow      = 1

	valueVersion = 1
)

// AppendKey appends the key of a row's changelog record.
func AppendKey(b []byte, segment int64, key []byte) []byte {
	b = append(b, kindRow)
	b = binary.BigEndian.AppendUint64(b, uint64(segment)^1<<63)
	return append(b, key...)
}

// Encoder turns changes into records of one outbox. One task owns it.
type Encoder struct {
	key, value []byte
}

// Append adds one change; a nil value is a tombstone. now is the time of writing, ms: a changelog's timestamps are never
// event times, because brokers act on them.
func (e *Encoder) Append(box *record.Outbox, segment int64, key, value []byte, now int64) {
	e.key = AppendKey(e.key[:0], segment, key)
	if value == nil {
		box.Append(e.key, nil, nil, now)
		return
	}
	e.value = append(append(e.value[:0], valueVersion), value...)
	box.Append(e.key, e.value, nil, now)
}

// ErrFormat says that a changelog holds a record that this program cannot read. The task stops: skipping it would lose
// state.
var ErrFormat = errors.New("the changelog holds a record that this version cannot read")

// change is a decoded record of a changelog.
type change struct {
	progress bool
	segment  int64
	key      []byte
	value    []byte // nil: ended
}

func decode(r *record.Record) (change, error) {
	if len(r.Key) == 0 {
		return change{}, fmt.Errorf("%w: it has no key", ErrFormat)
	}
	switch r.Key[0] {
	case kindProgress:
		return change{progress: true, value: r.Value}, nil
	case kindRow:
		if len(r.Key) < 9 {
			return change{}, fmt.Errorf("%w: its key has %d bytes", ErrFormat, len(r.Key))
		}
		c := change{segment: int64(binary.BigEndian.Uint64(r.Key[1:]) ^ 1<<63), key: r.Key[9:]}
		if r.Value == nil {
			return c, nil
		}
		if len(r.Value) == 0 || r.Value[0] != valueVersion {
			return change{}, fmt.Errorf("%w: its value has not version %d", ErrFormat, valueVersion)
		}
		c.value = r.Value[1:]
		return c, nil
	}
	return change{}, fmt.Errorf("%w: its key has kind %d", ErrFormat, r.Key[0])
}
