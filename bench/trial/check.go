package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"millrace/bench/clicks"
	"millrace/bench/workload"
)

// check compares what readers of committed records see with the oracle for the first n records of the stream. A difference makes the run
// void; an error is the benchmark's own.
func (t *trial) check(ctx context.Context, n uint64) error {
	w := t.workload()
	var difference error
	var err error
	if windows, ok := w.Job.Windows(); ok {
		difference, err = t.checkWindows(ctx, windows, n)
	} else {
		difference, err = t.checkSequence(ctx, n)
	}
	if difference != nil {
		t.void(difference)
	}
	return err
}

// wrongRow is a row that cannot be right, whatever the others are.
type wrongRow struct{ error }

func (t *trial) checkWindows(ctx context.Context, windows clicks.Windows, n uint64) (difference, err error) {
	w := t.workload()
	sums := w.Job == workload.Hopping
	want := t.oracle(fmt.Sprint(w.Stream, windows, n, sums), func() any { return w.Stream.Windowed(windows, n, sums) }).(clicks.Summary)
	table := clicks.NewTable(w.Stream.Users)
	err = t.Cluster.ReadAll(ctx, t.assigned.Out, func(r *kgo.Record) error {
		t.run.OutputRows++
		user, start, tally, err := parseRow(r.Value, sums)
		if err == nil && string(clicks.AppendUser(nil, user)) != string(r.Key) {
			err = fmt.Errorf("its key is %q", r.Key)
		}
		if err == nil {
			err = table.Set(start, user, tally)
		}
		if err != nil {
			return wrongRow{fmt.Errorf("result %s at %d/%d: %w", r.Value, r.Partition, r.Offset, err)}
		}
		return nil
	})
	var wrong wrongRow
	if errors.As(err, &wrong) {
		return wrong, nil
	}
	if got := table.Summary(); got != want {
		return fmt.Errorf("not exact: %+v, want %+v", got, want), err
	}
	return nil, err
}

func (t *trial) checkSequence(ctx context.Context, n uint64) (difference, err error) {
	w := t.workload()
	want := t.oracle(fmt.Sprint(w.Job, w.Stream, n), func() any {
		if w.Job == workload.Filter {
			return w.Stream.Filtered(n)
		}
		return w.Stream.Passed(n)
	}).(*clicks.Sequence)
	got := clicks.NewSequence(w.Stream.Partitions)
	err = t.Cluster.ReadAll(ctx, t.assigned.Out, func(r *kgo.Record) error {
		t.run.OutputRows++
		got.Add(r.Partition, r.Key, r.Value, r.Timestamp.UnixMilli())
		return nil
	})
	if got.Digest() != want.Digest() {
		difference = fmt.Errorf("not exact: %d rows, digest %x, want %d rows, digest %x", got.Records, got.Digest(), want.Records, want.Digest())
	}
	return difference, err
}

// oracle computes an expected result once for all runs that share it.
func (b *Bench) oracle(key string, compute func() any) any {
	if b.oracles == nil {
		b.oracles = map[string]any{}
	}
	want, known := b.oracles[key]
	if !known {
		want = compute()
		b.oracles[key] = want
	}
	return want
}

// parseRow reads a result row; its fields may stand in any order. It is no JSON parser because it reads millions of rows of a known form, and a form that it does not
// know is an error, never a wrong number.
func parseRow(json []byte, sums bool) (user uint64, start int64, tally clicks.Tally, err error) {
	name, errUser := field(json, `"user_id":"`, '"')
	from, errStart := field(json, `"window_start":`, 0)
	count, errCount := field(json, `"count":`, 0)
	if err = errors.Join(errUser, errStart, errCount); err != nil {
		return 0, 0, tally, err
	}
	user, errUser = clicks.ParseUser(name)
	start, errStart = strconv.ParseInt(string(from), 10, 64)
	counted, errCount := strconv.ParseUint(string(count), 10, 32)
	tally.Count = uint32(counted)
	var errCents error
	if sums {
		var text []byte
		if text, errCents = field(json, `"cents":`, 0); errCents == nil {
			var cents uint64
			cents, errCents = strconv.ParseUint(string(text), 10, 32)
			tally.Cents = uint32(cents)
		}
	}
	return user, start, tally, errors.Join(errUser, errStart, errCount, errCents)
}

// field returns what stands between a name and the end of its value: end, or with 0 whatever ends a number.
func field(json []byte, name string, end byte) ([]byte, error) {
	i := bytes.Index(json, []byte(name))
	if i < 0 {
		return nil, fmt.Errorf("no field %s", name)
	}
	rest := json[i+len(name):]
	n := bytes.IndexByte(rest, end)
	if end == 0 {
		n = bytes.IndexAny(rest, ",}")
	}
	if n < 0 {
		return nil, fmt.Errorf("the field %s has no end", name)
	}
	return rest[:n], nil
}
