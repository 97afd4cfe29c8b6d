package aggregate_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"millrace/record"
	"millrace/topology/aggregate"
)

func TestFold(t *testing.T) {
	f := &fixture{TB: t}
	f.items = []aggregate.Item{{
		Name: "path", Call: mustParse(t, `fold("", acc + value.x)`), Arg: record.Type{Kind: record.String},
		Init: text(""),
		Eval: func(r *record.Row) (record.Value, error) {
			if r.Fields[0].IsNull() {
				return record.Value{}, errors.New("x is null")
			}
			if string(r.Fields[0].Raw) == "drop" { // a value that aliases the accumulator
				return record.StringValue(r.Acc.Raw[1:]), nil
			}
			return record.StringValue(append(bytes.Clone(r.Acc.Raw), r.Fields[0].Raw...)), nil
		},
	}, {Name: "n", Call: mustParse(t, "count()")}}
	f.build()
	f.wants("", "0")
	f.add(text("a"), text("bc"), text("drop"), text("d"))
	f.wants("bcd", "4")
	if err := f.addAt(0, null); err == nil {
		t.Error("the expression's error was swallowed")
	}
	f.wants("bcd", "4")
	if f.addAt(0, text(strings.Repeat("x", 1<<20))) == nil {
		t.Error("a fold grew beyond a megabyte")
	}
	if _, err := f.worker.Merge(bytes.Clone(f.state), f.state); !errors.Is(err, aggregate.ErrNotMergeable) {
		t.Errorf("two folds were merged: %v", err)
	}
	for _, pair := range [][2][]byte{{f.set.Init(nil), f.state}, {bytes.Clone(f.state), f.set.Init(nil)}} {
		merged, err := f.worker.Merge(pair[0], pair[1])
		if err != nil || !bytes.Equal(merged, f.state) {
			t.Errorf("merging with no records: %v, %q", err, merged)
		}
	}
}
