package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport is who knows whom. A package's subpackages belong to it. Whatever is not in the table may not exist; cli and
// main, which wire, may import everything.
var mayImport = map[string][]string{
	"record":    {},
	"crash":     {},
	"codec":     {"record"},
	"topology":  {"record"},
	"formats":   {"record", "codec", "topology"},
	"store":     {"record"},
	"changelog": {"record"},
	"eos":       {"record", "changelog"},
	"task":      {"record", "topology", "store", "changelog", "eos"},
	"rebalance": {"record", "topology", "store", "eos", "task"},
	"kafka":     {"record", "eos"},
	"config":    {"record", "topology"},
	"observe":   {"record"},
	"devbroker": {"record"},
	"driver":    {"record", "topology", "store", "changelog", "eos", "task"},
	"e2e":       nil,
	"bench":     nil,
	"cli":       nil,
	"main":      nil,
}

// anyone may import these: a leaf that only tests act on.
var anyone = []string{"crash"}

// onlyImporter keeps each library behind one package, so that it can be exchanged, and its dangers are in one place.
var onlyImporter = map[string]string{
	"github.com/IBM/sarama":               "kafka",
	"github.com/dgraph-io/badger/v4":      "store",
	"github.com/spf13/viper":              "config",
	"github.com/twmb/franz-go/pkg/kfake":  "devbroker",
	"github.com/prometheus/client_golang": "observe",
	"go.uber.org/zap":                     "observe",
	"github.com/expr-lang/expr":           "topology",
}

const (
	fileLines     = 400
	testFileLines = 600
	functionLines = 70
	parameters    = 5
)

// packageOf is the first folder of a path.
func packageOf(file string) string {
	first, _, nested := strings.Cut(file, "/")
	if !nested {
		return "main"
	}
	return first
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, file := range goFiles(t) {
		from := packageOf(file)
		allowed, known := mayImport[from]
		if !known {
			t.Errorf("%s: package %s is not in the table of tidy_test.go", file, from)
			continue
		}
		test := strings.HasSuffix(file, "_test.go")
		for _, spec := range parse(t, file).Imports {
			name, _ := strconv.Unquote(spec.Path.Value) // the parser has read it as a string
			if ours, ok := strings.CutPrefix(name, "millrace/"); ok {
				to := packageOf(ours + "/")
				if !test && allowed != nil && to != from && !slices.Contains(allowed, to) && !slices.Contains(anyone, to) {
					t.Errorf("%s: %s may not import %s", file, from, to)
				}
				continue
			}
			for library, only := range onlyImporter {
				if (name == library || strings.HasPrefix(name, library+"/")) && from != only && !test {
					t.Errorf("%s imports %s, which only %s may", file, library, only)
				}
			}
		}
	}
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, file := range goFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		most := fileLines
		if strings.HasSuffix(file, "_test.go") {
			most = testFileLines
		}
		if n := bytes.Count(text, []byte("\n")); n > most {
			t.Errorf("%s has %d lines, more than %d: split it by idea", file, n, most)
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			at := set.Position(f.Pos())
			if n := set.Position(f.End()).Line - at.Line + 1; n > functionLines {
				t.Errorf("%s: %s has %d lines, more than %d", at, f.Name.Name, n, functionLines)
			}
			if n := f.Type.Params.NumFields(); n > parameters {
				t.Errorf("%s: %s has %d parameters, more than %d", at, f.Name.Name, n, parameters)
			}
		}
	}
}

func TestPackagesHaveNamesAndComments(t *testing.T) {
	documented := map[string]bool{}
	for _, file := range goFiles(t) {
		parsed := parse(t, file)
		dir := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if name := parsed.Name.Name; slices.Contains([]string{"util", "utils", "common", "types", "helpers", "misc"}, name) {
			t.Errorf("%s: package %s says nothing about what is in it", file, name)
		}
		documented[dir] = documented[dir] || parsed.Doc.Text() != ""
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment", dir)
		}
	}
}

// A test that sleeps is slow on a good day and wrong on a bad one.
func TestTestsDoNotSleep(t *testing.T) {
	for _, file := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Sleep" {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					t.Errorf("%s sleeps: wait for what should happen", file)
				}
			}
			return true
		})
	}
}

// Half-finished work is not committed.
func TestNothingIsLeftForLater(t *testing.T) {
	marks := []string{"TO" + "DO", "FIX" + "ME", "X" + "XX"}
	for _, file := range goFiles(t) {
		for _, group := range parse(t, file).Comments {
			for _, mark := range marks {
				if strings.Contains(group.Text(), mark) {
					t.Errorf("%s has a %s", file, mark)
				}
			}
		}
	}
}
