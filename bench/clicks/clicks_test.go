package clicks

import (
	"encoding/json"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

func TestPartitionIsThatOfTheJavaClients(t *testing.T) {
	theirs := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "key")
		n := rapid.IntRange(1, 64).Draw(t, "partitions")
		if got, want := int(Partition(key, n)), theirs.Partition(&kgo.Record{Key: key}, n); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

func TestEveryVariantIsJSONWithTheSameFields(t *testing.T) {
	for _, v := range []Variant{Fixed, Shuffled, Nested} {
		s := Stream{Seed: 7, Users: 1000, Partitions: 4, Rate: 1000, Variant: v}
		for i := range uint64(1000) {
			c := s.At(i)
			var got struct {
				User  string `json:"user_id"`
				Type  string `json:"type"`
				Page  string `json:"page"`
				TS    int64  `json:"ts"`
				Land  string `json:"country"`
				Cents uint64 `json:"cents"`
			}
			if err := json.Unmarshal(s.AppendValue(nil, c), &got); err != nil {
				t.Fatalf("%s: %v", v, err)
			}
			user, err := ParseUser([]byte(got.User))
			if err != nil || user != c.User || got.Type != c.kind() || got.Page != c.page() || got.TS != c.Time || got.Land != c.country() || got.Cents != c.Cents {
				t.Fatalf("%s: %+v is not %+v (%v)", v, got, c, err)
			}
		}
	}
}

// The plain reading of the contract: a map, and every window that could hold the record.
func plainWindows(s Stream, w Windows, n uint64) (windows, counts, cents, late uint64) {
	type id struct {
		user  uint64
		start int64
	}
	rows := map[id]Tally{}
	newest := map[int32]int64{}
	for i := range n {
		c := s.At(i)
		p := Partition(AppendUser(nil, c.User), s.Partitions)
		newest[p] = max(newest[p], c.Time)
		for start := c.Time/w.Advance*w.Advance - w.Size; start <= c.Time; start += w.Advance {
			if c.Time < start || c.Time >= start+w.Size {
				continue
			}
			if start+w.Size+w.Grace <= newest[p] {
				late++
				continue
			}
			r := rows[id{c.User, start}]
			rows[id{c.User, start}] = Tally{r.Count + 1, r.Cents + uint32(c.Cents)}
			counts++
			cents += c.Cents
		}
	}
	return uint64(len(rows)), counts, cents, late
}

func TestWindowedAgreesWithThePlainReading(t *testing.T) {
	for _, w := range []Windows{{60_000, 60_000, 30_000}, {60_000, 10_000, 30_000}, {60_000, 10_000, 0}} {
		s := Stream{Seed: 3, Users: 50, Partitions: 3, Rate: 100, Variant: Fixed}
		const n = 40_000
		windows, counts, cents, late := plainWindows(s, w, n)
		got := s.Windowed(w, n, true)
		if got.Windows != windows || got.Counts != counts || got.Cents != cents {
			t.Errorf("%+v: got %+v, want %d windows, %d counts, %d cents", w, got, windows, counts, cents)
		}
		if late == 0 {
			t.Errorf("%+v: no record was late, so lateness is not tested", w)
		}
	}
}

func TestDigestSeesEveryDifference(t *testing.T) {
	base := func(change func(*Table)) Summary {
		table := NewTable(4)
		for u := range uint64(4) {
			if err := table.Set(Begin, u, Tally{5, 50}); err != nil {
				t.Fatal(err)
			}
		}
		change(table)
		return table.Summary()
	}
	want := base(func(*Table) {})
	for name, change := range map[string]func(*Table){
		"one more":         func(t *Table) { t.row(Begin, 1).Count++ },
		"one cent moved":   func(t *Table) { t.row(Begin, 1).Cents--; t.row(Begin, 2).Cents++ },
		"one count moved":  func(t *Table) { t.row(Begin, 1).Count--; t.row(Begin, 2).Count++ },
		"another window":   func(t *Table) { *t.row(Begin+60_000, 1) = Tally{5, 50}; *t.row(Begin, 1) = Tally{} },
		"a window missing": func(t *Table) { *t.row(Begin, 3) = Tally{} },
	} {
		if got := base(change); got.Digest == want.Digest || got.Check == want.Check {
			t.Errorf("%s was not seen", name)
		}
	}
	if again := base(func(*Table) {}); again != want {
		t.Errorf("the digest depends on the order: %+v, %+v", again, want)
	}
}

func TestTableRefusesNonsense(t *testing.T) {
	table := NewTable(2)
	if err := table.Set(Begin, 0, Tally{Count: 2}); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"went back":       table.Set(Begin, 0, Tally{Count: 1}),
		"unknown user":    table.Set(Begin, 2, Tally{Count: 1}),
		"unknown window":  table.Set(Begin+7, 0, Tally{Count: 1}),
		"before its time": table.Set(Begin-60_001, 0, Tally{Count: 1}),
	} {
		if err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestSequenceSeesEveryDifference(t *testing.T) {
	type rec struct {
		p        int32
		key, val string
		at       int64
	}
	digest := func(records ...rec) uint64 {
		s := NewSequence(2)
		for _, r := range records {
			s.Add(r.p, []byte(r.key), []byte(r.val), r.at)
		}
		return s.Digest()
	}
	a, b, c := rec{0, "a", "1", 1}, rec{0, "b", "2", 2}, rec{1, "c", "3", 3}
	want := digest(a, b, c)
	if digest(c, a, b) != want {
		t.Error("the order between partitions matters")
	}
	for name, got := range map[string]uint64{
		"lost": digest(a, c), "doubled": digest(a, b, b, c), "overtaken": digest(b, a, c), "moved": digest(a, b, rec{0, "c", "3", 3}),
		"value": digest(a, b, rec{1, "c", "4", 3}), "key": digest(a, b, rec{1, "d", "3", 3}), "time": digest(a, b, rec{1, "c", "3", 4}),
	} {
		if got == want {
			t.Errorf("%s was not seen", name)
		}
	}
}
