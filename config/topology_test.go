package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"millrace/record"
	"millrace/topology"
)

const everything = `version: 1
application_id: everything
kafka: { bootstrap_servers: ["localhost:9092"] }
state: { dir: ./state }
topology:
  sources:
    clicks:
      topic: ad.clicks
      format: json
      key_format: string
      key: value.user_id
      fields: { adID: string, cost: "double|null", at: timestamp_ms, seen: timestamp, extra: any }
      timestamp: value.at
      start: latest
      watermark: { max_out_of_orderness: 15s, idle_timeout: 30s, max_future: 1h, advance_on_idle: true }
      invalid_timestamp: dead_letter
    alerts: { topic: alerts }
  steps:
    counts:
      from: [clicks, alerts]
      where: value.cost > 0
      group_by: { ad: value.adID, hour: value.at.Hour() }
      window: { type: hopping, size: 1h, advance: 10m, offset: -1h, time_zone: Europe/Paris, allowed_lateness: 30s }
      aggregate: { n: count(), sum: sum(value.cost) }
      ttl: 7d
      having: value.n > 1
      select: { adID: key, n: value.n }
      emit: changes
      late: { to: late }
      to: [out, late]
    all: { from: clicks, group_by: [value.adID, key], ttl: forever, select: "*", late: { policy: drop }, to: out }
    one: { from: clicks, group_by: value.adID }
  sinks:
    out: { topic: out, format: json, key: value.adID, key_with_window: true, mode: upsert, headers: { h: value.n }, timestamp_format: rfc3339 }
    late: { topic: late }
`

// text is a scalar without its place.
func text(value string) topology.Text { return topology.Text{Value: value} }

func span(d time.Duration) topology.Span { return topology.Span{Value: d, Set: true} }

func named(name, expr string) topology.Named {
	return topology.Named{Name: text(name), Expr: text(expr)}
}

func TestTheWholeTopologyIsDecoded(t *testing.T) {
	want := topology.Spec{
		ApplicationID: "everything",
		Sources: []topology.SourceSpec{
			{
				Name: text("clicks"), Topic: text("ad.clicks"), Format: text("json"), KeyFormat: text("string"), Key: text("value.user_id"),
				Fields: []topology.FieldSpec{
					{Name: text("adID"), Type: record.Type{Kind: record.String}},
					{Name: text("cost"), Type: record.Type{Kind: record.Double, Nullable: true}},
					{Name: text("at"), Type: record.Type{Kind: record.Time, Form: record.EpochMillis}},
					{Name: text("seen"), Type: record.Type{Kind: record.Time, Form: record.RFC3339}},
					{Name: text("extra"), Type: record.Type{Any: true}},
				},
				Timestamp: text("value.at"), Start: text("latest"), InvalidTimestamp: text("dead_letter"),
				Watermark: topology.WatermarkSpec{MaxOutOfOrderness: span(15 * time.Second), IdleTimeout: span(30 * time.Second), MaxFuture: span(time.Hour), AdvanceOnIdle: true},
			},
			{Name: text("alerts"), Topic: text("alerts"), Start: text("earliest")}, // kafka.consumer.auto_offset_reset
		},
		Steps: []topology.StepSpec{
			{
				Name: text("counts"), From: []topology.Text{text("clicks"), text("alerts")}, Where: text("value.cost > 0"),
				GroupBy: []topology.Named{named("ad", "value.adID"), named("hour", "value.at.Hour()")},
				Window: &topology.WindowSpec{Type: text("hopping"), Size: span(time.Hour), Advance: span(10 * time.Minute), Offset: span(-time.Hour),
					TimeZone: text("Europe/Paris"), AllowedLateness: span(30 * time.Second)},
				Aggregate: []topology.Named{named("n", "count()"), named("sum", "sum(value.cost)")}, TTL: span(7 * 24 * time.Hour),
				Having: text("value.n > 1"), Select: []topology.Named{named("adID", "key"), named("n", "value.n")}, Emit: text("changes"),
				Late: &topology.LateSpec{To: text("late")}, To: []topology.Text{text("out"), text("late")},
			},
			{
				Name: text("all"), From: []topology.Text{text("clicks")}, GroupBy: []topology.Named{named("adID", "value.adID"), named("key", "key")},
				TTL: topology.Span{Set: true, Forever: true}, SelectAll: true, Late: &topology.LateSpec{Policy: text("drop")}, To: []topology.Text{text("out")},
			},
			{Name: text("one"), From: []topology.Text{text("clicks")}, GroupBy: []topology.Named{named("adID", "value.adID")}},
		},
		Sinks: []topology.SinkSpec{
			{Name: text("out"), Topic: text("out"), Format: text("json"), Key: text("value.adID"), KeyWithWindow: true, Mode: text("upsert"),
				Headers: []topology.Named{named("h", "value.n")}, TimestampFormat: text("rfc3339")},
			{Name: text("late"), Topic: text("late")},
		},
		Errors: topology.ErrorSpec{Deserialization: text("fail"), Processing: text("fail"), Production: text("fail")},
	}
	got := mustLoad(t, LoadOptions{}, "config.yaml", everything).Spec
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(topology.Pos{})); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// TestEveryTextKnowsItsPlace looks each text up in the file at the place that it claims.
func TestEveryTextKnowsItsPlace(t *testing.T) {
	spec := mustLoad(t, LoadOptions{}, "config.yaml", everything).Spec
	lines := strings.Split(everything, "\n")
	seen := 0
	cmp.Equal(spec, spec, cmp.FilterValues(func(a, _ topology.Text) bool {
		if a.Value == "" || a.Pos.Line == 0 {
			return false
		}
		seen++
		if rest := lines[a.Pos.Line-1][a.Pos.Col-1:]; !strings.HasPrefix(rest, a.Value) {
			t.Errorf("%q is not at %v: %q", a.Value, a.Pos, rest)
		}
		return false
	}, cmp.Ignore()))
	if seen < 60 {
		t.Errorf("only %d texts were looked at", seen)
	}
}

func TestPlaceOfAnExpressionHoweverItIsWritten(t *testing.T) {
	for name, written := range map[string]string{
		"plain":         `where: value.a == 1`,
		"double quoted": `where: "value.a == 1"`,
		"single quoted": `where:   'value.a == 1'`,
		"anchored":      `where: &cond value.a == 1`,
		"tagged":        `where: !!str "value.a == 1"`,
		"both":          `where: !!str &cond 'value.a == 1'`,
		"literal":       "where: |-\n\n        value.a == 1",
		"folded":        "where: >-\n        value.a == 1",
		"next line":     "where:\n        value.a == 1",
		"after ü":       `"where": value.a == 1 # ü`,
	} {
		file := minimal + "  steps:\n    s:\n      from: clicks\n      " + written + "\n"
		c := mustLoad(t, LoadOptions{}, "config.yaml", file)
		where := c.Spec.Steps[0].Where
		line := strings.Split(file, "\n")[where.Pos.Line-1]
		if strings.TrimSpace(where.Value) != "value.a == 1" || !strings.HasPrefix(line[where.Pos.Col-1:], "value.a == 1") {
			t.Errorf("%s: %q at %v of %q", name, where.Value, where.Pos, line)
		}
	}
}

func TestAnchorsAndMergeKeys(t *testing.T) {
	file := `x-fields: &fields { a: string, b: long }
x-source: &source
  topic: base
  fields: { <<: *fields, b: double }
` + strings.Replace(minimal, "clicks: { topic: ad.clicks }", "clicks: { <<: *source, format: json }", 1)
	s := mustLoad(t, LoadOptions{}, "config.yaml", file).Spec.Sources[0]
	got := fmt.Sprintf("%s %s", s.Topic.Value, s.Format.Value)
	for _, f := range s.Fields {
		got += fmt.Sprintf(" %s:%s", f.Name.Value, f.Type)
	}
	if want := "base json b:double a:string"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
