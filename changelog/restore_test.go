package changelog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"millrace/record"

	"pgregory.net/rapid"
)

var from = record.TopicPartition{Topic: "app-s-changelog", Partition: 2}

// topic is a changelog's partition: offsets without a record are markers, aborted records or compacted ones.
type topic struct {
	records map[record.Offset]record.Record
	end     record.Offset
	most    int // offsets that one answer covers
	empty   int // so many answers are empty before each full one
	reads   []record.Offset
	fail    error
	failAt  record.Offset
	waiting int
}

func (l *topic) Read(_ context.Context, at record.Offset) (record.Batch, error) {
	l.reads = append(l.reads, at)
	b := record.Batch{From: from, Next: at, End: l.end}
	if l.fail != nil && at >= l.failAt {
		return b, l.fail
	}
	if l.waiting < l.empty { // nothing decided lies there yet
		l.waiting++
		return b, nil
	}
	l.waiting = 0
	for ; b.Next < min(at+record.Offset(l.most), l.end); b.Next++ {
		if r, ok := l.records[b.Next]; ok {
			b.Records = append(b.Records, r)
		}
	}
	return b, nil
}

func (l *topic) append(r record.Record) {
	r.Offset = l.end
	l.records[l.end] = r
	l.end++
}

func (l *topic) row(segment int64, key, value string) {
	var box record.Outbox
	var e Encoder
	if value == "" {
		e.Append(&box, segment, []byte(key), nil, 0)
	} else {
		e.Append(&box, segment, []byte(key), []byte(value), 0)
	}
	l.append(through(&box)[0])
}

func (l *topic) progress(t fataler, epoch int64) {
	text, err := (&Progress{Epoch: epoch}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	var box record.Outbox
	AppendProgress(&box, text, 0)
	l.append(through(&box)[0])
}

type fataler interface{ Fatal(...any) }

func (l *topic) marker() { l.end++ }

func newTopic() *topic { return &topic{records: map[record.Offset]record.Record{}, most: 100} }

// rows is a Store that notes how far it was told to be.
type rows struct {
	held    map[string]string
	reached []record.Offset
	fail    error
}

func (r *rows) Apply(segment int64, key, value []byte) {
	name := fmt.Sprint(segment, "/", string(key))
	if value == nil {
		delete(r.held, name)
		return
	}
	r.held[name] = string(value)
}

func (r *rows) Reached(next record.Offset) error {
	r.reached = append(r.reached, next)
	return r.fail
}

func TestRestoreCountsPositionsNotRecords(t *testing.T) {
	l := newTopic()
	l.row(1, "a", "1")
	l.progress(t, 3)
	l.marker()
	l.row(1, "b", "2")
	l.row(1, "a", "")
	l.progress(t, 4)
	l.marker() // the end: no record has offset end-1
	l.most, l.empty = 2, 1
	r := &rows{held: map[string]string{}}
	got, err := Restore(t.Context(), l, r, 0, l.end)
	if err != nil {
		t.Fatal(err)
	}
	if got.Position != 7 || got.Records != 3 || got.Progress == nil || got.Progress.Epoch != 4 {
		t.Errorf("restored %+v %+v", got, got.Progress)
	}
	if !maps.Equal(r.held, map[string]string{"1/b": "2"}) {
		t.Errorf("rows %v", r.held)
	}
	if fmt.Sprint(r.reached) != "[2 4 6 7]" {
		t.Errorf("reached %v: an answer without progress is no news", r.reached)
	}
}

func TestRestoreOfAnythingThatEndsInGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newTopic()
		l.most, l.empty = rapid.IntRange(1, 7).Draw(t, "most"), rapid.IntRange(0, 2).Draw(t, "empty")
		want, epoch := map[string]string{}, int64(0)
		for range rapid.IntRange(0, 40).Draw(t, "entries") {
			switch rapid.IntRange(0, 4).Draw(t, "entry") {
			case 0:
				l.marker()
			case 1:
				epoch++
				l.progress(t, epoch)
			default:
				key, value := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"), rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "value")
				l.row(0, key, value)
				if delete(want, "0/"+key); value != "" {
					want["0/"+key] = value
				}
			}
		}
		// It may break off anywhere; whoever has kept what it reached goes on from there.
		r, position := &rows{held: map[string]string{}}, record.Offset(0)
		var seen *Progress
		if l.end > 0 && rapid.Bool().Draw(t, "break") {
			l.fail, l.failAt = errors.New("connection refused"), rapid.Int64Range(0, l.end-1).Draw(t, "at")
			first, err := Restore(context.Background(), l, r, 0, l.end)
			if !errors.Is(err, l.fail) && first.Position != l.end { // the last answer may begin before the failure
				t.Fatalf("error %v at %d", err, first.Position)
			}
			if n := len(r.reached); n > 0 && r.reached[n-1] != first.Position || n == 0 && first.Position != 0 {
				t.Fatalf("position %d, reached %v", first.Position, r.reached)
			}
			position, l.fail = first.Position, nil
			seen = first.Progress
		}
		got, err := Restore(context.Background(), l, r, position, l.end)
		if err != nil || got.Position != l.end {
			t.Fatalf("%+v, %v, want %d", got, err, l.end)
		}
		if !maps.Equal(r.held, want) {
			t.Fatalf("rows %v, want %v", r.held, want)
		}
		if got.Progress == nil {
			got.Progress = seen
		}
		if position == 0 && (got.Progress == nil) != (epoch == 0) || got.Progress != nil && got.Progress.Epoch != epoch {
			t.Fatalf("progress %+v of epoch %d", got.Progress, epoch)
		}
	})
}

func TestRestoreIsDoneWhereNothingIsMissing(t *testing.T) {
	l := newTopic()
	for _, at := range []record.Offset{0, 5} {
		got, err := Restore(t.Context(), l, &rows{}, at, 0)
		if err != nil || got.Position != at || got.Progress != nil || len(l.reads) > 0 {
			t.Errorf("from %d: %+v, %v, read at %v", at, got, err, l.reads)
		}
	}
}

func TestRestoreNamesTheRecordThatItCannotRead(t *testing.T) {
	l := newTopic()
	l.row(1, "a", "1")
	l.append(record.Record{Key: []byte{9}, Value: []byte("x")})
	r := &rows{held: map[string]string{}}
	_, err := Restore(t.Context(), l, r, 0, l.end)
	if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "app-s-changelog-2@1") {
		t.Errorf("error %v", err)
	}
	if len(r.reached) != 0 {
		t.Errorf("reached %v although a record in between is lost", r.reached)
	}
}

func TestRestoreFailsWithAProgressRecordOfTheFuture(t *testing.T) {
	l := newTopic()
	var box record.Outbox
	AppendProgress(&box, []byte(`{"format":99}`), 0)
	l.append(through(&box)[0])
	if _, err := Restore(t.Context(), l, &rows{}, 0, l.end); !errors.Is(err, ErrFormat) {
		t.Errorf("error %v", err)
	}
	l.progress(t, 1) // only the newest one counts
	if got, err := Restore(t.Context(), l, &rows{}, 0, l.end); err != nil || got.Progress.Epoch != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRestoreEndsWhenItIsToldTo(t *testing.T) {
	l := newTopic()
	l.end, l.empty = 10, 1<<30 // a transaction that is never decided
	cause := errors.New("the partition is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := Restore(ctx, l, &rows{}, 0, l.end); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
}

func TestRestoreFailsWithItsStore(t *testing.T) {
	l := newTopic()
	l.row(1, "a", "1")
	full := errors.New("no space left on device")
	if _, err := Restore(t.Context(), l, &rows{held: map[string]string{}, fail: full}, 0, l.end); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}
