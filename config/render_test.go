package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"millrace/topology"
)

func TestGitHubEscapesWhatWouldEndACommand(t *testing.T) {
	list := []topology.Finding{{Severity: topology.Warning, Code: "W1", Pos: topology.Pos{File: "a,b:c.yaml", Line: 2, Col: 3}, Message: "50%\nnext", Hint: "do"}}
	want := "::warning title=W1,file=a%2Cb%3Ac.yaml,line=2,col=3::50%25%0Anext%0Ado\n"
	if diff := cmp.Diff(want, render(t, list, GitHub)); diff != "" {
		t.Error(diff)
	}
}

func TestJSONOfNothingIsAnEmptyList(t *testing.T) {
	var got struct{ Findings []any }
	if err := json.Unmarshal([]byte(render(t, nil, JSON)), &got); err != nil || got.Findings == nil || len(got.Findings) != 0 {
		t.Errorf("got %v, %v", got.Findings, err)
	}
}

func TestTextIsOneLineWhateverTheMessageHolds(t *testing.T) {
	list := []topology.Finding{{Code: "MR1", Message: "a\x1b[31m\nconfig.yaml:1:1: error"}}
	if got := render(t, list, Text); strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") {
		t.Errorf("got %q", got)
	}
}

func TestLongLinesAreCutAroundTheFinding(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "config.yaml", "x: ["+strings.Repeat("1, ", 1000)+"here]\n")
	got := render(t, []topology.Finding{{Code: "MR1", Pos: topology.Pos{File: "config.yaml", Line: 1, Col: 3005}, Len: 4, Message: "m"}}, Text)
	lines := strings.Split(got, "\n")
	if len(lines[1]) > 200 {
		t.Fatalf("line of %d characters", len(lines[1]))
	}
	if at := strings.Index(lines[2], "^^^^"); at < 0 || !strings.HasPrefix(lines[1][at:], "here") {
		t.Errorf("carets do not point at the finding:\n%s", got)
	}
}

func render(t *testing.T, list []topology.Finding, format Format) string {
	t.Helper()
	var out strings.Builder
	if err := Render(&out, list, format); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
