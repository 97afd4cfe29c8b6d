package config

import (
	"regexp"
	"strings"

	"millrace/topology/spelling"
)

// excerpt is a file's text for showing lines of it, without those that hold a secret: a finding about a broken
// line must not print the password that stands on it.
type excerpt struct {
	src    *source
	secret map[int]bool
}

// secretKey matches keys that hold secrets, or maps of them. It errs on the side of hiding.
var secretKey = regexp.MustCompile(`(?i)sasl|oauth|passw|pwd|secret|token|credential|api_?key`)

func readExcerpt(name string) *excerpt {
	e := &excerpt{src: &source{name: name}, secret: make(map[int]bool)}
	text, err := readBounded(name, maxFileBytes)
	if err != nil {
		return e // no excerpt; the finding itself stays
	}
	tree, src := parseText(name, text, &findings{})
	e.src = src
	if tree != nil {
		e.hide(tree, len(src.lines)+1)
		return e
	}
	// A file that cannot be parsed has no nodes, so its text is searched; a value may stand on the line after its key.
	for i := range src.lines {
		if secretKey.MatchString(src.lines[i]) {
			e.secret[i+1], e.secret[i+2] = true, true
		}
	}
	return e
}

// hide marks the lines of every secret below a node that ends before a line. A key that is one or two letters away from
// "password" counts: misspelt keys are exactly what findings are about.
func (e *excerpt) hide(n *node, end int) {
	for i, item := range n.items {
		next := end
		if i+1 < len(n.items) {
			next = n.items[i+1].pos.Line
		}
		e.hide(item, next)
	}
	for i, pair := range n.entries {
		next := end
		if i+1 < len(n.entries) {
			next = n.entries[i+1].key.pos.Line
		}
		if secretKey.MatchString(pair.key.text) || spelling.Nearest(pair.key.text, []string{"password", "client_secret", "sasl"}) != "" {
			e.hideLines(pair.key.pos.Line, next-1)
			e.hideValues(pair.value)
			continue
		}
		e.hide(pair.value, next)
	}
}

func (e *excerpt) hideLines(from, to int) {
	e.secret[from] = true
	for line := from; line <= to; line++ {
		e.secret[line] = true
	}
}

// hideValues marks where values stand that an alias brought from another place.
func (e *excerpt) hideValues(n *node) {
	e.hideLines(n.pos.Line, n.pos.Line+strings.Count(n.raw, "\n"))
	for _, item := range n.items {
		e.hideValues(item)
	}
	for _, pair := range n.entries {
		e.hideValues(pair.value)
	}
}

// line returns a line as characters, unless it is hidden or beyond the end.
func (e *excerpt) line(number int) ([]rune, bool) {
	if e.secret[number] || number > len(e.src.lines) {
		return nil, false
	}
	return []rune(e.src.line(number)), true
}
