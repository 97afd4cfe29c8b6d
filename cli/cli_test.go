package cli

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"millrace/topology"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"millrace": func() { os.Exit(Run(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the command lines of testdata as users would; -update is not offered, so that each expected line is written by hand.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata"})
}

func TestTheSecondErrorAboutOnePlaceIsLeftOut(t *testing.T) {
	at := func(line int, severity topology.Severity, code string) topology.Finding {
		return topology.Finding{Severity: severity, Code: code, Pos: topology.Pos{File: "c", Line: line, Col: 1}}
	}
	form := []topology.Finding{at(1, topology.Error, "a"), at(2, topology.Warning, "b"), at(0, topology.Error, "c")}
	meaning := []topology.Finding{at(1, topology.Error, "d"), at(1, topology.Note, "e"), at(2, topology.Error, "f"), at(0, topology.Error, "g")}
	got := ""
	for _, f := range combine(form, meaning) {
		got += f.Code
	}
	if want := "abcefg"; got != want {
		t.Errorf("findings %s, want %s", got, want)
	}
}
