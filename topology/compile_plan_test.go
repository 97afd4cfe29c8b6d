package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"millrace/topology"
)

// shape writes a plan as 0(input,…)[store,…] a subtopology.
func shape(p *topology.Plan) string {
	var subs []string
	for _, s := range p.Subtopologies {
		var inputs []string
		for _, in := range s.Inputs {
			inputs = append(inputs, in.Topic)
		}
		text := fmt.Sprintf("%d(%s)", s.Number, strings.Join(inputs, ","))
		if len(s.Stores) > 0 {
			text += "[" + strings.Join(s.Stores, ",") + "]"
		}
		subs = append(subs, text)
	}
	return strings.Join(subs, " ")
}

const (
	keyless = "clicks: { topic: clicks, fields: { ad_id: string, user_id: string, cost: double, n: long }, watermark: { idle_timeout: 1s } }"
	perUser = "group_by: value.user_id, aggregate: { n: count() }, " + tumbling
	perAd   = "group_by: value.ad_id, aggregate: { n: count() }, " + tumbling
)

func TestWhenAStepRepartitions(t *testing.T) {
	long := strings.Replace(keyless, "topic: clicks", "topic: clicks, key_format: long, key: value.n", 1)
	for _, c := range []struct {
		name  string
		job   job
		keyed map[string]bool
		want  string
	}{
		{"by the declared key", job{steps: "s: { from: clicks, " + perUser + ", to: out }"}, nil, "0(clicks)[s]"},
		{"by the declared key, with other spaces", job{steps: "s: { from: clicks, group_by: ' value.user_id ', aggregate: { n: count() }, " + tumbling + ", to: out }"}, nil, "0(clicks)[s]"},
		{"by another field", job{steps: "s: { from: clicks, " + perAd + ", to: out }"}, nil, "0(clicks) 1(app-s-repartition)[s]"},
		{"by the key itself", job{sources: keyless, steps: "s: { from: clicks, group_by: key, aggregate: { n: count() }, " + tumbling + ", to: out }"}, nil, "0(clicks)[s]"},
		{"by a key of eight bytes", job{sources: long, steps: "s: { from: clicks, group_by: value.n, aggregate: { c: count() }, " + tumbling + ", to: out }"}, nil, "0(clicks)[s]"},
		{"by the key and more", job{steps: "s: { from: clicks, group_by: [value.user_id, value.ad_id], aggregate: { n: count() }, " + tumbling + ", to: out }"}, nil, "0(clicks) 1(app-s-repartition)[s]"},
		{"not learnt yet", job{sources: keyless, steps: "s: { from: clicks, " + perUser + ", to: out }"}, nil, "0(clicks) 1(app-s-repartition)[s]"},
		{"learnt: it is the key", job{sources: keyless, steps: "s: { from: clicks, " + perUser + ", to: out }"}, map[string]bool{"s": true}, "0(clicks)[s]"},
		{"learnt: it is not", job{sources: keyless, steps: "s: { from: clicks, " + perUser + ", to: out }"}, map[string]bool{"s": false}, "0(clicks) 1(app-s-repartition)[s]"},
		{"behind a filter", job{steps: "f: { from: clicks, where: value.n > 1 }\n    s: { from: f, " + perUser + ", to: out }"}, nil, "0(clicks)[s]"},
		{"learnt behind a filter", job{sources: keyless, steps: "f: { from: clicks, where: value.n > 1 }\n    s: { from: f, " + perUser + ", to: out }"}, map[string]bool{"s": true}, "0(clicks)[s]"},
		{"behind a select that keeps the key", job{steps: "f: { from: clicks, select: { user_id: value.user_id } }\n    s: { from: f, " + perUser + ", to: out }"}, nil, "0(clicks)[s]"},
		{"behind a select that renames the key", job{steps: "f: { from: clicks, select: { who: value.user_id } }\n    s: { from: f, group_by: value.who, aggregate: { n: count() }, " + tumbling + ", to: out }"}, nil, "0(clicks)[s]"},
		{"behind a select that drops the key", job{steps: "f: { from: clicks, select: { ad_id: value.ad_id } }\n    s: { from: f, " + perAd + ", to: out }"}, nil, "0(clicks) 1(app-s-repartition)[s]"},
		{"behind a select that gives the key's name to another", job{steps: "f: { from: clicks, select: { user_id: value.ad_id, who: value.user_id } }\n    s: { from: f, " + perUser + ", to: out }"}, nil, "0(clicks) 1(app-s-repartition)[s]"},
		{"a chain by one key", job{steps: "a: { from: clicks, " + perUser + " }\n    b: { from: a, group_by: value.user_id, aggregate: { m: max(value.n) }, " + tumbling + ", to: out }"}, nil, "0(clicks)[a,b]"},
		{"a chain by another key", job{steps: "a: { from: clicks, " + perUser + " }\n    b: { from: a, group_by: value.n, aggregate: { m: count() }, " + tumbling + ", to: out }"}, nil, "0(clicks)[a] 1(app-b-repartition)[b]"},
		{"a chain written backwards", job{steps: "b: { from: a, group_by: value.n, aggregate: { m: count() }, " + tumbling + ", to: out }\n    a: { from: clicks, " + perAd + " }"}, nil, "0(clicks) 1(app-a-repartition)[a] 2(app-b-repartition)[b]"},
		{"two steps of one source", job{steps: "a: { from: clicks, " + perAd + ", to: out }\n    b: { from: clicks, " + perUser + ", to: out }"}, nil, "0(clicks)[b] 1(app-a-repartition)[a]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shape(plan(t, c.job, c.keyed)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSubtopologiesOfSeveralSources(t *testing.T) {
	views := "\n    views: { topic: views, key: value.user_id, fields: { ad_id: string, user_id: string, cost: double, n: long }, watermark: { idle_timeout: 1s } }"
	sources := clicksSource + views + strings.NewReplacer("views", "others", "key: value.user_id", "key: value.ad_id").Replace(views)
	for _, c := range []struct{ name, steps, want string }{
		{"apart", "a: { from: clicks, " + perUser + ", to: out }\n    b: { from: views, " + perUser + ", to: out }", "0(clicks)[a] 1(views)[b]"},
		{"merged by a select", "m: { from: [clicks, views], select: { u: value.user_id }, to: out }", "0(clicks,views)"},
		{"merged by a filter", "m: { from: [clicks, views], where: value.n > 0 }\n    s: { from: m, " + perUser + ", to: out }", "0(clicks,views)[s]"},
		{"merged by a group", "s: { from: [clicks, views], " + perUser + ", to: out }", "0(clicks,views)[s]"},
		{"merged by a select, keyed differently", "m: { from: [clicks, others], select: { user_id: value.user_id } }\n    s: { from: m, " + perUser + ", to: out }", "0(clicks,others) 1(app-s-repartition)[s]"},
		{"merged into one repartition topic", "s: { from: [clicks, views], " + perAd + ", to: out }", "0(clicks,views) 1(app-s-repartition)[s]"},
		{"merged behind their repartition topics", "a: { from: clicks, " + perAd + " }\n    b: { from: views, " + perAd + " }\n    m: { from: [a, b], select: { n: value.n }, to: out }",
			"0(clicks) 1(views) 2(app-a-repartition,app-b-repartition)[a,b]"},
		{"one unused", "a: { from: views, " + perUser + ", to: out }", "0(views)[a]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := plan(t, job{sources: sources, steps: c.steps}, nil)
			if got := shape(p); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := strings.Join(p.SourceTopics(), ","); !strings.Contains(c.want, "0("+got+")") && !strings.Contains(c.want, "1(") {
				t.Errorf("the job reads %s, and its subtopologies are %s", got, c.want)
			}
		})
	}
}

func TestQuestionsAboutKeys(t *testing.T) {
	views := "\n    views: { topic: views, fields: { ad_id: string, user_id: string }, watermark: { idle_timeout: 1s } }"
	for _, c := range []struct{ name, sources, steps, want string }{
		{"asked", keyless, "s: { from: clicks, " + perUser + ", to: out }", "s:clicks:value.user_id"},
		{"asked for each source", keyless + views, "s: { from: [clicks, views], " + perUser + ", to: out }", "s:clicks:value.user_id s:views:value.user_id"},
		{"asked beside a declared one", clicksSource + views, "s: { from: [clicks, views], " + perUser + ", to: out }", "s:views:value.user_id"},
		{"asked once a source, however its records come", keyless, "f: { from: clicks, where: value.n > 1 }\n    g: { from: clicks, where: value.n < 1 }\n    s: { from: [f, g], " + perUser + ", to: out }", "s:clicks:value.user_id s:clicks:value.user_id"},
		{"not asked where the answer would change nothing", clicksSource + views, "s: { from: [clicks, views], " + perAd + ", to: out }", ""},
		{"not asked about a declared key", clicksSource, "s: { from: clicks, " + perAd + ", to: out }", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, q := range plan(t, job{sources: c.sources, steps: c.steps}, nil).Unknown {
				got = append(got, fmt.Sprintf("%s:%s:%s", q.Step, q.Source, q.Expression))
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("asked %q, want %q", text, c.want)
			}
		})
	}
}

// TestFingerprint has a step and its variants: a store may be used again by exactly those that keep the fingerprint.
func TestFingerprint(t *testing.T) {
	const base = `s: { from: clicks, where: value.n > 1, group_by: { ad: value.ad_id }, window: { type: tumbling, size: 1m }, aggregate: { n: count(), c: sum(value.cost) },
      having: value.n > 1, select: { n: value.n }, emit: final, late: { policy: drop }, to: out }`
	of := func(steps, sources string) string {
		f := plan(t, job{steps: steps, sources: sources}, nil).Fingerprint("s")
		if f == "" {
			t.Fatal("no fingerprint")
		}
		return f
	}
	want := of(base, "")
	for _, c := range []struct {
		name, old, new string
		changes        bool
	}{
		{"emit", "emit: final", "emit: changes", false},
		{"corrections of tumbling windows", "emit: final", "emit: final_with_corrections", false},
		{"late", "late: { policy: drop }", "late: { to: late }", false},
		{"having", "having: value.n > 1", "having: value.n > 2", false},
		{"select", "select: { n: value.n }", "select: { m: value.n, c: value.c }", false},
		{"sinks", "to: out", "to: [out, late]", false},
		{"where", "where: value.n > 1", "where: value.n > 2", false},
		{"allowed lateness", "size: 1m }", "size: 1m, allowed_lateness: 30s }", false},
		{"name of the group's field", "{ ad: value.ad_id }", "{ advert: value.ad_id }", false},
		{"name of an aggregate", "c: sum", "total: sum", false},
		{"spaces", "sum(value.cost)", "sum( value.cost )", false},
		{"size as written", "size: 1m", "size: 60s", false},
		{"group", "value.ad_id", "value.user_id", true},
		{"a further group", "{ ad: value.ad_id }", "{ ad: value.ad_id, u: value.user_id }", true},
		{"size", "size: 1m", "size: 2m", true},
		{"offset", "size: 1m", "size: 1m, offset: 5s", true},
		{"kind", "type: tumbling, size: 1m", "type: hopping, size: 1m, advance: 30s", true},
		{"time zone", "size: 1m", "size: 24h, time_zone: Europe/Berlin", true},
		{"function", "sum(value.cost)", "max(value.cost)", true},
		{"argument", "sum(value.cost)", "sum(value.cost * 2)", true},
		{"order of aggregates", "n: count(), c: sum(value.cost)", "c: sum(value.cost), n: count()", true},
		{"a further aggregate", "n: count(),", "n: count(), m: max(value.n),", true},
		{"text within quotes", "sum(value.cost)", "'fold(\"a  b\", acc)'", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			steps := strings.Replace(base, c.old, c.new, 1)
			if steps == base {
				t.Fatalf("%q is not in the step", c.old)
			}
			if got := of(steps, ""); (got != want) != c.changes {
				t.Errorf("fingerprint changed: %v, want %v", got != want, c.changes)
			}
		})
	}
	for name, c := range map[string]struct {
		sources string
		changes bool
	}{
		"nullable":      {strings.Replace(clicksSource, "cost: double", `cost: "double|null"`, 1), false},
		"type":          {strings.Replace(clicksSource, "cost: double", "cost: decimal", 1), true},
		"declared key":  {strings.Replace(clicksSource, "key: value.user_id", "key: value.ad_id", 1), false},
		"topic's name":  {strings.Replace(clicksSource, "topic: clicks", "topic: clicks2", 1), false},
		"form of times": {strings.Replace(clicksSource, "at: timestamp_ms", "at: timestamp", 1), false},
	} {
		if got := of(base, c.sources); (got != want) != c.changes {
			t.Errorf("%s of the source: fingerprint changed: %v, want %v", name, got != want, c.changes)
		}
	}
	one := of(strings.Replace(base, "sum(value.cost)", `'fold("a  b", acc)'`, 1), "")
	if other := of(strings.Replace(base, "sum(value.cost)", `'fold("a b", acc)'`, 1), ""); one == other {
		t.Error("blanks within quotes are not told apart")
	}
}

// Hopping windows that correct their results keep rows by window instead of by slice.
func TestFingerprintOfSlicesChangesWithCorrections(t *testing.T) {
	of := func(emit string) string {
		return plan(t, job{steps: "s: { from: clicks, group_by: key, aggregate: { n: count() }, window: { type: hopping, size: 1m, advance: 20s }, late: { policy: drop }, emit: " + emit + ", to: out }"}, nil).Fingerprint("s")
	}
	if of("final") != of("changes") || of("final") == of("final_with_corrections") {
		t.Errorf("final %s, changes %s, final_with_corrections %s", of("final"), of("changes"), of("final_with_corrections"))
	}
}

func TestShapeIsWhatMembersMustShare(t *testing.T) {
	of := func(steps string) string { return plan(t, job{steps: steps}, nil).Shape() }
	base := of("s: { from: clicks, " + perUser + ", to: out }")
	if got := of("s: { from: clicks, " + perUser + ", having: value.n > 1, to: [out, late] }"); got != base {
		t.Error("another having and another sink made another shape")
	}
	for _, steps := range []string{"t: { from: clicks, " + perUser + ", to: out }", "s: { from: clicks, " + perAd + ", to: out }",
		"s: { from: clicks, " + strings.Replace(perUser, "size: 1m", "size: 2m", 1) + ", to: out }"} {
		if of(steps) == base {
			t.Errorf("%s has the shape of another job", steps)
		}
	}
}
