package changelog

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"millrace/record"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// through sends a change through an outbox, as the wire would.
func through(box *record.Outbox) []record.Record {
	var all []record.Record
	for c := box.Walk(); ; {
		r, ok := c.Next()
		if !ok {
			return all
		}
		all = append(all, r)
	}
}

func TestChangesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e Encoder
		var box record.Outbox
		type row struct {
			segment    int64
			key, value []byte
		}
		var rows []row
		for range rapid.IntRange(1, 10).Draw(t, "rows") {
			r := row{rapid.Int64().Draw(t, "segment"), rapid.SliceOf(rapid.Byte()).Draw(t, "key"), rapid.SliceOf(rapid.Byte()).Draw(t, "value")}
			if rapid.Bool().Draw(t, "ended") {
				r.value = nil
			}
			rows = append(rows, r)
			e.Append(&box, r.segment, r.key, r.value, 77)
		}
		got := through(&box)
		if len(got) != len(rows) {
			t.Fatalf("%d records of %d rows", len(got), len(rows))
		}
		for i, want := range rows {
			c, err := decode(&got[i])
			if err != nil {
				t.Fatal(err)
			}
			if c.progress || c.segment != want.segment || !bytes.Equal(c.key, want.key) || !bytes.Equal(c.value, want.value) || (c.value == nil) != (want.value == nil) {
				t.Fatalf("%+v came back as %+v", want, c)
			}
			if (got[i].Value == nil) != (want.value == nil) {
				t.Fatalf("ended %v, tombstone %v: only a tombstone lets the broker forget the row", want.value == nil, got[i].Value == nil)
			}
			if got[i].Timestamp != 77 {
				t.Fatalf("timestamp %d is not the time of writing", got[i].Timestamp)
			}
		}
	})
}

// Compaction keeps the last record of each key: keys of different rows must differ, and the progress record's from all of them.
func TestRowsHaveKeysOfTheirOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Range(-3, 3).Draw(t, "a"), rapid.Int64Range(-3, 3).Draw(t, "b")
		k, l := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1}), 0, 4).Draw(t, "k"), rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1}), 0, 4).Draw(t, "l")
		x, y := AppendKey(nil, a, k), AppendKey(nil, b, l)
		if same := a == b && bytes.Equal(k, l); bytes.Equal(x, y) != same {
			t.Fatalf("%d/%x and %d/%x have keys %x and %x", a, k, b, l, x, y)
		}
		if bytes.Equal(x, progressKey) {
			t.Fatalf("%d/%x has the progress record's key", a, k)
		}
	})
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	good := AppendKey(nil, 5, []byte("k"))
	cases := map[string]record.Record{
		"no key":                       {Value: []byte{1}},
		"an empty key":                 {Key: []byte{}, Value: []byte{1}},
		"an unknown kind":              {Key: []byte{2, 0, 0, 0, 0, 0, 0, 0, 0}, Value: []byte{1}},
		"a key cut short":              {Key: good[:8], Value: []byte{1}},
		"a value of the future":        {Key: good, Value: []byte{2, 'x'}},
		"a value without a version":    {Key: good, Value: []byte{}},
		"a tombstone with a short key": {Key: []byte{1}},
	}
	for name, r := range cases {
		if c, err := decode(&r); !errors.Is(err, ErrFormat) {
			t.Errorf("%s was read as %+v, %v", name, c, err)
		}
	}
	if c, err := decode(&record.Record{Key: good[:9]}); err != nil || len(c.key) != 0 {
		t.Errorf("a row with an empty key: %+v, %v", c, err)
	}
}

// Whatever the bytes, decoding ends with an answer.
func TestDecodeSurvivesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := record.Record{Key: rapid.SliceOf(rapid.Byte()).Draw(t, "key"), Value: rapid.SliceOf(rapid.Byte()).Draw(t, "value")}
		if _, err := decode(&r); err != nil && !errors.Is(err, ErrFormat) {
			t.Fatalf("error %v", err)
		}
	})
}

func TestProgressComesBack(t *testing.T) {
	p := &Progress{Task: "0_3", StoreID: "ab", Fingerprints: map[string]string{"counts": "x1"}, Epoch: 12, TransactionalID: "app-1",
		Inputs: []InputOffset{{"in", 3, 1 << 60}}, Clock: []byte{1, 0, 255}}
	text, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var box record.Outbox
	AppendProgress(&box, text, 5)
	c, err := decode(&through(&box)[0])
	if err != nil || !c.progress {
		t.Fatalf("%+v, %v", c, err)
	}
	got, err := ParseProgress(c.value)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p, got); diff != "" {
		t.Error(diff)
	}
	if got.Format != ProgressFormat {
		t.Errorf("format %d", got.Format)
	}
}

func TestProgressThatIsNoneIsRefused(t *testing.T) {
	for text, want := range map[string]string{"{": "progress record", `{"format":2}`: "newer version", `{"format":"x"}`: "progress record", `{}`: "format 0", "": "progress record"} {
		if p, err := ParseProgress([]byte(text)); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s was read as %+v, %v", text, p, err)
		}
	}
	// Fields that this version does not know are a later version's business.
	if _, err := ParseProgress([]byte(`{"format":1,"later":true}`)); err != nil {
		t.Error(err)
	}
}
