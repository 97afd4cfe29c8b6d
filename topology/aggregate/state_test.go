package aggregate_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand"
	"testing"

	"pgregory.net/rapid"

	"millrace/record"
	"millrace/topology/aggregate"
)

// The layout is what lies on disk and in changelogs: a change here makes state of older versions unreadable.
func TestStateBytes(t *testing.T) {
	f := newFixture(t, typ(record.Long), "count()", "sum(x)", "max(x)", "avg(x)", "last(x)", "collect_set(x, 3)", "approx_distinct(x)")
	f.add(long(3), null, long(-2))
	want := "0300000000000000" + // count
		"010100000000000000" + // sum 1
		"010300000000000000" + // max 3
		"0200000000000000" + "0000000000000000" + "0100000000000000" + // avg: 2 values, sum 1
		"01" + "0000000000000000" + "0200000000000000" + "00000000" + // last: time 0, offset 2, partition 0
		"02000000" + // two values in the set
		"00" + // sparse
		"09000000" + "03feffffffffffffff" + // last's value: long -2
		"12000000" + "03feffffffffffffff" + "030300000000000000" +
		"10000000" + "821b05e61eab2152" + "0d2801f2142583a9" // the hashes, in order of size
	if got := hex.EncodeToString(f.state); got != want {
		t.Errorf("state is\n%s, want\n%s", got, want)
	}
}

// everything is a set of all functions that can be merged, with small limits so that they are reached.
func everything(t testing.TB, kind record.Kind) *fixture {
	calls := []string{"count()", "count(x)", "min(x)", "max(x)", "first(x)", "last(x)", "collect_set(x, 4)", "approx_distinct(x, 6)"}
	switch kind {
	case record.Long, record.Decimal, record.Duration:
		calls = append(calls, "sum(x)", "avg(x)")
	}
	return newFixture(t, typ(kind), calls...)
}

func drawValue(t *rapid.T, kind record.Kind) record.Value {
	switch rapid.IntRange(0, 9).Draw(t, "null") {
	case 0:
		return null
	case 1:
		return missing
	}
	n := rapid.Int64Range(-30, 30).Draw(t, "n")
	switch kind {
	case record.Double:
		return double(float64(n) / 4)
	case record.Decimal:
		v := record.DecimalValue(n, int32(rapid.IntRange(0, 3).Draw(t, "scale")))
		if rapid.IntRange(0, 4).Draw(t, "big") == 0 {
			big, err := record.MultiplyDecimal(v, dec("10000000000000000000.0"))
			if err != nil {
				t.Fatal(err)
			}
			return big
		}
		return v
	case record.String:
		return text(rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 0, 4, -1).Draw(t, "s"))
	}
	return record.Value{Kind: kind, Num: n}
}

type input struct {
	value record.Value
	row   record.Row
}

func drawInputs(t *rapid.T, kind record.Kind) []input {
	inputs := make([]input, rapid.IntRange(0, 40).Draw(t, "records"))
	for i := range inputs {
		inputs[i].value = drawValue(t, kind)
		inputs[i].row.Time = rapid.Int64Range(-3, 3).Draw(t, "time")
		inputs[i].row.From.Offset = int64(i)
		inputs[i].row.From.Partition = int32(rapid.IntRange(0, 2).Draw(t, "partition"))
	}
	return inputs
}

func fill(t *rapid.T, f *fixture, inputs []input) []byte {
	state := f.set.Init(nil)
	args := make([]record.Value, len(f.items))
	for i := range inputs {
		for j, it := range f.items {
			args[j] = record.Value{}
			if len(it.Call.Args) > 0 {
				args[j] = inputs[i].value
			}
		}
		var err error
		if state, err = f.worker.Add(state, args, &inputs[i].row); err != nil {
			t.Fatal(err)
		}
	}
	return state
}

var mergedKinds = []record.Kind{record.Long, record.Double, record.Decimal, record.String, record.Time, record.Duration, record.Bool}

// The state is a function of the set of records: any order and any split into parts gives the same bytes.
func TestOrderAndPartsDoNotMatter(t *testing.T) {
	for _, kind := range mergedKinds {
		t.Run(kind.String(), func(tt *testing.T) {
			f := everything(tt, kind)
			if !f.set.Mergeable() {
				tt.Fatal("the set says that it cannot be merged")
			}
			rapid.Check(tt, func(t *rapid.T) {
				inputs := drawInputs(t, kind)
				want := fill(t, f, inputs)
				if got := fill(t, f, rapid.Permutation(inputs).Draw(t, "order")); !bytes.Equal(got, want) {
					t.Fatalf("another order gives\n%x, want\n%x", got, want)
				}
				cut := rapid.IntRange(0, len(inputs)).Draw(t, "cut")
				a, b := fill(t, f, inputs[:cut]), fill(t, f, inputs[cut:])
				keep := bytes.Clone(b)
				ab, err := f.worker.Merge(bytes.Clone(a), b)
				if err != nil || !bytes.Equal(ab, want) {
					t.Fatalf("a+b: %v\n%x, want\n%x", err, ab, want)
				}
				if !bytes.Equal(b, keep) {
					t.Fatal("merge changed the other state")
				}
				if ba, err := f.worker.Merge(b, a); err != nil || !bytes.Equal(ba, want) {
					t.Fatalf("b+a: %v\n%x, want\n%x", err, ba, want)
				}
			})
		})
	}
}

func TestSumOfDoublesInParts(t *testing.T) {
	f := newFixture(t, typ(record.Double), "sum(x)", "avg(x)")
	rapid.Check(t, func(t *rapid.T) {
		inputs := make([]input, rapid.IntRange(0, 50).Draw(t, "records"))
		for i := range inputs {
			inputs[i].value = double(rapid.Float64Range(-1e9, 1e9).Draw(t, "x"))
		}
		want := results(t, f, fill(t, f, inputs))
		if got := results(t, f, fill(t, f, rapid.Permutation(inputs).Draw(t, "order"))); got != want {
			t.Fatalf("another order gives %s, want %s", got, want)
		}
		cut := rapid.IntRange(0, len(inputs)).Draw(t, "cut")
		merged, err := f.worker.Merge(fill(t, f, inputs[:cut]), fill(t, f, inputs[cut:]))
		if err != nil {
			t.Fatal(err)
		}
		if got := results(t, f, merged); got != want {
			t.Fatalf("parts give %s, want %s", got, want)
		}
	})
}

func results(t *rapid.T, f *fixture, state []byte) string {
	out := make([]record.Value, len(f.items))
	if err := f.worker.Result(state, out); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(show(out[0]), " ", show(out[1]))
}

func TestListsMergeInTheOrderGiven(t *testing.T) {
	a := newFixture(t, typ(record.Long), "collect_list(x, 3)")
	a.add(long(1), long(2))
	b := newFixture(t, typ(record.Long), "collect_list(x, 3)")
	b.add(long(3), long(4))
	if a.set.Mergeable() {
		t.Error("a list says that order does not matter")
	}
	merged, err := a.worker.Merge(a.state, b.state)
	if err != nil {
		t.Fatal(err)
	}
	a.state = merged
	a.wants("[1,2,3]")
}

func TestApproxDistinct(t *testing.T) {
	f := newFixture(t, typ(record.Long), "approx_distinct(x)")
	for i := range int64(512) {
		f.add(long(i), long(i/2))
	}
	f.wants("512") // exact as long as the hashes take no more room than the registers
	for i := range int64(50_000) {
		f.add(long(i))
	}
	n := f.result()[0].Num
	if n < 47_500 || n > 52_500 { // three standard errors
		t.Errorf("%d distinct values, want 50000 within 5%%", n)
	}
	f.add(long(1))
	if again := f.result()[0].Num; again != n {
		t.Errorf("a value that was there changed %d to %d", n, again)
	}
}

func TestCorruptStateIsAnError(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	refused := 0
	for round := range 10_000 {
		kind := mergedKinds[round%len(mergedKinds)]
		f := everything(t, kind)
		f.items = append(f.items,
			aggregate.Item{Name: "list", Call: mustParse(t, "collect_list(x, 5)"), Arg: typ(kind)},
			aggregate.Item{Name: "fold", Call: mustParse(t, "fold(x, acc)"), Arg: typ(kind), Init: null,
				Eval: func(r *record.Row) (record.Value, error) { return r.Fields[0], nil }})
		f.build()
		v := record.Value{Kind: kind, Num: int64(round & 1)}
		switch {
		case kind == record.String:
			v = text("some text")
		case kind == record.Decimal && round%2 == 0:
			v = dec("123456789012345678901234567890.5")
		}
		for range random.Intn(12) {
			f.add(v)
			v.Num++
			if kind == record.Bool {
				v.Num &= 1
			}
		}
		good := bytes.Clone(f.state)
		bad := damage(random, f.state)
		out := make([]record.Value, len(f.items))
		f.state = bytes.Clone(bad)
		errs := []error{f.worker.Result(bytes.Clone(bad), out), f.addAt(0, v)}
		_, err := f.worker.Merge(bytes.Clone(bad), good)
		errs = append(errs, err)
		_, err = f.worker.Merge(good, bad)
		for _, err := range append(errs, err) {
			if errors.Is(err, aggregate.ErrCorrupt) {
				refused++
				break
			}
		}
	}
	// Damage inside a number or a text cannot be seen here; that is what the store's checksums are for.
	if refused < 2_000 {
		t.Errorf("only %d of 10000 damaged states were refused", refused)
	}
}

// The division of an average panics unless the sum was checked against the count before.
func TestCorruptAverage(t *testing.T) {
	f := newFixture(t, typ(record.Long), "avg(x)")
	for _, state := range [][3]int64{{1, 1, 0}, {-1, 0, 5}, {1, 2, 0}, {3, 3, 0}} {
		f.state = f.state[:0]
		for _, n := range state {
			f.state = binary.LittleEndian.AppendUint64(f.state, uint64(n))
		}
		if err := f.worker.Result(f.state, make([]record.Value, 1)); !errors.Is(err, aggregate.ErrCorrupt) {
			t.Errorf("count %d, sum %d*2^64+%d: %v", state[0], state[1], state[2], err)
		}
	}
}

func damage(random *rand.Rand, state []byte) []byte {
	bad := bytes.Clone(state)
	switch random.Intn(4) {
	case 0:
		return bad[:random.Intn(len(bad))]
	case 1:
		return append(bad, byte(random.Intn(256)))
	case 2:
		random.Read(bad)
		return bad
	}
	for range 1 + random.Intn(4) {
		bad[random.Intn(len(bad))] ^= byte(1 << random.Intn(8))
	}
	return bad
}

func TestNumbersAllocateNothing(t *testing.T) {
	for _, v := range []record.Value{long(5), double(1.25), record.DecimalValue(1234, 2)} {
		f := newFixture(t, typ(v.Kind), "count()", "count(x)", "sum(x)", "min(x)", "max(x)", "avg(x)", "last(x)", "approx_distinct(x)")
		f.add(v)
		args := []record.Value{{}, v, v, v, v, v, v, v}
		row := &record.Row{}
		size := len(f.state)
		if n := testing.AllocsPerRun(1000, func() {
			row.From.Offset++
			state, err := f.worker.Add(f.state, args, row)
			if err != nil {
				t.Fatal(err)
			}
			f.state = state
		}); n != 0 {
			t.Errorf("%s: %v allocations a record, want none", v.Kind, n)
		}
		if len(f.state) != size {
			t.Errorf("%s: the state grew from %d to %d bytes", v.Kind, size, len(f.state))
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	f := newFixture(b, typ(record.Double), "count()", "sum(x)")
	args := []record.Value{{}, double(0.25)}
	row := &record.Row{}
	b.ReportAllocs()
	for b.Loop() {
		state, err := f.worker.Add(f.state, args, row)
		if err != nil {
			b.Fatal(err)
		}
		f.state = state
	}
}
