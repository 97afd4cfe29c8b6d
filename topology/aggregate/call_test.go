package aggregate_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"millrace/topology/aggregate"
)

func TestParse(t *testing.T) {
	type call = aggregate.Call
	args := func(pairs ...any) (out []aggregate.Arg) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, aggregate.Arg{Text: pairs[i].(string), Offset: pairs[i+1].(int)})
		}
		return out
	}
	cases := []struct {
		text string
		want call
	}{
		{"count()", call{Name: "count"}},
		{"  count ( ) ", call{Name: "count"}},
		{"count(value.user_id)", call{Name: "count", Args: args("value.user_id", 6)}},
		{"sum( value.cost )", call{Name: "sum", Args: args("value.cost", 5)}},
		{`max(value["a,b)"])`, call{Name: "max", Args: args(`value["a,b)"]`, 4)}},
		{`first("it\"s, (" + 'x\',')`, call{Name: "first", Args: args(`"it\"s, (" + 'x\','`, 6)}},
		{"last(`\\` + f(a, [b, c], {d: e}))", call{Name: "last", Args: args("`\\` + f(a, [b, c], {d: e})", 5)}},
		{"collect_list(value.url, 20)", call{Name: "collect_list", Args: args("value.url", 13), Limit: 20}},
		{"collect_set(f(a, b),\n 3)", call{Name: "collect_set", Args: args("f(a, b)", 12), Limit: 3}},
		{"approx_distinct(value.u)", call{Name: "approx_distinct", Args: args("value.u", 16), Precision: 12}},
		{"approx_distinct(value.u, 14)", call{Name: "approx_distinct", Args: args("value.u", 16), Precision: 14}},
		{"fold(0, acc + value.n)", call{Name: "fold", Args: args("0", 5, "acc + value.n", 8)}},
	}
	for _, c := range cases {
		c.want.Len = len(c.text)
		got, err := aggregate.Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestParseSaysWhatIsWrongAndWhere(t *testing.T) {
	cases := []struct {
		text      string
		underline string
		message   string
	}{
		{"", "", `"" is not an aggregate; write a call, as in count() or sum(value.cost)`},
		{"cuont()", "cuont", "unknown aggregate cuont; did you mean count?"},
		{"SUM(x)", "SUM", "unknown aggregate SUM; did you mean sum?"},
		{"median(x)", "median", "unknown aggregate median; known are count, sum, min, max, avg, first, last, collect_list, collect_set, approx_distinct, fold"},
		{"count", "count", "count is not called; write count() or count(value.user_id)"},
		{"sum()", "()", "sum does not take 0 expressions; write sum(value.cost)"},
		{"sum(a, b)", "(a, b)", "sum does not take 2 expressions; write sum(value.cost)"},
		{"sum(a,)", ")", "an argument is empty; take out the comma"},
		{"sum(, a)", " ", "an argument is empty; take out the comma"},
		{"sum(a", "(a", "the call does not end; close it with )"},
		{"sum(f[a)", ")", ") where ] is due; balance the brackets"},
		{"sum('a)", "'a)", "the string does not end; close it with '"},
		{"sum(a) / count()", "/ count()", `"/ count()" after the call of sum; an aggregate is one call; compute with its result in select`},
		{"collect_set(a)", "(a)", "collect_set needs a limit; write collect_set(value.url, 20): without one the state could grow for ever"},
		{"collect_list(a, n)", "n", "the limit of collect_list is n; write a whole number from 1 to 10000"},
		{"collect_list(a, 0)", "0", "the limit of collect_list is 0; write a whole number from 1 to 10000"},
		{"collect_list()", "()", "collect_list does not take 0 expressions; write collect_list(value.url, 20)"},
		{"collect_list(a, 5, c)", "(a, 5, c)", "collect_list does not take 2 expressions; write collect_list(value.url, 20)"},
		{"approx_distinct(a, 30)", "30", "the precision of approx_distinct is 30; write a whole number from 4 to 16"},
		{"fold(0)", "(0)", "fold does not take 1 expressions; write fold(0, acc + value.n)"},
	}
	for _, c := range cases {
		_, err := aggregate.Parse(c.text)
		var e *aggregate.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v", c.text, err)
			continue
		}
		if e.Error() != c.message {
			t.Errorf("%s:\n got %s\nwant %s", c.text, e.Error(), c.message)
		}
		if got := underlined(c.text, e); got != c.underline && c.text != "sum(a,)" && c.text != "sum(, a)" {
			t.Errorf("%s: underlines %q, want %q", c.text, got, c.underline)
		}
	}
}

func underlined(text string, e *aggregate.Error) string {
	if e.Offset < 0 || e.Offset+e.Len > len(text) {
		return "beyond the text"
	}
	return text[e.Offset : e.Offset+e.Len]
}

func TestParseNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("[a-z_]{0,3}(sum|count|fold|collect_set)?[ (),\\[\\]{}\"'`\\\\a1]{0,12}").Draw(t, "text")
		call, err := aggregate.Parse(text)
		var e *aggregate.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("%q: error of another type: %v", text, err)
		}
		if err != nil && (e.Offset < 0 || e.Len < 0 || e.Offset+e.Len > len(text)) {
			t.Fatalf("%q: underlines [%d,+%d)", text, e.Offset, e.Len)
		}
		for _, arg := range call.Args {
			if text[arg.Offset:arg.Offset+len(arg.Text)] != arg.Text {
				t.Fatalf("%q: argument %q is not at %d", text, arg.Text, arg.Offset)
			}
		}
	})
}
