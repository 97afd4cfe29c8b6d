package cli

import (
	"strings"
	"testing"

	"millrace/config"
	"millrace/driver"
	"millrace/record"
)

func TestSameJSON(t *testing.T) {
	for _, c := range []struct {
		want, got string
		subset    bool
		path      string // of the difference; "same" for none
	}{
		{`{"a":1,"b":[1,{"c":null}]}`, `{"b":[1.0,{"c":null}],"a":1.00}`, false, "same"},
		{`1e3`, `1000`, false, "same"},
		{`9007199254740993`, `9007199254740992`, false, ""},
		{`0.1`, `0.10000000000000001`, false, ""},
		{`{"a":1}`, `{"a":1,"b":2}`, false, ".b"},
		{`{"a":1}`, `{"a":1,"b":2}`, true, "same"},
		{`{"a":{"x":1}}`, `{"a":{"x":1,"y":2},"b":2}`, true, "same"},
		{`{"a":1,"b":null}`, `{"a":1}`, true, ".b"},
		{`{"a":[1,2]}`, `{"a":[1,2,3]}`, true, ".a"},
		{`{"a":[1,{"b":true}]}`, `{"a":[1,{"b":false}]}`, false, ".a[1].b"},
		{`"1"`, `1`, false, ""},
		{`null`, `0`, false, ""},
		{`{}`, `[]`, true, ""},
		{`1`, `1 2`, false, ""},
		{`1`, `nope`, false, ""},
	} {
		d, same := sameJSON([]byte(c.want), []byte(c.got), c.subset)
		if same != (c.path == "same") || !same && (d.path != c.path || d.want == d.got) {
			t.Errorf("%s and %s: same is %v, difference %+v", c.want, c.got, same, d)
		}
	}
}

func expected(key, json string, partition int32) config.ExpectedRecord {
	return config.ExpectedRecord{Key: config.Datum{Set: true, Text: key, JSON: []byte(`"` + key + `"`)}, Value: config.Datum{Set: true, JSON: []byte(json)}, Partition: partition}
}

func produced(partition int32, key, value string) driver.Output {
	return driver.Output{Record: record.Record{Key: []byte(key), Value: []byte(value)}, Partition: partition, Watermark: 5}
}

func TestMatchKeepsTheOrderOfEachPartition(t *testing.T) {
	outputs := []driver.Output{produced(0, "a", "1"), produced(0, "a", "2"), produced(1, "b", "1"), produced(1, "a", "1"), produced(1, "b", "3")}
	for name, c := range map[string]struct {
		expected []config.ExpectedRecord
		message  string // part of it; empty: they match
	}{
		"partition by partition": {[]config.ExpectedRecord{expected("a", "1", -1), expected("a", "2", -1), expected("b", "1", -1), expected("a", "1", -1), expected("b", "3", -1)}, ""},
		// Here the first a=1 could be either; only one way leads to the end.
		"interleaved":        {[]config.ExpectedRecord{expected("b", "1", -1), expected("a", "1", -1), expected("b", "3", -1), expected("a", "1", -1), expected("a", "2", -1)}, ""},
		"in named ones":      {[]config.ExpectedRecord{expected("b", "1", 1), expected("a", "1", 1), expected("a", "1", 0), expected("a", "2", 0), expected("b", "3", 1)}, ""},
		"against the order":  {[]config.ExpectedRecord{expected("a", "2", -1), expected("a", "1", -1)}, "out[0].value: want 2, got 1"},
		"one too few":        {[]config.ExpectedRecord{expected("a", "1", -1), expected("a", "2", -1), expected("b", "1", -1), expected("a", "1", -1)}, "1 record more than the test expects"},
		"one too many":       {[]config.ExpectedRecord{expected("a", "1", -1), expected("a", "2", -1), expected("b", "1", -1), expected("a", "1", -1), expected("b", "3", -1), expected("b", "4", -1)}, "out[5]: want a record, got no more"},
		"other key":          {[]config.ExpectedRecord{expected("c", "1", -1)}, `out[0].key: want "c", got "a"`},
		"in the wrong one":   {[]config.ExpectedRecord{expected("b", "1", 0)}, "out[0].partition: want 0, got 1"},
		"none at all wanted": {nil, "out: 5 records, and the test expects none"},
	} {
		failures := topicCheck{name: "out"}.match(c.expected, outputs)
		switch {
		case c.message == "" && len(failures) > 0:
			t.Errorf("%s: %v", name, failures[0].lines())
		case c.message != "" && (len(failures) != 1 || !strings.Contains(failures[0].Message, c.message)):
			t.Errorf("%s: %v, want %s", name, failures, c.message)
		}
	}
}

func TestCompareLooksAtEverything(t *testing.T) {
	o := driver.Output{Record: record.Record{Key: []byte("k"), Value: []byte(`{"a":1}`), Timestamp: 7, Headers: []record.Header{{Key: []byte("h"), Value: []byte("1")}, {Key: []byte("none")}, {Key: []byte("h"), Value: []byte("2")},
		{Key: []byte("__streams.errors.topic"), Value: []byte("t")}, {Key: []byte("__streams.errors.exception"), Value: []byte("processing")}}}}
	text := func(s string) config.Datum { return config.Datum{Set: true, Text: s, JSON: []byte(`"` + s + `"`)} }
	header := func(name string, d config.Datum) func(*config.ExpectedRecord) {
		return func(e *config.ExpectedRecord) {
			e.Headers = []config.TestHeader{{Value: d}}
			e.Headers[0].Name.Value = name
		}
	}
	for name, c := range map[string]struct {
		change func(e *config.ExpectedRecord)
		path   string // empty: the same
	}{
		"as it is":         {func(*config.ExpectedRecord) {}, ""},
		"null key":         {func(e *config.ExpectedRecord) { e.Key.Null = true }, ".key"},
		"tombstone":        {func(e *config.ExpectedRecord) { e.Tombstone, e.Value = true, config.Datum{} }, ".value"},
		"raw":              {func(e *config.ExpectedRecord) { e.Value = config.Datum{Set: true, Raw: true, Text: `{"a": 1}`} }, ".value"},
		"time":             {func(e *config.ExpectedRecord) { e.Timestamp, e.HasTimestamp = 8, true }, ".timestamp"},
		"same time":        {func(e *config.ExpectedRecord) { e.Timestamp, e.HasTimestamp = 7, true }, ""},
		"last header":      {header("h", text("2")), ""},
		"first header":     {header("h", text("1")), ".headers.h"},
		"missing header":   {header("x", text("1")), ".headers.x"},
		"header of null":   {header("none", config.Datum{Set: true, Null: true, JSON: []byte("null")}), ""},
		"header with text": {header("none", text("")), ".headers.none"},
		"source":           {func(e *config.ExpectedRecord) { e.Source.Value = "s" }, ""},
		"other source":     {func(e *config.ExpectedRecord) { e.Source.Value = "r" }, ".source"},
		"reason":           {func(e *config.ExpectedRecord) { e.Reason.Value = "processing" }, ""},
		"other reason":     {func(e *config.ExpectedRecord) { e.Reason.Value = "timestamp" }, ".reason"},
	} {
		e := expected("k", `{"a":1}`, -1)
		c.change(&e)
		check := topicCheck{topics: map[string]string{"s": "t", "r": "u"}}
		if d, same := check.compare(&e, o); same != (c.path == "") || d.path != c.path && !same {
			t.Errorf("%s: same is %v, difference %+v", name, same, d)
		}
	}
}
