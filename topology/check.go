package topology

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"millrace/record"
	"millrace/topology/aggregate"
	"millrace/topology/expr"
	"millrace/topology/spelling"
)

// Codes of the findings of Compile.
const (
	codeDuplicate  = "MR1101" // two things have one name
	codeUnknown    = "MR1102" // a name that nothing has
	codeExpression = "MR1103" // an expression is wrong: an unknown field, a type error, a syntax error
	codeCycle      = "MR1104" // steps read each other in a circle
	codeContract   = "MR1105" // a contract that must be written is missing
	codeWindow     = "MR1106" // a window is impossible
	codeAggregate  = "MR1107" // an aggregate is wrong
	codeCombine    = "MR1108" // two things that do not go together
	codeChoice     = "MR1109" // a word that is none of the allowed ones
	codeTypes      = "MR1110" // the inputs of a step do not agree

	warnOpen     = "W1101" // a source without fields: a misspelt name is null instead of an error
	warnIdle     = "W1102" // windows may wait for ever for a silent partition
	warnUnused   = "W1103" // a source, step or sink that nothing uses
	noteShuffle  = "N1101" // a step repartitions
	noteUnknown  = "N1102" // whether a step repartitions is learnt from the data
	noteEmission = "N1103" // a window does not say when its results come
)

// finder collects findings.
type finder struct{ list []Finding }

func (f *finder) fail(code string, pos Pos, length int, message, hint string) {
	f.list = append(f.list, Finding{Severity: Error, Code: code, Pos: pos, Len: length, Message: message, Hint: hint})
}

func (f *finder) failText(code string, t Text, message, hint string) {
	pos, width := place(t, 0, len(t.Value))
	f.fail(code, pos, width, message, hint)
}

func (f *finder) warn(code string, t Text, message, hint string) {
	pos, width := place(t, 0, len(t.Value))
	f.list = append(f.list, Finding{Severity: Warning, Code: code, Pos: pos, Len: width, Message: message, Hint: hint})
}

func (f *finder) note(code string, t Text, message, hint string) {
	pos, width := place(t, 0, len(t.Value))
	f.list = append(f.list, Finding{Severity: Note, Code: code, Pos: pos, Len: width, Message: message, Hint: hint})
}

func (f *finder) failed() bool { return f.errorCount() > 0 }

// errorCount counts the findings that keep a job from starting.
func (f *finder) errorCount() int {
	n := 0
	for _, x := range f.list {
		if x.Severity == Error {
			n++
		}
	}
	return n
}

// expression reports an error of package expr or aggregate at its place within the text. where is "where of step x".
func (f *finder) expression(code string, t Text, where string, err error) {
	offset, length, message, hint := 0, len(t.Value), err.Error(), ""
	var e *expr.Error
	var a *aggregate.Error
	switch {
	case errors.As(err, &e):
		offset, length, message, hint = e.Offset, e.Len, e.Message, e.Hint
	case errors.As(err, &a):
		offset, length, message, hint = a.Offset, a.Len, a.Message, a.Hint
	}
	pos, width := place(t, offset, length)
	f.fail(code, pos, width, message+" in "+where, hint)
}

// choice returns the index of a word among the allowed ones; an empty text is the first.
func (f *finder) choice(t Text, what string, allowed ...string) int {
	if t.Value == "" {
		return 0
	}
	if i := slices.Index(allowed, t.Value); i >= 0 {
		return i
	}
	words := slices.DeleteFunc(slices.Clone(allowed), func(word string) bool { return word == "" })
	f.failText(codeChoice, t, fmt.Sprintf("%s %q is not known", what, t.Value), nearest(t.Value, words))
	return 0
}

func (f *finder) policy(t Text, what string) Policy {
	return Policy(f.choice(t, what, "fail", "skip", "dead_letter"))
}

// nearest is the hint for a misspelt name.
func nearest(name string, known []string) string {
	if near := spelling.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return ""
	}
	return "known: " + strings.Join(known, ", ")
}

// place finds a part of a text, given in bytes, in the file: columns count characters, and the lines of a text that has
// several begin in the column of its first.
func place(t Text, offset, length int) (Pos, int) {
	offset = min(max(offset, 0), len(t.Value))
	part := t.Value[offset:min(offset+max(length, 0), len(t.Value))]
	part, _, _ = strings.Cut(part, "\n")
	// Empty lines above a text belong to its value, but its place is where its first line is.
	before := strings.TrimLeft(t.Value[:offset], "\n")
	pos := t.Pos
	pos.Line += strings.Count(before, "\n")
	pos.Col += utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return pos, max(utf8.RuneCountInString(part), 1)
}

// ordered sorts findings as a reader meets them, and drops repetitions: a step with several inputs is checked once for each.
func (f *finder) ordered() []Finding {
	slices.SortStableFunc(f.list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
	})
	return slices.Compact(f.list)
}

func sameFields(a, b []record.Field) bool {
	return slices.EqualFunc(a, b, func(x, y record.Field) bool {
		x.Type.Nullable = y.Type.Nullable
		return x == y
	})
}
