package topology_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"millrace/record"
	"millrace/topology"
)

// valid are expressions that compile, by what they are for.
var valid = map[string][]string{
	"where": {
		`value.n > 1 && value.ad_id != "x"`, `value.cost * 2.5 >= 10 or not (value.n in [1, 2, 3])`, `value.ad_id startsWith "a" ? value.n > 0 : value.n < 0`,
		`len(filter([1, 2, value.n], # > 1)) == 2`, `headers["h"] == nil || meta.offset % 2 == 0`, `let x = value.n + 1; x > 3`, `"äöü€" contains value.ad_id`,
		`timestamp - value.at < duration("10s")`,
	},
	"select":    {`value.ad_id + "|" + string(value.n)`, `value.at`, `key ?? "none"`, `{"a": value.n}.a`, `value.cost ** 2 / 3`, `upper(trim(value.user_id))`, `decimal("1.50") + value.n`},
	"group":     {`value.ad_id`, `value.n % 7`, `lower(value.user_id)`, `key`},
	"aggregate": {`count()`, `sum(value.cost)`, `collect_set(value.ad_id, 20)`, `fold(0, acc + value.n)`, `approx_distinct(value.user_id, 12)`, `max(value.at)`, `fold("", acc + "," + value.ad_id)`},
}

// pieces are what mutations put in: the library's syntax, and what breaks lexers.
var pieces = []string{"(", ")", "[", "]", "{", "}", "\"", "'", "`", "\\", ".", "?.", "??", "#", ";", ",", "|", "||", "&&", "!", "not ", "in ", "let ", "acc", "$env", "value", "window.start", "\n", "\t",
	"\x00", "é", "€", "🙂", "\xff", "0x", "1e999", "9223372036854775808", "..", "...", "-", "**", "%", "=", "==", ":", "?", "nil", "/*", "//", "get(", "now()", "reduce(", "map(", "\\u12", " "}

// mutate damages a text in a few places.
func mutate(r *rand.Rand, text string) string {
	for range 1 + r.IntN(3) {
		i := r.IntN(len(text) + 1)
		j := min(i+r.IntN(6), len(text))
		piece := pieces[r.IntN(len(pieces))]
		switch r.IntN(5) {
		case 0:
			text = text[:i] + piece + text[i:]
		case 1:
			text = text[:i] + text[j:]
		case 2:
			text = text[:i] + piece + text[j:]
		case 3:
			text = text[:i] + text[i:j] + text[i:j] + text[j:]
		case 4:
			text = strings.Repeat(text[:i], 2) + text[j:]
		}
	}
	return text
}

const firstCol = 10

// at places a text where no other one is.
func at(text string, line int) topology.Text {
	return topology.Text{Value: text, Pos: topology.Pos{File: "mutated", Line: line, Col: firstCol}}
}

// TestMutatedExpressions damages expressions at every place that takes one: nothing may panic, and every finding must
// point into a text that was damaged.
func TestMutatedExpressions(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	pick := func(kind string) string {
		text := valid[kind][r.IntN(len(valid[kind]))]
		if r.IntN(2) == 0 {
			return mutate(r, text)
		}
		return text
	}
	const specs = 5000 // of four expressions each, of which every other one is damaged
	broken := 0
	for i := range specs {
		spec := mutationSpec()
		texts := map[int]string{}
		place := func(kind string, line int) topology.Text {
			texts[line] = pick(kind)
			return at(texts[line], line)
		}
		grouped, stateless := &spec.Steps[0], &spec.Steps[1]
		grouped.Where = place("where", 1000)
		grouped.GroupBy[0].Expr = place("group", 2000)
		grouped.Aggregate[0].Expr = place("aggregate", 3000)
		stateless.Select[0].Expr = place("select", 4000)
		plan, found := topology.Compile(spec, topology.Options{})
		if plan == nil {
			broken++
		} else if _, err := plan.Explain("text", topology.ExplainOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Severity == topology.Error && !inside(f, texts[f.Pos.Line/1000*1000]) {
				t.Errorf("case %d: %+v is not inside %q", i, f, texts[f.Pos.Line/1000*1000])
			}
		}
		if plan == nil && len(found) == 0 {
			t.Errorf("case %d: neither plan nor finding for %v", i, texts)
		}
	}
	if broken < specs/2 || broken > specs*19/20 {
		t.Errorf("%d of %d specs are wrong: the mutations no longer do what they are for", broken, specs)
	}
}

// inside tells whether a finding underlines a stretch of one line of a text that begins at a multiple of 1000.
func inside(f topology.Finding, text string) bool {
	lines := strings.Split(strings.TrimLeft(text, "\n"), "\n")
	n := f.Pos.Line % 1000
	if n >= len(lines) || f.Len < 1 {
		return false
	}
	width := len([]rune(lines[n]))
	from := f.Pos.Col - firstCol
	return from >= 0 && from <= width && from+f.Len <= max(width, from+1)
}

func mutationSpec() *topology.Spec {
	field := func(name string, kind record.Kind) topology.FieldSpec {
		return topology.FieldSpec{Name: at(name, 1), Type: record.Type{Kind: kind}}
	}
	return &topology.Spec{
		ApplicationID: "app",
		Sources: []topology.SourceSpec{{Name: at("clicks", 1), Topic: at("clicks", 1), Fields: []topology.FieldSpec{
			field("ad_id", record.String), field("user_id", record.String), field("cost", record.Double), field("n", record.Long), field("at", record.Time),
		}}},
		Steps: []topology.StepSpec{
			{Name: at("grouped", 1), From: []topology.Text{at("clicks", 1)}, GroupBy: []topology.Named{{Name: at("g", 1)}}, Aggregate: []topology.Named{{Name: at("a", 1)}},
				TTL: topology.Span{Set: true, Forever: true}, To: []topology.Text{at("out", 1)}},
			{Name: at("stateless", 1), From: []topology.Text{at("clicks", 1)}, Select: []topology.Named{{Name: at("s", 1)}}, To: []topology.Text{at("out", 1)}},
		},
		Sinks: []topology.SinkSpec{{Name: at("out", 1), Topic: at("out", 1)}},
	}
}
