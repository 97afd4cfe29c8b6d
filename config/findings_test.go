package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what is found into the files of testdata/findings")

// TestFindings compares the report on malformed configurations with the one beside them: code, place, caret and hint.
func TestFindings(t *testing.T) {
	names, err := filepath.Glob("testdata/findings/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join(root, name))
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			write(t, "config.yaml", string(archive.Files[0].Data))
			_, list := Load(LoadOptions{Environ: nothingSet})
			if !HasErrors(list) {
				t.Error("no errors found")
			}
			got := render(t, list, Text)
			if *update {
				archive.Files = append(archive.Files[:1], txtar.File{Name: "findings", Data: []byte(got)})
				if err := os.WriteFile(filepath.Join(root, name), txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(archive.Files) < 2 {
				t.Fatalf("%s has no findings; run with -update and read what it writes", name)
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func nothingSet(string) (string, bool) { return "", false }

// environ is an environment of the given variables.
func environ(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
