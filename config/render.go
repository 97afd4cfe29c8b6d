package config

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"millrace/topology"
)

// Format is how findings are written.
type Format string

// The formats: for people, for programs, and as annotations of a pull request.
const (
	Text   Format = "text"
	JSON   Format = "json"
	GitHub Format = "github"
)

var severityNames = map[topology.Severity]string{topology.Error: "error", topology.Warning: "warning", topology.Note: "note"}

// Render writes findings, in the order given. Excerpts are read from the files that the findings name; lines that hold a secret are not shown.
func Render(w io.Writer, list []topology.Finding, format Format) error {
	switch format {
	case JSON:
		return renderJSON(w, list)
	case GitHub:
		return renderGitHub(w, list)
	}
	excerpts := make(map[string]*excerpt)
	var out strings.Builder
	for _, f := range list {
		fmt.Fprintf(&out, "%s%s %s: %s\n", place(f.Pos), severityNames[f.Severity], f.Code, printable(f.Message))
		out.WriteString(underline(f, excerpts))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func place(p topology.Pos) string {
	switch {
	case p.Line > 0:
		return printable(p.String()) + ": "
	case p.File != "":
		return printable(p.File) + ": "
	}
	return ""
}

// maxExcerpt bounds a shown line, in characters. A longer one is cut on both sides of the finding.
const maxExcerpt = 160

// underline returns the source line with carets and the hint below it.
func underline(f topology.Finding, excerpts map[string]*excerpt) string {
	hint := printable(f.Hint)
	line, ok := lineAt(f.Pos, excerpts)
	if !ok {
		if hint == "" {
			return ""
		}
		return "     = " + hint + "\n"
	}
	column := min(f.Pos.Col-1, len(line))
	if cut := column - maxExcerpt/2; cut > 0 && len(line) > maxExcerpt {
		line, column = line[cut:], column-cut
	}
	line = line[:min(len(line), maxExcerpt)]
	carets := strings.Repeat("^", max(1, min(f.Len, len(line)-column)))
	marked := strings.TrimRight(fmt.Sprintf("     | %s%s %s", strings.Repeat(" ", column), carets, hint), " ")
	return fmt.Sprintf("%4d | %s\n%s\n", f.Pos.Line, printable(string(line)), marked)
}

func lineAt(p topology.Pos, excerpts map[string]*excerpt) ([]rune, bool) {
	if p.Line == 0 || p.Col == 0 {
		return nil, false
	}
	e, ok := excerpts[p.File]
	if !ok {
		e = readExcerpt(p.File)
		excerpts[p.File] = e
	}
	return e.line(p.Line)
}

// printable replaces what could move a terminal's cursor or fake a second line of output. The number of characters stays the same,
// so that carets still point at the right one.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n':
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}

// finding is the JSON form; its keys are stable.
type finding struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Length   int    `json:"length,omitempty"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

func renderJSON(w io.Writer, list []topology.Finding) error {
	out := make([]finding, 0, len(list))
	for _, f := range list {
		out = append(out, finding{severityNames[f.Severity], f.Code, f.Pos.File, f.Pos.Line, f.Pos.Col, f.Len, f.Message, f.Hint})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(map[string]any{"findings": out})
}

// renderGitHub writes workflow commands, which GitHub shows beside the changed lines.
func renderGitHub(w io.Writer, list []topology.Finding) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	commands := map[topology.Severity]string{topology.Error: "error", topology.Warning: "warning", topology.Note: "notice"}
	var out strings.Builder
	for _, f := range list {
		fmt.Fprintf(&out, "::%s title=%s", commands[f.Severity], property.Replace(f.Code))
		if f.Pos.Line > 0 {
			fmt.Fprintf(&out, ",file=%s,line=%d,col=%d", property.Replace(f.Pos.File), f.Pos.Line, f.Pos.Col)
		}
		message := f.Message
		if f.Pos.Line == 0 {
			message = place(f.Pos) + message
		}
		if f.Hint != "" {
			message += "\n" + f.Hint
		}
		fmt.Fprintf(&out, "::%s\n", data.Replace(message))
	}
	_, err := io.WriteString(w, out.String())
	return err
}
