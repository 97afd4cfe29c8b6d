package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"millrace/topology"
)

// The bounds of a configuration file. Aliases are what makes the number of nodes grow beyond the text: nine
// levels of nine aliases each are a page of text and a billion nodes.
const (
	maxFileBytes = 1 << 20
	maxNodes     = 100_000
	maxDepth     = 64
)

// source is a configuration file's text: excerpts and columns come from it.
type source struct {
	name  string
	lines []string
}

// readFile reads and parses one file. The node is nil when nothing usable came out of it.
func readFile(name string, found *findings) (*node, *source) {
	text, err := readBounded(name, maxFileBytes)
	switch {
	case errors.Is(err, errTooLong):
		found.errorAt(topology.Pos{File: name, Line: 1, Col: 1}, codeTooBig,
			"the file is larger than 1 MiB", "a job is a page or two; are you pointing at the right file?")
		return nil, nil
	case err != nil:
		found.errorAt(topology.Pos{File: name}, codeUnreadable, err.Error(), "name the file with -c FILE")
		return nil, nil
	}
	return parseText(name, text, found)
}

func parseText(name string, text []byte, found *findings) (*node, *source) {
	src := &source{name: name, lines: strings.Split(string(text), "\n")}
	root, err := parseYAML(text)
	if err != nil {
		pos, message := syntaxError(name, err)
		found.errorAt(pos, codeSyntax, message, "")
		return nil, src
	}
	if root == nil || root.Kind == 0 {
		found.errorAt(topology.Pos{File: name, Line: 1, Col: 1}, codeSyntax, "the file is empty", "")
		return nil, src
	}
	c := converter{src: src, found: found}
	tree := c.convert(root.Content[0], 0)
	if c.overflow {
		return nil, src
	}
	if tree.shape != mapNode {
		found.at(tree, codeShape, "the file is "+shapeNames[tree.shape]+", not a map of keys", "")
		return nil, src
	}
	return tree, src
}

// parseYAML reads the single document of a file.
func parseYAML(text []byte) (root *yaml.Node, err error) {
	// The parser is not ours, and whoever wrote the file deserves a finding rather than a stack trace.
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fmt.Errorf("not valid YAML: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	first, second := new(yaml.Node), new(yaml.Node)
	if err := dec.Decode(first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	switch err := dec.Decode(second); {
	case err == nil && second.Kind != 0:
		return nil, fmt.Errorf("line %d: a second document begins here; a file holds one", max(second.Line, 1))
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	}
	return first, nil
}

var lineOfError = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(?s:(.*))$`)

func syntaxError(name string, err error) (topology.Pos, string) {
	parts := lineOfError.FindStringSubmatch(err.Error())
	line, convErr := strconv.Atoi(parts[1])
	if convErr != nil {
		line = 1 // the parser leaves the number out for the first line
	} else if strings.HasPrefix(parts[2], "did not find expected") {
		line++ // of its two stages only the first counts lines from 1
	}
	return topology.Pos{File: name, Line: line, Col: 1}, parts[2]
}

// converter turns the parser's nodes into ours and refuses what has no meaning here: duplicate keys, keys that
// are not text, and documents whose aliases blow up.
type converter struct {
	src      *source
	found    *findings
	nodes    int
	overflow bool
	alias    *yaml.Node // the outermost one that is being followed
}

func (c *converter) convert(y *yaml.Node, depth int) *node {
	if y.Kind == yaml.AliasNode {
		if c.alias == nil {
			c.alias = y
			defer func() { c.alias = nil }()
		}
		y = y.Alias
	}
	n := &node{pos: topology.Pos{File: c.src.name, Line: y.Line, Col: y.Column}, tag: y.ShortTag()}
	if c.nodes++; c.nodes > maxNodes || depth > maxDepth {
		if !c.overflow {
			c.overflow = true
			where := y
			if c.alias != nil {
				where = c.alias
			}
			c.found.errorAt(topology.Pos{File: c.src.name, Line: where.Line, Col: where.Column}, codeTooBig, fmt.Sprintf("the file has more than %d levels, or its aliases expand to more than %d nodes",
				maxDepth, maxNodes), "anchors that contain each other multiply")
		}
		return n
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.shape = mapNode
		c.convertMap(n, y, depth)
	case yaml.SequenceNode:
		n.shape = listNode
		for _, item := range y.Content {
			n.items = append(n.items, c.convert(item, depth+1))
			if c.overflow {
				break
			}
		}
	default:
		n.text, n.raw = y.Value, y.Value
		c.src.place(n, y)
	}
	return n
}

func (c *converter) convertMap(n *node, y *yaml.Node, depth int) {
	var merges []*node
	seen := make(map[string]topology.Pos, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content) && !c.overflow; i += 2 {
		key, value := c.convert(y.Content[i], depth+1), c.convert(y.Content[i+1], depth+1)
		if key.tag == "!!merge" {
			merges = append(merges, value)
			continue
		}
		if key.shape != scalarNode || key.isNull() {
			c.found.at(key, codeShape, "a key must be plain text", "")
			continue
		}
		if first, ok := seen[key.text]; ok {
			c.found.at(key, codeDuplicateKey, fmt.Sprintf("key %q is written twice in this map", key.text),
				fmt.Sprintf("the first one is on line %d", first.Line))
			continue
		}
		seen[key.text] = key.pos
		n.entries = append(n.entries, entry{key, value})
	}
	for _, m := range merges {
		c.applyMerge(n, m)
	}
}

// applyMerge adds what `<<:` refers to; keys that the map writes itself win.
func (c *converter) applyMerge(n, from *node) {
	switch from.shape {
	case mapNode:
		for _, e := range from.entries {
			if n.index(e.key.text) < 0 {
				n.entries = append(n.entries, e)
			}
		}
	case listNode:
		for _, item := range from.items {
			if item.shape != mapNode {
				c.found.at(item, codeShape, "<<: merges maps only", "")
				continue
			}
			c.applyMerge(n, item)
		}
	default:
		c.found.at(from, codeShape, "<<: merges maps only", "")
	}
}

// place finds a scalar's text in the file: after its anchor and tag, after the opening quote, and for block scalars on
// the first line below the indicator.
func (s *source) place(n *node, y *yaml.Node) {
	n.width = utf8.RuneCountInString(n.text)
	if i := strings.IndexByte(n.text, '\n'); i >= 0 {
		n.width = utf8.RuneCountInString(n.text[:i])
	}
	if y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		s.placeBlock(n)
		return
	}
	rest := []rune(s.line(n.pos.Line))
	if n.pos.Col < 1 || n.pos.Col-1 > len(rest) {
		return // built by us, not read from a file
	}
	rest = rest[n.pos.Col-1:]
	for len(rest) > 0 && (rest[0] == '&' || rest[0] == '!') {
		i := 0
		for i < len(rest) && rest[i] != ' ' && rest[i] != '\t' {
			i++
		}
		for i < len(rest) && (rest[i] == ' ' || rest[i] == '\t') {
			i++
		}
		n.pos.Col += i
		rest = rest[i:]
	}
	if len(rest) > 0 && y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		n.pos.Col++
	}
}

func (s *source) placeBlock(n *node) {
	for line := n.pos.Line + 1; line <= len(s.lines); line++ {
		if text := s.line(line); strings.TrimSpace(text) != "" {
			n.pos.Line, n.pos.Col = line, 1+len(text)-len(strings.TrimLeft(text, " "))
			return
		}
	}
}

// line returns a line of the text, counted from 1; beyond the end it is empty.
func (s *source) line(number int) string {
	if number < 1 || number > len(s.lines) {
		return ""
	}
	return strings.TrimSuffix(s.lines[number-1], "\r")
}

var errTooLong = errors.New("longer than its bound")

// readBounded reads a whole file and refuses one of more than limit bytes, devices and pipes without an end included.
func readBounded(name string, limit int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, errTooLong
	}
	return text, nil
}
