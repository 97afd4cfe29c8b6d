package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"

	"millrace/record"
)

func field(path string, kind record.Kind) Field {
	return Field{Path: strings.Split(path, "."), Type: record.Type{Kind: kind}}
}

func anyField(path string) Field {
	return Field{Path: strings.Split(path, "."), Type: record.Type{Any: true}}
}

func timeField(path string, form record.TimeForm) Field {
	return Field{Path: strings.Split(path, "."), Type: record.Type{Kind: record.Time, Form: form}}
}

// show renders a value with its kind, so that tests can tell 1 from 1.0 and null from missing.
func show(v record.Value) string {
	if v.IsNull() {
		return v.Kind.String()
	}
	return v.Kind.String() + " " + string(AppendText(nil, v))
}

var amount = field("x", record.Decimal)

var decodeCases = []struct {
	field    Field
	doc      string
	want     string
	mismatch string
}{
	{field("x", record.String), `{"x":"a"}`, "string a", ""},
	{field("x", record.String), ` { "y" : [1,{"x":"no"}] , "x" : "a" } `, "string a", ""},
	{field("x", record.String), `{"x":"a\n\u00e9\ud83d\ude00\"\/\ud800z"}`, "string a\né😀\"/\uFFFDz", ""},
	{field("x", record.String), `{"x":"\ud800\u0041"}`, "string \uFFFDA", ""},
	{field("x", record.String), `{"x":""}`, "string ", ""},
	{field("x", record.String), `{"\u0078":"escaped key"}`, "string escaped key", ""},
	{field("x", record.String), `{"x":null}`, "null", ""},
	{field("x", record.String), `{}`, "missing", ""},
	{field("x", record.String), `{"x":1}`, "", "number"},
	{field("x", record.String), `{"x":1,"x":"last"}`, "", "number"},
	{field("x", record.String), `{"x":"first","x":"last"}`, "string last", ""},
	{field("x", record.Long), `{"x":-9223372036854775808}`, "long -9223372036854775808", ""},
	{field("x", record.Long), `{"x":9223372036854775807}`, "long 9223372036854775807", ""},
	{field("x", record.Long), `{"x":9223372036854775808}`, "", "number out of range"},
	{field("x", record.Long), `{"x":1e999999999}`, "", "number out of range"},
	{field("x", record.Long), `{"x":5.0}`, "long 5", ""},
	{field("x", record.Long), `{"x":1.5e3}`, "long 1500", ""},
	{field("x", record.Long), `{"x":5.5}`, "", "number that is not integral"},
	{field("x", record.Long), `{"x":"5"}`, "", "string"},
	{field("x", record.Double), `{"x":0.1}`, "double 0.1", ""},
	{field("x", record.Double), `{"x":-0}`, "double -0", ""},
	{field("x", record.Double), `{"x":123456789012345678901234567890}`, "double 1.2345678901234568e+29", ""},
	{field("x", record.Double), `{"x":1e400}`, "", "number out of range"},
	{field("x", record.Bool), `{"x":true}`, "bool true", ""},
	{field("x", record.Bool), `{"x":0}`, "", "number"},
	{amount, `{"x":12.30}`, "decimal 12.30", ""},
	{amount, `{"x":"12.30"}`, "decimal 12.30", ""},
	{amount, `{"x":"NaN"}`, "", "string that is not a decimal number"},
	{amount, `{"x":123456789012345678901234567890.5}`, "decimal 123456789012345678901234567890.5", ""},
	{timeField("x", record.EpochMillis), `{"x":61000}`, "time 61000", ""},
	{timeField("x", record.EpochMillis), `{"x":"1970-01-01T00:01:01Z"}`, "", "string"},
	{timeField("x", record.RFC3339), `{"x":"1970-01-01T01:01:01.25+01:00"}`, "time 61250", ""},
	{timeField("x", record.RFC3339), `{"x":"1970-02-30T00:00:00Z"}`, "", "string that is not an RFC 3339 time"},
	{timeField("x", record.RFC3339), `{"x":61000}`, "", "number"},
	{field("x", record.Bytes), `{"x":"aGk="}`, "bytes hi", ""},
	{field("x", record.Bytes), `{"x":"?"}`, "", "string that is not base64"},
	{field("x", record.List), `{"x":[1, "a"]}`, `list [1, "a"]`, ""},
	{field("x", record.Map), `{"x":{"a":[]}}`, `map {"a":[]}`, ""},
	{field("x", record.Map), `{"x":[]}`, "", "list"},
	{anyField("x"), `{"x":1}`, "long 1", ""},
	{anyField("x"), `{"x":1.0}`, "double 1", ""},
	{anyField("x"), `{"x":9223372036854775808}`, "double 9223372036854776000", ""},
	{anyField("x"), `{"x":false}`, "bool false", ""},
	{anyField("x"), `{"x":"s"}`, "string s", ""},
	{anyField("x"), `{"x":[ 1 ]}`, "list [ 1 ]", ""},
	{anyField("x"), `{"x":null}`, "null", ""},
	{field("a.b", record.Long), `{"a":{"b":1,"c":2}}`, "long 1", ""},
	{field("a.b", record.Long), `{"a":{"b":1},"a":{"c":2}}`, "missing", ""},
	{field("a.b", record.Long), `{"a":{"b":1},"a":null}`, "missing", ""},
	{field("a.b", record.Long), `{"a":[{"b":1}]}`, "missing", ""},
	{Field{Type: record.Type{Kind: record.Map}}, ` {"a": 1} `, `map {"a": 1}`, ""},
	{field("x", record.String), `[1]`, "", "list"},
	{field("x", record.String), `null`, "", "null"},
}

func TestDecodeByType(t *testing.T) {
	for _, c := range decodeCases {
		into := make([]record.Value, 1)
		err := NewJSONDecoder([]Field{c.field}).Decode([]byte(c.doc), into)
		var wrong *TypeError
		switch {
		case c.mismatch != "":
			if !errors.As(err, &wrong) || wrong.Got != c.mismatch {
				t.Errorf("%s as %v: error %v, want a type error about %q", c.doc, c.field, err, c.mismatch)
			}
		case err != nil:
			t.Errorf("%s as %v: %v", c.doc, c.field, err)
		case show(into[0]) != c.want:
			t.Errorf("%s as %v = %s, want %s", c.doc, c.field, show(into[0]), c.want)
		}
	}
}

func TestDecodeParentAndChild(t *testing.T) {
	d := NewJSONDecoder([]Field{field("a.b", record.Long), field("a", record.Map), {Type: record.Type{Any: true}}})
	into := make([]record.Value, 3)
	if err := d.Decode([]byte(`{"a":{"b":7}}`), into); err != nil {
		t.Fatal(err)
	}
	if show(into[0]) != "long 7" || show(into[1]) != `map {"b":7}` || show(into[2]) != `map {"a":{"b":7}}` {
		t.Errorf("got %s, %s, %s", show(into[0]), show(into[1]), show(into[2]))
	}
}

// The guessed order of keys may only speed things up: records of every order in turn decode alike.
func TestDecodeLearnsKeyOrder(t *testing.T) {
	d := NewJSONDecoder([]Field{field("a", record.Long), field("ab", record.Long), field("c", record.Long)})
	random := rand.New(rand.NewSource(1))
	keys := []string{`"a":1`, `"ab":2`, `"c":3`, `"d":4`, `"\u0061b":5`}
	for range 2000 {
		random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		n := random.Intn(len(keys) + 1)
		doc := "{" + strings.Join(keys[:n], ",") + "}"
		var oracle map[string]int64
		if err := json.Unmarshal([]byte(doc), &oracle); err != nil {
			t.Fatal(err)
		}
		into := make([]record.Value, 3)
		if err := d.Decode([]byte(doc), into); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"a", "ab", "c"} {
			want := "missing"
			if v, ok := oracle[name]; ok {
				want = fmt.Sprintf("long %d", v)
			}
			if show(into[i]) != want {
				t.Fatalf("%s: %s = %s, want %s", doc, name, show(into[i]), want)
			}
		}
	}
}

func TestSyntaxErrorOffsets(t *testing.T) {
	cases := []struct {
		doc    string
		offset int
	}{
		{``, 0}, {` `, 1}, {`{`, 1}, {`{"a"`, 4}, {`{"a":1`, 6}, {`{"a":1,}`, 7}, {`{"a":01}`, 5}, {`{"a":1.}`, 7},
		{`{"a":tru}`, 5}, {`{"a":"\x"}`, 6}, {"{\"a\":\"\x01\"}", 6}, {"{\"a\":\"\xff\"}", 6}, {`{"a":1} x`, 8},
		{`{"a":"long enough to be scanned in words\u12g4"}`, 40}, {`[1,]`, 3}, {`{a:1}`, 1}, {`+1`, 0}, {`.5`, 0},
		{strings.Repeat("[", 513), 512},
	}
	for _, c := range cases {
		err := NewJSONDecoder(nil).Decode([]byte(c.doc), nil)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Offset != c.offset {
			t.Errorf("%.50s: %v, want a syntax error at byte %d", c.doc, err, c.offset)
		}
	}
	deep := strings.Repeat("[", 512) + strings.Repeat("]", 512)
	if err := NewJSONDecoder(nil).Decode([]byte(deep), nil); err != nil {
		t.Errorf("512 levels: %v", err)
	}
}

var seedDocuments = []string{
	`{"ad_id":"ad-000017","user_id":"user-00001234","type":"click","cost":0.25,"at":1700000000123,"ok":true,"n":null}`,
	`{"a":{"b":[1,2.5e-3,-0,{"c":"x\u00e9\n\\\/\ud83d\ude00"}],"d":{}},"e":[],"f":"äöü€😀 and quite some text after it"}`,
	` [ true , false , null , "" , 1E+10 , {"k" : [ [ ] ] } ] `,
	`"just a string"`, `-12.5e+3`,
}

// Malformed input must never panic, and this scanner and the standard library's must agree on what is valid. Two
// differences are wanted: we refuse invalid UTF-8, which encoding/json replaces, and limit the depth.
func TestDecodeMutatedDocuments(t *testing.T) {
	fields := []Field{
		field("ad_id", record.String), field("cost", record.Double), timeField("at", record.EpochMillis), anyField("a.b"),
		anyField("f"), field("a.d.x", record.Bool),
	}
	d := NewJSONDecoder(fields)
	into := make([]record.Value, len(fields))
	random := rand.New(rand.NewSource(42))
	valid := 0
	for range 20_000 {
		doc := mutate(random, []byte(seedDocuments[random.Intn(len(seedDocuments))]))
		err := d.Decode(doc, into)
		var syntax *SyntaxError
		accepted := !errors.As(err, &syntax)
		want := json.Valid(doc) && utf8.Valid(doc)
		if accepted != want {
			t.Fatalf("%q: accepted %v (%v), want %v", doc, accepted, err, want)
		}
		if want {
			valid++
		}
	}
	if valid < 1000 || valid > 19_000 {
		t.Errorf("%d of 20000 mutated documents are valid: the mutations test one side only", valid)
	}
}

func mutate(random *rand.Rand, doc []byte) []byte {
	const alphabet = "{}[]\":,\\ \t\n0123456789.eE+-truefalsnuabcd/\x00\x1f\x7f\x80\xc3\xff"
	for range random.Intn(3) {
		at := random.Intn(len(doc))
		c := alphabet[random.Intn(len(alphabet))]
		switch random.Intn(5) {
		case 0:
			doc[at] = c
		case 1:
			doc = append(doc[:at], append([]byte{c}, doc[at:]...)...)
		case 2:
			doc = append(doc[:at], doc[at+1:]...)
		case 3:
			doc = doc[:at]
		case 4:
			doc = append(doc, doc[at:]...)
		}
		if len(doc) == 0 {
			return []byte(" ")
		}
	}
	return doc
}

// clickFields are four of the seven fields of clickDoc, which is the 115-byte record that the goals are stated for.
var clickFields = []Field{
	field("ad_id", record.String), field("type", record.String), field("cost", record.Double),
	timeField("at", record.EpochMillis),
}

var clickDoc = []byte(`{"ad_id":"ad-000017","user_id":"u-0001234","type":"click","cost":0.25,"at":1700000000123,"site":"news","ok":true}`)

func TestDecodeAllocatesNothing(t *testing.T) {
	escaped := []byte(`{"type":"cl\u0069ck","ad_id":"a\n","at":1,"cost":1234567.890123456789}`)
	d := NewJSONDecoder(clickFields)
	into := make([]record.Value, len(clickFields))
	allocs := testing.AllocsPerRun(1000, func() {
		for _, doc := range [][]byte{clickDoc, escaped} {
			if err := d.Decode(doc, into); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations a record, want 0", allocs)
	}
}

func BenchmarkDecode(b *testing.B) {
	d := NewJSONDecoder(clickFields)
	into := make([]record.Value, len(clickFields))
	b.SetBytes(int64(len(clickDoc)))
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Decode(clickDoc, into); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodePermuted(b *testing.B) {
	other := []byte(`{"ok":true,"site":"news","at":1700000000123,"cost":0.25,"type":"click","user_id":"u-0001234","ad_id":"ad-000017"}`)
	d := NewJSONDecoder(clickFields)
	into := make([]record.Value, len(clickFields))
	docs := [][]byte{clickDoc, other}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := d.Decode(docs[i&1], into); err != nil {
			b.Fatal(err)
		}
	}
}
