package topology_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"millrace/config"
	"millrace/topology"
)

const clicksSource = `clicks: { topic: clicks, key: value.user_id, fields: { ad_id: string, user_id: string, cost: double, n: long, at: timestamp_ms },
      timestamp: value.at, watermark: { max_out_of_orderness: 15s, idle_timeout: 30s } }`

// job is a topology in parts; what is empty gets a part that is right.
type job struct{ errors, sources, steps, sinks string }

func (j job) yaml() string {
	or := func(text, otherwise string) string {
		if text == "" {
			return otherwise
		}
		return text
	}
	return fmt.Sprintf(`version: 1
application_id: app
kafka: { bootstrap_servers: ["localhost:9092"] }
state: { dir: ./state }
errors: { %s }
topology:
  sources:
    %s
  steps:
    %s
  sinks:
    %s
`, j.errors, or(j.sources, clicksSource), or(j.steps, "s: { from: clicks, to: out }"), or(j.sinks, "out: { topic: out }\n    late: { topic: late }"))
}

// load compiles a configuration as the commands do.
func load(t *testing.T, yaml string, keyed map[string]bool) (*topology.Plan, []topology.Finding) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	c, found := config.Load(config.LoadOptions{Files: []string{file}, Environ: func(string) (string, bool) { return "", false }})
	if config.HasErrors(found) {
		t.Fatalf("the test's own YAML is wrong: %+v\n%s", found, yaml)
	}
	return topology.Compile(&c.Spec, topology.Options{Keyed: keyed})
}

func plan(t *testing.T, j job, keyed map[string]bool) *topology.Plan {
	t.Helper()
	p, found := load(t, j.yaml(), keyed)
	if p == nil {
		t.Fatalf("findings: %+v\n%s", found, j.yaml())
	}
	return p
}

// marked takes the marks « and » out of a text and returns the place and length of what was between them.
func marked(t *testing.T, text string) (clean string, line, col, length int) {
	t.Helper()
	before, rest, ok := strings.Cut(text, "«")
	inside, after, ok2 := strings.Cut(rest, "»")
	if !ok || !ok2 {
		t.Fatalf("no «mark» in the case:\n%s", text)
	}
	lastLine := before[strings.LastIndexByte(before, '\n')+1:]
	return before + inside + after, 1 + strings.Count(before, "\n"), 1 + len([]rune(lastLine)), len([]rune(inside))
}

type findingCase struct {
	name    string
	job     job // with «» around what is underlined
	code    string
	message string
	hint    string
}

// check compiles each case and wants exactly the one finding, at its mark. Findings that are no errors may come beside
// an error, but not the other way round.
func check(t *testing.T, cases []findingCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			yaml, line, col, length := marked(t, c.job.yaml())
			p, all := load(t, yaml, nil)
			isError := strings.HasPrefix(c.code, "MR")
			if (p == nil) != isError {
				t.Errorf("a plan: %v, and the finding is %s", p != nil, c.code)
			}
			found := slices.DeleteFunc(all, func(f topology.Finding) bool {
				return f.Severity != topology.Error && f.Code != c.code
			})
			if len(found) != 1 {
				t.Fatalf("%d findings, want 1: %+v", len(found), found)
			}
			f := found[0]
			if f.Pos.Line != line || f.Pos.Col != col || f.Len != length && f.Len != 0 {
				t.Errorf("at %d:%d, %d long; want %d:%d, %d long\n%s", f.Pos.Line, f.Pos.Col, f.Len, line, col, length, yaml)
			}
			f.Message = strings.ReplaceAll(f.Message, filepath.Dir(f.Pos.File)+"/", "")
			if f.Code != c.code || f.Message != c.message || f.Hint != c.hint {
				t.Errorf("got  %s %s\n     %s\nwant %s %s\n     %s", f.Code, f.Message, f.Hint, c.code, c.message, c.hint)
			}
		})
	}
}

// tumbling is the tail of a windowed step in which nothing is missing.
const tumbling = "window: { type: tumbling, size: 1m }, late: { policy: drop }, emit: final"

func TestUnknownNames(t *testing.T) {
	check(t, []findingCase{
		{"source", job{steps: "s: { from: «click», to: out }"}, "MR1102", `step s reads "click", which is no source and no step`, `did you mean "clicks"?`},
		{"nothing near", job{steps: "s: { from: «orders», to: out }"}, "MR1102", `step s reads "orders", which is no source and no step`, "known: clicks, s"},
		{"sink", job{steps: "s: { from: clicks, to: [out, «outt»] }"}, "MR1102", `step s names sink "outt", which does not exist`, `did you mean "out"?`},
		{"late sink", job{steps: "s: { from: clicks, group_by: key, aggregate: { n: count() }, window: { type: tumbling, size: 1m }, late: { to: «latte» }, emit: final, to: out }"},
			"MR1102", `late of step s names sink "latte", which does not exist`, `did you mean "late"?`},
		{"field in where", job{steps: "s: { from: clicks, where: 'value.n > 1 && value.«csot» > 2', to: out }"}, "MR1103", "unknown field csot in where of step s", `did you mean "cost"?`},
		{"field in group_by", job{steps: "s: { from: clicks, group_by: [value.user_id, value.«ad_idd»], aggregate: { n: count() }, " + tumbling + ", to: out }"},
			"MR1103", "unknown field ad_idd in group_by of step s", `did you mean "ad_id"?`},
		{"field in an aggregate", job{steps: "s: { from: clicks, group_by: key, aggregate: { n: 'sum( value.«costs» )' }, " + tumbling + ", to: out }"},
			"MR1103", "unknown field costs in aggregate n of step s", `did you mean "cost"?`},
		{"field in having", job{steps: "s: { from: clicks, group_by: key, aggregate: { sum: count() }, having: value.«sun» > 1, " + tumbling + ", to: out }"},
			"MR1103", "unknown field sun in having of step s", `did you mean "sum"?`},
		{"field in select", job{steps: "s: { from: clicks, select: { a: value.«add_id» }, to: out }"}, "MR1103", "unknown field add_id in select of step s", `did you mean "ad_id"?`},
		{"field in the timestamp", job{sources: "clicks: { topic: c, fields: { at: timestamp }, timestamp: value.«ta» }"}, "MR1103", "unknown field ta in timestamp of source clicks", `did you mean "at"?`},
		{"field in a source's key", job{sources: "clicks: { topic: c, fields: { user: string }, key: value.«usr» }"}, "MR1103", "unknown field usr in key of source clicks", `did you mean "user"?`},
		{"field in a sink's key", job{sinks: "out: { topic: out, key: value.«user» }"}, "MR1103", "unknown field user in key of sink out", "the fields are ad_id, at, cost, n, user_id"},
		{"field in a header", job{sinks: "out: { topic: out, headers: { h: value.«ad_ids» } }"}, "MR1103", "unknown field ad_ids in headers of sink out", `did you mean "ad_id"?`},
		{"aggregate", job{steps: "s: { from: clicks, group_by: key, aggregate: { n: «cuont»() }, " + tumbling + ", to: out }"}, "MR1107", "unknown aggregate cuont in aggregate n of step s", "did you mean count?"},
		{"window.start without a window", job{steps: "s: { from: clicks, select: { a: «window».start }, to: out }"}, "MR1103", "unknown name window in select of step s", "the names are headers, key, meta, timestamp, value"},
		{"behind characters of several bytes", job{steps: `s: { from: clicks, where: 'value.ad_id == "äöü€" && value.«csot» > 2', to: out }`}, "MR1103", "unknown field csot in where of step s", `did you mean "cost"?`},
		{"in two inputs of one step", job{steps: "f: { from: clicks, where: value.n > 1 }\n    g: { from: clicks, where: value.n < 1 }\n    s: { from: [f, g], where: value.«csot» > 2, to: out }"}, "MR1103", "unknown field csot in where of step s", `did you mean "cost"?`},
		{"on the third line of a block", job{steps: "s:\n      from: clicks\n      to: out\n      where: |\n\n        value.n > 1\n        && value.cost > 2\n        && «csot» > 2"},
			"MR1103", "unknown name csot in where of step s", "the names are headers, key, meta, timestamp, value"},
	})
}

func TestContractsMustBeWritten(t *testing.T) {
	grouped := "s: { from: clicks, group_by: key, aggregate: { n: count() }, "
	check(t, []findingCase{
		{"late", job{steps: grouped + "window: «{» type: tumbling, size: 1m }, to: out }"}, "MR1105", "step s has a window and does not say what late records get", "add late: { to: SINK } or late: { policy: drop }"},
		{"late says nothing", job{steps: grouped + "window: { type: tumbling, size: 1m }, late: «{» }, to: out }"}, "MR1105", "late of step s says nothing", "write late: { to: SINK } or late: { policy: drop }"},
		{"late policy", job{steps: grouped + "window: { type: tumbling, size: 1m }, late: { policy: «keep» }, to: out }"}, "MR1109", `late policy of step s is "keep"`, "write policy: drop, or to: with a sink"},
		{"late twice", job{steps: grouped + "window: { type: tumbling, size: 1m }, late: { to: late, policy: «drop» }, to: out }"}, "MR1108", "late of step s has both to: and policy:", "keep one of them"},
		{"ttl", job{steps: "«s»: { from: clicks, group_by: key, aggregate: { n: count() }, to: out }"}, "MR1105", "step s keeps a row a group and does not say how long", "add ttl: 24h, or ttl: forever if the groups are bounded"},
		{"ttl of nothing", job{steps: grouped + "ttl: «0s», to: out }"}, "MR1105", "step s has a ttl of nothing", "add ttl: 24h, or ttl: forever if the groups are bounded"},
		{"group_by", job{steps: "«s»: { from: clicks, aggregate: { n: count() }, " + tumbling + ", to: out }"}, "MR1105", "step s has a window or aggregates without group_by", "add group_by:"},
		{"aggregate", job{steps: "«s»: { from: clicks, group_by: key, " + tumbling + ", to: out }"}, "MR1105", "step s groups without aggregate", "add aggregate:, for example { count: count() }"},
		{"emit", job{steps: "«s»: { from: clicks, group_by: key, aggregate: { n: count() }, window: { type: tumbling, size: 1m }, late: { policy: drop }, to: out }"},
			"N1103", "step s does not say emit: a window gives one result, once it is final", "write emit: final if that is meant"},
		{"emit of a word", job{steps: grouped + "window: { type: tumbling, size: 1m }, late: { policy: drop }, emit: «finally», to: out }"}, "MR1109", `emit of step s "finally" is not known`, `did you mean "final"?`},
		{"emit without a window", job{steps: grouped + "ttl: 1h, emit: «final», to: out }"}, "MR1109", `emit of step s, which has no window, "final" is not known`, "known: changes"},
		{"from", job{steps: "«s»: { to: out }"}, "MR1105", "step s reads nothing", "add from: with a source or a step"},
		{"to", job{steps: "s: { from: clicks, to: out }\n    «t»: { from: clicks }"}, "MR1105", "step t goes nowhere", "add to: with a sink, or read it from another step"},
		{"topic of a source", job{sources: "«clicks»: { fields: { a: string } }"}, "MR1105", "source clicks has no topic", "add topic:"},
		{"topic of a sink", job{sinks: "«out»: { format: json }"}, "MR1105", "sink out has no topic", "add topic:"},
		{"name of a group", job{steps: "s: { from: clicks, group_by: «value.n % 7», aggregate: { n: count() }, " + tumbling + ", to: out }"}, "MR1105", "group_by of step s needs a name for this expression", "write group_by: { name: expression }"},
		{"limit of a collection", job{steps: "s: { from: clicks, group_by: key, aggregate: { n: collect_set«(value.ad_id)» }, " + tumbling + ", to: out }"}, "MR1107", "collect_set needs a limit in aggregate n of step s",
			"write collect_set(value.url, 20): without one the state could grow for ever"},
		{"size", job{steps: grouped + "window: «{» type: tumbling }, late: { policy: drop }, to: out }"}, "MR1105", "window of step s has no size", "add size:, for example 1m"},
		{"type", job{steps: grouped + "window: «{» size: 1m }, late: { policy: drop }, to: out }"}, "MR1105", "window of step s has no type", "add type: tumbling or type: hopping"},
	})
}

func TestWindows(t *testing.T) {
	step := func(window string) job {
		return job{steps: "s: { from: clicks, group_by: key, aggregate: { n: count() }, window: " + window + ", late: { policy: drop }, emit: final, to: out }"}
	}
	check(t, []findingCase{
		{"hopping without advance", step("«{» type: hopping, size: 1m }"), "MR1105", "hopping window of step s has no advance", "add advance:, how far apart the windows start"},
		{"tumbling with advance", step("{ type: tumbling, size: 1m, advance: «10s» }"), "MR1108", "tumbling window of step s has an advance", "write type: hopping for overlapping windows"},
		{"advance beyond size", step("«{» type: hopping, size: 1m, advance: 2m }"), "MR1106", "step s: window advance 120000 ms is longer than size 60000 ms: records between two windows would be in none", ""},
		{"size of nothing", step("{ type: tumbling, size: «0s» }"), "MR1106", "window of step s has a size of nothing", "write size: 1m, for example"},
		{"size between milliseconds", step("{ type: tumbling, size: «1500us» }"), "MR1106", "size of step s is 1.5ms: event time counts whole milliseconds", "round it"},
		{"offset beyond advance", step("«{» type: tumbling, size: 1m, offset: 61s }"), "MR1106", "step s: window offset 61000 ms: want less than the advance of 60000 ms; more repeats the same windows", ""},
		{"type", step("{ type: «session», size: 1m }"), "MR1109", `window type of step s "session" is not known`, "known: tumbling, hopping"},
		{"time zone", step("{ type: tumbling, size: 24h, time_zone: «Europe/Atlantis» }"), "MR1106", `time zone "Europe/Atlantis" of step s is not known`, "use an IANA name such as Europe/Berlin"},
		{"time zone of hours", step("«{» type: tumbling, size: 1h, time_zone: Europe/Berlin }"), "MR1106", "step s: time zone Europe/Berlin: only tumbling windows of whole days follow a zone; drop the zone or use 24h", ""},
		{"ttl beside", job{steps: "s: { from: clicks, group_by: key, aggregate: { n: count() }, ttl: «1h», " + tumbling + ", to: out }"}, "MR1108", "step s has a ttl beside a window", "remove ttl: a window's rows end with it"},
	})
}

func TestThingsThatDoNotGoTogether(t *testing.T) {
	check(t, []findingCase{
		{"late of a stateless step", job{steps: "s: { from: clicks, late: «{» policy: drop }, to: out }"}, "MR1108", "step s has late: but no window", "remove it: without a window nothing is late"},
		{"late without a window", job{steps: "s: { from: clicks, group_by: key, aggregate: { n: count() }, ttl: 1h, late: «{» policy: drop }, to: out }"}, "MR1108", "step s has late: but no window", "remove it: without a window nothing is late"},
		{"having of a stateless step", job{steps: "s: { from: clicks, having: «value.n > 1», to: out }"}, "MR1108", "step s has having but no aggregate", "use where: to filter rows, or add group_by: and aggregate:"},
		{"emit of a stateless step", job{steps: "s: { from: clicks, emit: «final», to: out }"}, "MR1108", "step s has emit but no aggregate", "use where: to filter rows, or add group_by: and aggregate:"},
		{"ttl of a stateless step", job{steps: "s: { from: clicks, ttl: «1h», to: out }"}, "MR1108", "step s has ttl but no aggregate", "use where: to filter rows, or add group_by: and aggregate:"},
		{"a sink that is a source's topic", job{sinks: "out: { topic: «clicks» }"}, "MR1108", "sink out writes to clicks, which source clicks reads: the job would feed itself", "use another topic"},
		{"dead letters to a source's topic", job{errors: "processing: dead_letter, dead_letter_topic: «clicks»"}, "MR1108", "dead letters go to clicks, which source clicks reads: a bad record would come back for ever", "use another topic"},
		{"an internal topic", job{steps: "s: { from: clicks, group_by: value.ad_id, aggregate: { n: count() }, " + tumbling + ", to: out }", sinks: "out: { topic: «app-s-changelog» }"},
			"MR1108", "app-s-changelog is an internal topic of step s, and sink out uses it", "use another topic, or rename the step"},
		{"dead_letter without a topic", job{sources: "clicks: { topic: c, fields: { at: long }, timestamp: value.at, invalid_timestamp: «dead_letter» }"}, "MR1105", "dead_letter needs a topic", "set errors.dead_letter_topic"},
		{"two sources on one topic", job{sources: clicksSource + "\n    again: { topic: «clicks», fields: { a: string } }", steps: "s: { from: clicks, to: out }\n    t: { from: again, to: out }"},
			"MR1101", "sources clicks and again both read topic clicks", "read it once and let several steps use the source"},
		{"a step named as a source", job{steps: "«clicks»: { from: clicks, to: out }\n    s: { from: clicks, to: out }"}, "MR1101", `step "clicks" has the name of another source or step, at config.yaml:8:5`, "rename one of them"},
		{"from twice", job{steps: "s: { from: [clicks, «clicks»], to: out }"}, "MR1101", "step s reads clicks twice", "name it once"},
		{"a result field twice", job{steps: "«s»: { from: clicks, group_by: value.n, aggregate: { n: count() }, " + tumbling + ", to: out }"}, "MR1101", "two result fields of step s are named n",
			"rename the aggregate, or name the group: group_by: { other: expression }"},
		{"key_with_window without a window", job{steps: "s: { from: clicks, to: «out» }", sinks: "out: { topic: out, key_with_window: true }"}, "MR1108", "sink out has key_with_window, but step s has no window", "remove key_with_window from the sink"},
		{"key_with_window where one input has none", job{steps: "a: { from: clicks, " + perUser + " }\n    b: { from: clicks, group_by: value.user_id, aggregate: { n: count() }, ttl: 1h }\n    m: { from: [a, b], select: { n: value.n }, to: «out» }",
			sinks: "out: { topic: out, key_with_window: true }"}, "MR1108", "sink out has key_with_window, but step m has no window", "remove key_with_window from the sink"},
		{"key beside key_with_window", job{steps: "s: { from: clicks, group_by: key, aggregate: { n: count() }, " + tumbling + ", to: out }", sinks: "out: { topic: out, key: «value.n», key_with_window: true }"},
			"MR1108", "sink out has key: beside key_with_window, which makes the key itself", "remove one of them"},
		{"fields of text", job{sources: "clicks: { topic: c, format: string, fields: { «a»: string } }", sinks: "out: { topic: out, format: string }"}, "MR1108", "source clicks: format string has no fields, its value is `value`", "remove fields:"},
		{"a row in a format of one value", job{steps: "s: { from: clicks, select: { a: value.ad_id, n: value.n }, to: «out» }", sinks: "out: { topic: out, format: long }"},
			"MR1108", "sink out has format long, which holds one value, and step s gives it 2: a string, n long", "select one field, or use format: json"},
		{"records of another format", job{sinks: "out: { topic: out, format: string }", steps: "s: { from: clicks, to: «out» }"},
			"MR1108", "sink out has format string, and step s hands it the records of source clicks as they came, in json", "write format: json on the sink, or select: the fields"},
		{"late records of another format", job{sources: "clicks: { topic: c, format: string, watermark: { idle_timeout: 1s } }",
			steps: "s: { from: clicks, group_by: value, aggregate: { n: count() }, window: { type: tumbling, size: 1m }, late: { to: «late» }, emit: final, to: out }"},
			"MR1108", "sink late has format json, and late of step s hands it the records of source clicks as they came, in string", "write format: string on the sink, or select: the fields"},
		{"a late sink with a key", job{steps: "s: { from: clicks, group_by: key, aggregate: { n: count() }, window: { type: tumbling, size: 1m }, late: { to: late }, emit: final, to: out }",
			sinks: "out: { topic: out }\n    late: { topic: late, key: «value.ad_id» }"}, "MR1108", "sink late has key, and the late records of step s are written to it as they came", "give late: a sink of its own"},
		{"timestamp_format of records", job{sinks: "out: { topic: out, timestamp_format: «rfc3339» }"}, "MR1108", "sink out has timestamp_format, and step s hands it the records of source clicks as they came", "remove timestamp_format, or select: the fields"},
		{"timestamp_format without text", job{steps: "s: { from: clicks, select: { a: value.at }, to: out }", sinks: "out: { topic: out, format: long, timestamp_format: «rfc3339» }"},
			"MR1108", "sink out has timestamp_format, and its format long writes no text", "remove timestamp_format"},
		{"a format", job{sinks: "out: { topic: out, format: «jsno» }", steps: "s: { from: clicks, select: { a: key }, to: out }"}, "MR1109", `format of sink out "jsno" is not known`, `did you mean "json"?`},
		{"a time that is none", job{sources: "clicks: { topic: c, fields: { at: string }, timestamp: «value.at» }"}, "MR1103", "timestamp of source clicks is string", "a time is a timestamp, a timestamp_ms or a long of milliseconds"},
		{"a group that is a list", job{sources: "clicks: { topic: c, fields: { l: list }, watermark: { idle_timeout: 1s } }", steps: "s: { from: clicks, group_by: «value.l», aggregate: { n: count() }, " + tumbling + ", to: out }"},
			"MR1103", "group_by of step s is a list", "group by plain values"},
		{"a condition that is none", job{steps: "s: { from: clicks, where: «value.n + 1», to: out }"}, "MR1103", "a condition must be boolean, and this is long in where of step s", ""},
	})
}

func TestCircles(t *testing.T) {
	check(t, []findingCase{
		{"itself", job{steps: "s: { from: [clicks, «s»], to: out }"}, "MR1104", "step s reads itself", "break the circle: a job's steps form a graph without loops"},
		{"three", job{steps: "a: { from: [clicks, c] }\n    b: { from: «a» }\n    c: { from: b, to: out }"}, "MR1104", "step b reads a, which reads b in turn", "break the circle: a job's steps form a graph without loops"},
		{"through a repartition topic", job{steps: "«s»: { from: clicks, group_by: value.ad_id, aggregate: { n: count() }, " + tumbling + " }\n    both: { from: [clicks, s], select: { k: key }, to: out }"},
			"MR1104", "step s repartitions, and a step behind it reads its results together with rows from before the repartition", "write one of the two to a topic, and read that in a job of its own"},
	})
}

const secondSource = "\n    views: { topic: views, key: value.user_id, fields: { ad_id: long, user_id: string, cost: string }, watermark: { idle_timeout: 1s } }"

func TestInputsMustAgree(t *testing.T) {
	sources := clicksSource + secondSource
	check(t, []findingCase{
		{"group", job{sources: sources, steps: "s: { from: [clicks, views], group_by: «value.ad_id», aggregate: { n: count() }, " + tumbling + ", to: out }"},
			"MR1110", "group_by of step s is string for one input and long for another", "make the inputs agree"},
		{"argument", job{sources: sources, steps: "s: { from: [clicks, views], group_by: value.user_id, aggregate: { n: «max(value.cost)» }, " + tumbling + ", to: out }"},
			"MR1110", "aggregate n of step s takes double from one input and string from another", "make the inputs agree"},
		{"select", job{sources: sources, steps: "s: { from: [clicks, views], select: { a: «value.ad_id», u: value.user_id }, to: out }"},
			"MR1110", "step s selects other types from its inputs: a string, u string and a long, u string", "make the expressions give the same types for all inputs"},
		{"keys", job{sources: clicksSource + "\n    views: { topic: views, key_format: long, fields: { user_id: string } }", steps: "«s»: { from: [clicks, views], select: { u: value.user_id }, to: out }"},
			"MR1110", "the keys of step s's inputs are string and long", "give the sources one key_format, or read them in steps of their own"},
	})
}

func TestWarningsAndNotes(t *testing.T) {
	grouped := "group_by: value.user_id, aggregate: { n: count() }, " + tumbling + ", to: out }"
	check(t, []findingCase{
		{"open source", job{sources: "«clicks»: { topic: c }", steps: "s: { from: clicks, where: value.n > 1, to: out }"}, "W1101", "source clicks declares no fields: a misspelt field is null instead of an error", "declare fields:"},
		{"no idle_timeout", job{sources: "«clicks»: { topic: c, key: value.user_id, fields: { user_id: string } }", steps: "s: { from: clicks, " + grouped}, "W1102",
			"source clicks has no idle_timeout: one silent partition holds the windows of step s open for ever", "add watermark: { idle_timeout: 30s }"},
		{"no idle_timeout before a repartition", job{sources: "«clicks»: { topic: c, key: value.ad_id, fields: { ad_id: string, user_id: string } }", steps: "f: { from: clicks, where: value.ad_id != nil }\n    s: { from: f, " + grouped}, "W1102",
			"source clicks has no idle_timeout: one silent partition holds the windows of step s open for ever", "add watermark: { idle_timeout: 30s }"},
		{"no idle_timeout, told once", job{sources: "«clicks»: { topic: c, key: value.user_id, fields: { user_id: string } }", steps: "s: { from: clicks, " + grouped + "\n    t: { from: clicks, " + grouped}, "W1102",
			"source clicks has no idle_timeout: one silent partition holds the windows of step s open for ever", "add watermark: { idle_timeout: 30s }"},
		{"unused source", job{sources: clicksSource + "\n    «views»: { topic: clicks }", sinks: "out: { topic: out }"}, "W1103", "source views is read by no step", "add it to a step's from:, or remove it"},
		{"unused sink", job{sinks: "out: { topic: out }\n    «spare»: { topic: spare }"}, "W1103", "sink spare is written by no step", "add it to a step's to:, or remove it"},
		{"repartition", job{steps: "«s»: { from: clicks, group_by: value.ad_id, aggregate: { n: count() }, " + tumbling + ", to: out }"}, "N1101", "step s repartitions: the key is value.user_id, group_by is value.ad_id", ""},
		{"undecided", job{sources: "clicks: { topic: c, fields: { user_id: string }, watermark: { idle_timeout: 1s } }", steps: "s: { from: clicks, group_by: «value.user_id», aggregate: { n: count() }, " + tumbling + ", to: out }"}, "N1102",
			"source clicks does not declare its key: at the first start the records of c tell whether step s must repartition", "write key: value.user_id on the source if that is its key"},
	})
}

// TestEverythingIsReportedAtOnce has one mistake at each level, and no finding that only follows from another.
func TestEverythingIsReportedAtOnce(t *testing.T) {
	_, found := load(t, job{
		sources: "clicks: { topic: c, fields: { user_id: string, cost: double }, timestamp: value.at }",
		steps: `bad: { from: clicks, group_by: value.user, aggregate: { n: count(), s: summ(value.cost) }, window: { type: hopping, size: 1m }, to: [out, nowhere] }
    behind: { from: bad, where: value.anything > 1, to: out }
    good: { from: clicks, group_by: key, aggregate: { n: count() }, window: { type: tumbling, size: 1m }, late: { policy: drop }, emit: final, having: value.m > 1, to: out }
    select: { from: clicks, select: { a: value.b, c: value.cost } }
    after: { from: select, where: value.a == 1 && value.d == 2, to: out }`,
	}.yaml(), nil)
	var got []string
	for _, f := range found {
		if f.Severity == topology.Error {
			got = append(got, f.Message)
		}
	}
	want := []string{
		"unknown field at in timestamp of source clicks",
		"unknown field user in group_by of step bad",
		"unknown aggregate summ in aggregate s of step bad",
		"step bad has a window and does not say what late records get",
		"hopping window of step bad has no advance",
		`step bad names sink "nowhere", which does not exist`,
		"unknown field m in having of step good",
		"unknown field b in select of step select",
		"unknown field d in where of step after",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	if !slices.IsSortedFunc(found, func(a, b topology.Finding) int {
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line - b.Pos.Line
		}
		return a.Pos.Col - b.Pos.Col
	}) {
		t.Errorf("the findings are not in reading order: %+v", found)
	}
}
