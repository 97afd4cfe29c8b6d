package codec

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"

	"millrace/record"
)

// outcome is everything that a decoding gives.
func outcome(d *JSONDecoder, doc []byte) string {
	into := make([]record.Value, len(d.fields))
	if err := d.Decode(doc, into); err != nil {
		return fmt.Sprintf("%T %v", err, err)
	}
	all := make([]string, len(into))
	for i, v := range into {
		all[i] = show(v)
	}
	return strings.Join(all, ", ")
}

var layoutFields = []Field{
	field("s", record.String), field("n", record.Long), field("d", record.Double), field("m", record.Decimal), field("b", record.Bool),
	timeField("t", record.EpochMillis), timeField("r", record.RFC3339), anyField("any"), anyField("o.in"), field("o.deep.s", record.String),
	field("whole", record.Map), field("list", record.List),
}

// values are what a member of a generated document may be, by its key: right ones, ones of another kind, and damage.
var values = map[string][]string{
	"s":     {`"a"`, `"abcdefgh"`, `"ad-000017 and more"`, `""`, `"a\"b"`, `"\u00e9"`, `"é"`, `null`, `7`, "\"\xff\"", `"\x"`, "\"\x01\""},
	"n":     {`1`, `12345678`, `1234567890123`, `-5`, `0`, `999999999999999999`, `9223372036854775807`, `9223372036854775808`, `5.0`, `5.5`, `1e3`, `01`, `1x`, `12345678901234567890123`},
	"d":     {`0.25`, `1`, `-0`, `123456789.123456`, `0.123456789012345`, `34206141384253.5958`, `7418706086.6652760`, `14408480350015.891`, `00.5`, `0`, `1.5e2`, `999999999999999999`, `12.`, `1e400`, `1.`, `12345678.5`},
	"m":     {`1.50`, `12.30`, `0.00`, `123456789012345678`, `1234567890123.45`, `12345678901234567.8`, `1.5e1`, `-2.50`, `"1.50"`, `"x"`, `12345678`},
	"b":     {`true`, `false`, `tru`, `1`},
	"t":     {`1700000000123`, `"x"`, `1.5`, `12`},
	"r":     {`"2023-11-14T22:13:20Z"`, `"2023-11-14"`, `5`},
	"any":   {`1`, `"x"`, `[1]`, `{"a":1}`, `1.0`, `null`},
	"o":     {`{"in":1,"deep":{"s":"x"}}`, `{"in":12,"deep":{"s":"longer than that"}}`, `{"in":1,"deep":5}`, `{"in":{"x":1},"deep":{"s":"x"}}`, `null`, `{"in":1,"in":"y","deep":{"s":"x"}}`},
	"whole": {`{"a":[1,2]}`, `{}`, `{"a":}`, `5`},
	"list":  {`[1,2]`, `[]`, `[{"s":"no"}]`, `[1,]`},
	"other": {`"x"`, `5`, `[[],{}]`, `{"s":"not it"}`, `nul`, `{"x":[}`},
}

// A decoder that predicts and one that has never seen a record accept the same and return the same, for records of one
// template, of changing ones, and damaged ones.
func TestPredictionChangesNothing(t *testing.T) {
	random := rand.New(rand.NewSource(7))
	hits, misses := 0, 0
	names := slices.Sorted(maps.Keys(values))
	for range 400 {
		var keys []string
		for _, i := range random.Perm(len(values)) {
			keys = append(keys, names[i])
		}
		keys = keys[:1+random.Intn(len(keys))]
		if random.Intn(8) == 0 {
			keys = append(keys, keys[0])
		}
		space := []string{"", "", " ", "\n\t"}[random.Intn(4)]
		wild := []int{1, 20, 200}[random.Intn(3)] // one value in so many is not its key's first
		d := NewJSONDecoder(layoutFields)
		for range 60 {
			var members []string
			for _, key := range keys {
				value := values[key][0]
				switch random.Intn(2 * wild) {
				case 0:
					value = values[key][random.Intn(len(values[key]))]
				case 1:
					value = values[key][random.Intn(2)]
				}
				if value[0] == '1' && random.Intn(2) == 0 {
					value = strconv.Itoa(random.Intn(1 << 30))
				}
				members = append(members, `"`+key+`":`+space+value)
			}
			doc := []byte(space + "{" + strings.Join(members, ","+space) + "}" + space)
			if random.Intn(10) == 0 {
				doc = mutate(random, doc)
			}
			before := d.layout.hits
			if got, want := outcome(d, doc), outcome(NewJSONDecoder(layoutFields), doc); got != want {
				t.Fatalf("%s\npredicted: %s\nanew:      %s", doc, got, want)
			}
			if d.layout.hits > before {
				hits++
			} else {
				misses++
			}
		}
	}
	if hits < 4000 || misses < 4000 {
		t.Errorf("%d documents had the predicted layout, %d had not: this tests one side only", hits, misses)
	}
}

// Records that look alike to a layout, and whose values must not be taken for each other's.
func TestPredictionOfCloseRelatives(t *testing.T) {
	a, both := []Field{field("a.b", record.Long), field("a.c", record.Long)}, []Field{field("a.b", record.Long), field("a", record.Map)}
	for _, c := range []struct {
		fields []Field
		docs   []string
	}{
		{a, []string{`{"a":{"b":1},"a":{"c":2}}`, `{"a":{"b":3},"a":{"c":4}}`}},
		{a, []string{`{"a":{"b":1},"a":5}`, `{"a":{"b":3},"a":6}`}},
		{a, []string{`{"a":5,"x":1}`, `{"a":{"b":1},"x":1}`}},
		{a, []string{`{"a":{"b":1},"a":{"b":2}}`, `{"a":{"b":3},"a":{"b":"x"}}`, `{"a":{"b":"x"},"a":{"b":3}}`}},
		{both, []string{`{"a":{"b":1}}`, `{"a":{"b":2}}`, `{"a":{"b":3,"c":1}}`}},
		{both[1:], []string{`{"a":{"b":1}}`, `{"a":{"b":[2]}}`, `{"a":7}`, `{"a":{"b":{}}}`, `{"a":{"b":}}`}},
		{both, []string{`{"a":1}`, `{"a":{"b":2}}`}},
		{a, []string{`{"x":1,"a":{"b":1}} `, `{"x":1,"a":{"b":1}}`, `{"x":1,"a":{"b":1}} x`, `{"x":1,"a":{"b":1}`}},
		{[]Field{field("a_key_longer_than_words.b", record.Long)}, []string{`{"a_key_longer_than_words":{"b":1}}`, `{"a_key_longer_than_worlds":{"b":1}}`, `{"a_key_longer_than_worDs":{"b":1}}`}},
		{[]Field{{Type: record.Type{Any: true}}}, []string{`{"a":1}`, `{"a":2}`}},
		{nil, []string{`{"a":1}`, `{"a":02}`, `[]`, `{"a":[}`, `5`, `6 6`, `6`}},
	} {
		for _, first := range c.docs {
			d := NewJSONDecoder(c.fields)
			outcome(d, []byte(first))
			for _, doc := range c.docs {
				if got, want := outcome(d, []byte(doc)), outcome(NewJSONDecoder(c.fields), []byte(doc)); got != want {
					t.Errorf("%s after %s\npredicted: %s\nanew:      %s", doc, first, got, want)
				}
			}
		}
	}
}

// A layout that does not pay is given up for longer and longer, and one that pays is not given up for a stranger.
func TestLayoutsAreLearntAndGivenUp(t *testing.T) {
	a, b := []byte(`{"s":"x","n":1}`), []byte(`{"n":1,"s":"x"}`)
	d := NewJSONDecoder(layoutFields)
	for i := range 10_000 {
		outcome(d, [][]byte{a, b}[i&1])
	}
	if d.layout.pause < 256 {
		t.Errorf("records of two layouts in turn: pause %d, want the attempts to become rare", d.layout.pause)
	}
	for range 2 * maxPause {
		outcome(d, a)
	}
	if hits := d.layout.hits; hits < fitsWell {
		t.Errorf("then only one: %d hits", hits)
	}
	for i := range 1000 {
		outcome(d, [][]byte{a, a, a, a, a, a, a, a, a, b}[i%10])
	}
	if len(d.layout.pieces) == 0 || d.layout.misses == 0 {
		t.Errorf("one of ten is a stranger: %d pieces, %d misses", len(d.layout.pieces), d.layout.misses)
	}
	for range 20 {
		outcome(d, []byte(`{"n":`))
	}
	for range 10 * memory {
		outcome(d, a)
	}
	for range memory {
		outcome(d, b)
	}
	if p := d.layout.pieces; len(p) == 0 || string(p[0].before.text) != `{"n":` {
		t.Errorf("the template has changed for good, and the old one is still predicted: %d hits, %d misses", d.layout.hits, d.layout.misses)
	}
}

func TestDigitsByWords(t *testing.T) {
	for _, text := range []string{"", "1", "1234567", "12345678", "123456789", "00000001", "99999999", "1234567890123456", "12345678901234567", "1234567x", "/2345678", ":2345678", "1234:678", "1234/678", "18446744073709551615"} {
		var got, want uint64
		end := digits([]byte(text+"x"), 0, &got)
		n := 0
		for n < len(text) && text[n] >= '0' && text[n] <= '9' {
			want = want*10 + uint64(text[n]-'0')
			n++
		}
		if got != want || end != n {
			t.Errorf("%q: %d to %d, want %d to %d", text, got, end, want, n)
		}
	}
}
