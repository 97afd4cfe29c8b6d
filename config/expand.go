package config

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// maxReferenceBytes bounds a file that ${file:…} refers to: it holds a password or a name, not data.
const maxReferenceBytes = 64 << 10

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expander replaces references in parsed scalars. What a reference yields is text for good: it is not read as YAML
// again, and references within it are not followed, so that a variable's content can change a value but never the job.
type expander struct {
	lookup func(name string) (string, bool)
	found  *findings
}

// resolve expands the references in a scalar and reports the ones that lead nowhere. It is called where a value is
// used, so that a reference which a later file or the environment overrides does not have to resolve.
func (x expander) resolve(n *node) {
	if n.shape != scalarNode {
		return
	}
	text, err := x.expand(n.raw)
	if err != nil {
		x.found.at(n, codeReference, err.Error(), "${env:NAME:-default} gives a default; $$ writes a dollar sign")
		return
	}
	n.text = text
}

func (x expander) expand(text string) (string, error) {
	var out strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i+1 == len(text) {
			out.WriteString(text)
			return out.String(), nil
		}
		out.WriteString(text[:i])
		switch text[i+1] {
		case '$':
			out.WriteByte('$')
			text = text[i+2:]
		case '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return "", errors.New("a reference ${ has no closing }")
			}
			value, err := x.refer(text[i+2 : i+end])
			if err != nil {
				return "", err
			}
			out.WriteString(value)
			text = text[i+end+1:]
		default:
			out.WriteByte('$')
			text = text[i+1:]
		}
	}
}

// refer returns what the inside of one reference stands for.
func (x expander) refer(inside string) (string, error) {
	kind, rest, ok := strings.Cut(inside, ":")
	switch {
	case ok && kind == "file":
		value, _, err := readSecretFile(rest)
		return value, err
	case !ok || kind != "env":
		return "", fmt.Errorf("unknown reference ${%s}: there are ${env:NAME} and ${file:/path}", inside)
	}
	name, option, hasOption := strings.Cut(rest, ":")
	if !variableName.MatchString(name) {
		return "", fmt.Errorf("%q is not the name of an environment variable", name)
	}
	value, set := x.lookup(name)
	fallback, isDefault := strings.CutPrefix(option, "-")
	message, isMessage := strings.CutPrefix(option, "?")
	switch {
	case hasOption && !isDefault && !isMessage:
		return "", fmt.Errorf("reference ${%s}: after the name comes :-default or :?message", inside)
	case set && (value != "" || !hasOption):
		return value, nil
	case isDefault:
		return fallback, nil
	case isMessage:
		return "", fmt.Errorf("environment variable %s is not set: %s", name, message)
	default:
		return "", fmt.Errorf("environment variable %s is not set", name)
	}
}

// readSecretFile returns a small file's content without the newline that editors leave at its end, and whether every
// user of the machine may read it.
func readSecretFile(name string) (value string, exposed bool, err error) {
	text, err := readBounded(name, maxReferenceBytes)
	if errors.Is(err, errTooLong) {
		return "", false, fmt.Errorf("file %s is larger than 64 KiB; a reference is for a password or a name", name)
	}
	if err != nil {
		return "", false, err
	}
	if info, statErr := os.Stat(name); statErr == nil {
		exposed = info.Mode().Perm()&0o004 != 0
	}
	value = strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	return value, exposed, nil
}
