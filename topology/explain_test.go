package topology_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"millrace/config"
	"millrace/topology"
)

var updateExplain = flag.Bool("update-explain", false, "write what Explain says into the files of testdata/explain")

// TestExplain compares all that Explain says of a job with what stands beside the job.
func TestExplain(t *testing.T) {
	names, err := filepath.Glob("testdata/explain/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := explainAll(t, archive.Files[0].Data)
			if *updateExplain {
				archive.Files = append(archive.Files[:1], got...)
				if err := os.WriteFile(name, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(&txtar.Archive{Files: archive.Files[1:]})), string(txtar.Format(&txtar.Archive{Files: got}))); diff != "" {
				t.Errorf("explanation (-want +got), see -update-explain:\n%s", diff)
			}
		})
	}
}

func explainAll(t *testing.T, yaml []byte) []txtar.File {
	t.Helper()
	p, o := explained(t, yaml)
	var files []txtar.File
	for _, format := range topology.ExplainFormats {
		text, err := p.Explain(format, o)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, txtar.File{Name: format, Data: []byte(text)})
	}
	o.ACLs = true
	text, err := p.Explain("text", o)
	if err != nil {
		t.Fatal(err)
	}
	return append(files, txtar.File{Name: "acls", Data: []byte(text)})
}

func explained(t *testing.T, yaml []byte) (*topology.Plan, topology.ExplainOptions) {
	t.Helper()
	p, found := load(t, string(yaml), nil)
	if p == nil {
		t.Fatalf("findings: %+v", found)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, yaml, 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := config.Load(config.LoadOptions{Files: []string{file}, Environ: func(string) (string, bool) { return "", false }})
	return p, topology.ExplainOptions{Guarantee: c.Settings.Processing.Guarantee, CommitInterval: c.Settings.Processing.CommitInterval}
}

func TestExplainRefusesWhatItCannotShow(t *testing.T) {
	p := plan(t, job{}, nil)
	if _, err := p.Explain("svg", topology.ExplainOptions{}); err == nil || !strings.Contains(err.Error(), "text, json, mermaid, dot") {
		t.Errorf("format svg: %v", err)
	}
	for _, format := range []string{"mermaid", "dot"} {
		if _, err := p.Explain(format, topology.ExplainOptions{ACLs: true}); err == nil {
			t.Errorf("%s showed permissions", format)
		}
	}
}

// What users write goes into the labels of diagrams, where it must not end a string or start a tag.
func TestLabelsOfDiagramsAreQuoted(t *testing.T) {
	p := plan(t, job{steps: `s: { from: clicks, group_by: { g: 'value.n > 1 ? "a<b>" : "c\\d#"' }, aggregate: { n: count() }, ` + tumbling + ", to: out }"}, nil)
	for format, want := range map[string]string{
		"mermaid": `value.n #gt; 1 ? #quot;a#lt;b#gt;#quot; : #quot;c\\d#35;#quot;`,
		"dot":     `value.n > 1 ? \"a<b>\" : \"c\\\\d#\"`,
	} {
		text, err := p.Explain(format, topology.ExplainOptions{})
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%s does not contain %s: %v\n%s", format, want, err, text)
		}
	}
}

func TestExplanationIsTheSameEveryTime(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/explain/everything.txtar")
	if err != nil {
		t.Fatal(err)
	}
	first := ""
	for range 20 {
		p, o := explained(t, archive.Files[0].Data)
		text, err := p.Explain("json", o)
		if err != nil || !json.Valid([]byte(text)) {
			t.Fatalf("no JSON: %v", err)
		}
		if first == "" {
			first = text
		} else if text != first {
			t.Fatalf("two explanations of one job differ:\n%s", cmp.Diff(first, text))
		}
	}
}
