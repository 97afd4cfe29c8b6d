package config

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"millrace/topology"
)

// DefaultFile is read when no file is named.
const DefaultFile = "config.yaml"

// LoadOptions says where a job's configuration comes from.
type LoadOptions struct {
	Files   []string                         // YAML files, later ones laid over earlier ones; none: DefaultFile
	Sets    []string                         // key=value, as --set takes them; stronger than everything else
	Environ func(name string) (string, bool) // nil: the process's environment
}

// Config is a job's configuration, complete with its defaults.
type Config struct {
	Settings Settings
	Spec     topology.Spec
	Tests    []Test
	Files    []string

	origins map[string]Origin // by key of the setting
	tree    *node             // the merged files
}

// Load reads a job and returns everything that is wrong with it at once, in the order of the files. The Config is nil when a
// file could not be read at all; with other errors it holds what could be understood, good for further checks but
// not for running: see HasErrors.
func Load(opts LoadOptions) (*Config, []topology.Finding) {
	if len(opts.Files) == 0 {
		opts.Files = []string{DefaultFile}
	}
	if opts.Environ == nil {
		opts.Environ = os.LookupEnv
	}
	found := &findings{}
	tree := readAll(opts.Files, found)
	if tree == nil {
		return nil, found.sorted(opts.Files)
	}
	c := &Config{Files: opts.Files, tree: tree}
	x := expander{lookup: opts.Environ, found: found}
	l := settingsLoader{tree: tree, expander: x, sets: opts.Sets, file: opts.Files[0]}
	c.Settings, c.origins = l.load()

	d := decoder{expander: x}
	if t := tree.get("topology"); t == nil {
		found.errorAt(topology.Pos{File: opts.Files[0]}, codeMissing, "topology: is missing: the job has nothing to do", "write sources, steps and sinks under topology:")
	} else {
		c.Spec = d.topology(t)
	}
	c.Spec.ApplicationID = c.Settings.ApplicationID
	c.Spec.Errors = c.errorSpec()
	for i := range c.Spec.Sources {
		if start := &c.Spec.Sources[i].Start; start.Value == "" {
			start.Value = c.Settings.Kafka.Consumer.AutoOffsetReset
		}
	}
	if t := tree.get("tests"); t != nil {
		c.Tests = testDecoder{found: found}.tests(t)
	}
	return c, found.sorted(opts.Files)
}

// LoadTests reads files that hold nothing but `tests:`.
func LoadTests(files []string) ([]Test, []topology.Finding) {
	found := &findings{}
	var tests []Test
	for _, name := range files {
		tree, _ := readFile(name, found)
		if tree == nil {
			continue
		}
		for _, e := range tree.entries {
			if e.key.text != "tests" && !isExtension(e.key.text) {
				found.at(e.key, codeUnknownKey, "unknown key \""+e.key.text+"\" in a file of tests", "it holds tests: only; the job is named with -c")
			}
		}
		if t := tree.get("tests"); t != nil {
			tests = append(tests, testDecoder{found: found}.tests(t)...)
		} else {
			found.errorAt(topology.Pos{File: name, Line: 1, Col: 1}, codeMissing, "tests: is missing", "")
		}
	}
	return tests, found.sorted(files)
}

// readAll reads every file and lays them over each other. It returns nil when one of them is unusable: a job
// without one of its layers would be another job.
func readAll(files []string, found *findings) *node {
	var tree *node
	complete := true
	for _, name := range files {
		layer, _ := readFile(name, found)
		if layer == nil {
			complete = false
			continue
		}
		tree = merge(tree, layer)
	}
	if !complete {
		return nil
	}
	return tree
}

// isExtension tells whether a top-level key is there for anchors only.
func isExtension(key string) bool { return strings.HasPrefix(key, "x-") }

// sorted returns the findings in reading order: by file as they were named, then by line and column. What
// has no place in a file comes last.
func (f *findings) sorted(files []string) []topology.Finding {
	rank := func(p topology.Pos) int {
		if i := slices.Index(files, p.File); i >= 0 {
			return i
		}
		return len(files)
	}
	slices.SortStableFunc(f.list, func(a, b topology.Finding) int {
		return cmp.Or(cmp.Compare(rank(a.Pos), rank(b.Pos)), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	return f.list
}

// errorSpec hands the error policies on with the places where they were written.
func (c *Config) errorSpec() topology.ErrorSpec {
	text := func(key, value string) topology.Text {
		return topology.Text{Value: value, Pos: c.origins[key].Pos}
	}
	e := c.Settings.Errors
	return topology.ErrorSpec{
		Deserialization: text("errors.deserialization", e.Deserialization),
		Processing:      text("errors.processing", e.Processing),
		Production:      text("errors.production", e.Production),
		DeadLetterTopic: text("errors.dead_letter_topic", e.DeadLetterTopic),
	}
}
