package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"millrace/cli"
	"millrace/config"
	"millrace/observe"
)

var update = flag.Bool("update", false, "write the generated pages of docs/ anew")

// golden compares a page with what is in the repository, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s is out of date; `make docs` writes it", path)
	}
}

func TestConfigurationPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Settings\n\nWritten by `make docs` from the comments in `config/settings.go` and `config/kafka.go`; do not edit.\n\n" +
		"Everything of a job's file outside of `topology:` ([yaml.md](yaml.md)) and `tests:` ([testing.md](testing.md)) is a setting. A setting can come from\n" +
		"the files given with `-c`, from the environment variable beside it, or from `--set key=value`; the later of these wins. `millrace config show\n" +
		"--effective --origin` prints what is in effect and where it came from. Durations are written `100ms`, `15s`, `10m`, `24h`, `7d`; sizes `64MiB`,\n" +
		"`1GiB`, or a plain number of bytes. In values, `${env:NAME}`, `${env:NAME:-default}`, `${env:NAME:?message}` and `${file:/path}` are replaced;\n" +
		"`$$` writes a dollar sign. What they stand for is never read as YAML.\n")
	section := ""
	for _, o := range config.Reference() {
		if o.Doc == "" {
			t.Errorf("%s has no comment to make its entry from", o.Key)
		}
		if head, _, _ := strings.Cut(o.Key, "."); head != section && strings.Contains(o.Key, ".") {
			section = head
			fmt.Fprintf(&b, "\n## %s\n", section)
		} else if !strings.Contains(o.Key, ".") && section != "job" {
			section = "job"
			b.WriteString("\n## The job\n")
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", o.Key, inKeys(o))
		if len(o.Words) > 0 {
			fmt.Fprintf(&b, "- one of: `%s`\n", strings.Join(o.Words, "`, `"))
		}
		if o.Default != "" {
			fmt.Fprintf(&b, "- default: `%s`\n", o.Default)
		}
		fmt.Fprintf(&b, "- environment: `%s`\n", o.Env)
	}
	golden(t, "docs/configuration.md", b.String())
}

// inKeys is a setting's text as its reader knows it: a comment in Go begins with the field's name.
func inKeys(o config.Option) string {
	key := o.Key[strings.LastIndexByte(o.Key, '.')+1:]
	first, rest, _ := strings.Cut(o.Doc, " ")
	if strings.EqualFold(first, strings.ReplaceAll(key, "_", "")) {
		return "`" + key + "` " + rest
	}
	return o.Doc
}

func TestErrorsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Codes\n\nWritten by `make docs` from the tables in `config/codes.go`, `topology/check.go` and `observe/codes.go`; do not edit.\n\n" +
		"A code never changes its meaning. MR1 is the configuration, MR2 Kafka, MR3 state, MR4 processing, MR5 the process and its HTTP interface; W is a\n" +
		"warning and N a note about a configuration. The message beside a code names the file, line and column, or the step, topic and offset.\n\n" +
		"## Findings about a configuration\n\nErrors keep a job from starting; `millrace validate --deny-warnings` lets warnings fail, too.\n\n| Code | Meaning |\n|---|---|\n")
	for _, c := range findingCodes(t) {
		fmt.Fprintf(&b, "| %s | %s |\n", c.Code, c.Meaning)
	}
	b.WriteString("\n## A running replica\n\nIn the log these are the field `code`.\n")
	for _, c := range observe.Codes {
		fmt.Fprintf(&b, "\n### %s %s\n\n%s\n\nWhat to do: %s\n", c.ID, c.Title, c.Meaning, c.Action)
	}
	golden(t, "docs/errors.md", b.String())
}

// findingCodes are the codes of package config and, from its source, of package topology, in order.
func findingCodes(t *testing.T) []config.Code {
	t.Helper()
	codes := config.Codes()
	file, err := parser.ParseFile(token.NewFileSet(), "topology/check.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			if code, err := strconv.Unquote(lit.Value); err == nil && codePattern.MatchString(code) {
				codes = append(codes, config.Code{Code: code, Meaning: strings.TrimSpace(spec.Comment.Text())})
			}
		}
		return true
	})
	slices.SortFunc(codes, func(a, b config.Code) int { return strings.Compare(rank(a.Code), rank(b.Code)) })
	for i, c := range codes {
		if c.Meaning == "" || i > 0 && codes[i-1].Code == c.Code {
			t.Errorf("%s has no meaning, or two", c.Code)
		}
	}
	return codes
}

// rank sorts errors before warnings before notes.
func rank(code string) string {
	return strconv.Itoa(strings.Index("MWN", code[:1])) + code
}

var codePattern = regexp.MustCompile(`^(MR[1-9]\d{3}|[WN]\d{4})$`)

// TestEveryCodeIsDocumented looks for codes in the source that the page does not have.
func TestEveryCodeIsDocumented(t *testing.T) {
	page, err := os.ReadFile("docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		ast.Inspect(parse(t, path), func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if code, err := strconv.Unquote(lit.Value); err == nil && codePattern.MatchString(code) {
				if found++; !bytes.Contains(page, []byte(code)) {
					t.Errorf("%s uses %s, which docs/errors.md does not have: add it to observe/codes.go", path, code)
				}
			}
			return true
		})
	}
	if found == 0 {
		t.Error("no codes were found: the pattern is wrong")
	}
}

// block is a fenced block of a page.
type block struct {
	at   string // page:line
	info string // behind the language
	text string
}

var fence = regexp.MustCompile("(?m)^```yaml ?(.*)\n((?s:.*?))^```$")

func yamlBlocks(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	for _, m := range fence.FindAllSubmatchIndex(text, -1) {
		line := 1 + bytes.Count(text[:m[0]], []byte("\n"))
		blocks = append(blocks, block{fmt.Sprintf("%s:%d", page, line), string(text[m[2]:m[3]]), string(text[m[4]:m[5]])})
	}
	return blocks
}

func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// TestExamplesWork runs every YAML block of the documentation. A plain block is a whole job: it is validated, and its
// tests are run. `over=FILE` marks a part that is laid over a whole job, `kubernetes` a manifest, which is only parsed.
func TestExamplesWork(t *testing.T) {
	t.Setenv("KAFKA_USERNAME", "u")
	t.Setenv("KAFKA_PASSWORD", "p")
	jobs := 0
	for _, page := range pages(t) {
		for _, b := range yamlBlocks(t, page) {
			t.Run(b.at, func(t *testing.T) {
				var ignored any
				if err := yaml.Unmarshal([]byte(b.text), &ignored); err != nil {
					t.Fatal(err)
				}
				if b.info == "kubernetes" {
					return
				}
				jobs++
				file := filepath.Join(t.TempDir(), "example.yaml")
				if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
					t.Fatal(err)
				}
				files := []string{"-c", file}
				if base, ok := strings.CutPrefix(b.info, "over="); ok {
					files = []string{"-c", base, "-c", file}
				} else if b.info != "" {
					t.Fatalf("unknown mark %q", b.info)
				}
				run(t, append([]string{"validate"}, files...))
				if strings.Contains(b.text, "\ntests:") {
					run(t, append([]string{"test"}, files...))
				}
			})
		}
	}
	if jobs < 8 {
		t.Errorf("%d examples were found: the pattern is wrong", jobs)
	}
}

func run(t *testing.T, args []string) {
	t.Helper()
	var out bytes.Buffer
	if code := cli.Run(args, &out, &out); code != 0 {
		t.Errorf("millrace %s: exit code %d\n%s", args[0], code, &out)
	}
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// TestLinksLeadSomewhere checks the links between pages, and the paths of files that a page names.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			target := string(m[1])
			if strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), target)); err != nil {
				t.Errorf("%s links to %s: %v", page, target, err)
			}
		}
		if page != "ARCHITECTURE.md" {
			continue
		}
		for _, m := range sourcePath.FindAllSubmatch(text, -1) {
			if _, err := os.Stat(string(m[1])); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
	}
}

var sourcePath = regexp.MustCompile("`([a-z]+/[a-z_/]+\\.go)`")

// goFiles lists the Go files of the repository.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			files = append(files, filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("%d Go files were found", len(files))
	}
	return files
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
