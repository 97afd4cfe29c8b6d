package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestExpand(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "from a file\n")
	variables := map[string]string{"A": "alpha", "EMPTY": "", "NESTED": "${env:A}", "YAML": "{ a: [1] }"}
	cases := []struct{ text, want, err string }{
		{"plain", "plain", ""},
		{"${env:A}", "alpha", ""},
		{"x-${env:A}-${env:A}", "x-alpha-alpha", ""},
		{"${env:NONE:-fallback}", "fallback", ""},
		{"${env:NONE:-}", "", ""},
		{"${env:NONE:-a:b-c}", "a:b-c", ""},
		{"${env:EMPTY:-fallback}", "fallback", ""},
		{"${env:EMPTY}", "", ""},
		{"${env:A:?needed}", "alpha", ""},
		{"${env:NESTED}", "${env:A}", ""},
		{"${env:YAML}", "{ a: [1] }", ""},
		{"${file:" + secret + "}", "from a file", ""},
		{"$$", "$", ""},
		{"$${env:A}", "${env:A}", ""},
		{"a$b $", "a$b $", ""},
		{"${env:NONE}", "", "environment variable NONE is not set"},
		{"${env:NONE:?say where}", "", "environment variable NONE is not set: say where"},
		{"${env:EMPTY:?say where}", "", "environment variable EMPTY is not set: say where"},
		{"${A}", "", "unknown reference ${A}: there are ${env:NAME} and ${file:/path}"},
		{"${env:}", "", `"" is not the name of an environment variable`},
		{"${env:A:+x}", "", "reference ${env:A:+x}: after the name comes :-default or :?message"},
		{"${env:A", "", "a reference ${ has no closing }"},
	}
	x := expander{lookup: environ(variables), found: &findings{}}
	for _, c := range cases {
		got, err := x.expand(c.text)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if got != c.want || message != c.err {
			t.Errorf("%s: %q, %q; want %q, %q", c.text, got, message, c.want, c.err)
		}
	}
}

func TestAReferenceToALargeFileIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(name, make([]byte, maxReferenceBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (expander{}).expand("${file:" + name + "}"); err == nil {
		t.Error("accepted")
	}
}

// TestExpressionsAndKeysAreNotExpanded makes sure that the environment cannot change what a job computes.
func TestExpressionsAndKeysAreNotExpanded(t *testing.T) {
	file := `
version: 1
application_id: ad-clicks
kafka: { bootstrap_servers: ["localhost:9092"] }
state: { dir: ./state }
topology:
  sources:
    clicks: { topic: "${env:TOPIC}", key: "value.${env:TOPIC}", timestamp: "${env:TOPIC}", fields: { "${env:TOPIC}": string } }
  steps:
    counts:
      from: "${env:FROM}"
      where: value.a == "${env:TOPIC}"
      group_by: "${env:TOPIC}"
      aggregate: { n: "sum(${env:TOPIC})" }
      having: "${env:TOPIC}"
      select: { x: "${env:TOPIC}" }
  sinks:
    out: { topic: out, key: "${env:TOPIC}", headers: { h: "${env:TOPIC}" } }
`
	c := mustLoad(t, LoadOptions{Environ: environ(map[string]string{"TOPIC": "expanded", "FROM": "clicks"})}, "config.yaml", file)
	source, step, sink := c.Spec.Sources[0], c.Spec.Steps[0], c.Spec.Sinks[0]
	if source.Topic.Value != "expanded" || step.From[0].Value != "clicks" {
		t.Errorf("topic %q, from %q are not expanded", source.Topic.Value, step.From[0].Value)
	}
	for what, text := range map[string]string{
		"key": source.Key.Value, "timestamp": source.Timestamp.Value, "field": source.Fields[0].Name.Value, "where": step.Where.Value,
		"group_by": step.GroupBy[0].Expr.Value, "aggregate": step.Aggregate[0].Expr.Value, "having": step.Having.Value,
		"select": step.Select[0].Expr.Value, "sink key": sink.Key.Value, "header": sink.Headers[0].Expr.Value,
	} {
		if text == "" || text == "expanded" || text == `value.a == "expanded"` {
			t.Errorf("%s is %q", what, text)
		}
	}
}
