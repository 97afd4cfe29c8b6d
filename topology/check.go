package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"millrace/record"
	"millrace/topology/aggregate"
	"millrace/topology/expr"
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
	noteEmission = "N1103" // when results come
)

// finder collects findings.
type finder struct{ list []Finding }

func (f *finder) fail(code string, pos Pos, length int, message, hint string) {
	f.list = append(f.list, Finding{Severity: Error, Code: code, Pos: pos, Len: length, Message: message, Hint: hint})
}

func (f *finder) failText(code string, t Text, message, hint string) {
	f.fail(code, t.Pos, len(t.Value), message, hint)
}

func (f *finder) warn(code string, pos Pos, message, hint string) {
	f.list = append(f.list, Finding{Severity: Warning, Code: code, Pos: pos, Message: message, Hint: hint})
}

func (f *finder) note(code string, pos Pos, message, hint string) {
	f.list = append(f.list, Finding{Severity: Note, Code: code, Pos: pos, Message: message, Hint: hint})
}

func (f *finder) failed() bool {
	return slices.ContainsFunc(f.list, func(x Finding) bool { return x.Severity == Error })
}

// expression reports an error of package expr or aggregate at its place within the text. where is "where of step x".
func (f *finder) expression(code string, t Text, where string, err error) {
	pos, length, message, hint := t.Pos, len(t.Value), err.Error(), ""
	var e *expr.Error
	var a *aggregate.Error
	switch {
	case errors.As(err, &e):
		pos.Col += min(e.Offset, len(t.Value))
		length, message, hint = max(e.Len, 1), e.Message, e.Hint
	case errors.As(err, &a):
		pos.Col += min(a.Offset, len(t.Value))
		length, message, hint = max(a.Len, 1), a.Message, a.Hint
	}
	f.fail(code, pos, length, message+" in "+where, hint)
}

// choice returns the index of a word among the allowed ones; an empty text is the first.
func (f *finder) choice(t Text, what string, allowed ...string) int {
	if t.Value == "" {
		return 0
	}
	if i := slices.Index(allowed, t.Value); i >= 0 {
		return i
	}
	f.failText(codeChoice, t, fmt.Sprintf("%s %q is not known", what, t.Value), nearest(t.Value, allowed))
	return 0
}

func (f *finder) policy(t Text, what string) Policy {
	return Policy(f.choice(t, what, "fail", "skip", "dead_letter"))
}

// nearest is the hint for a misspelt name.
func nearest(name string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(name, k); d < least || d == least && best == "" && d <= len(name)/2 {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) == 0 {
		return ""
	}
	return "known: " + strings.Join(known, ", ")
}

// distance counts the edits between two words (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, cost)
		}
	}
	return row[len(b)]
}

func sameFields(a, b []record.Field) bool {
	return slices.EqualFunc(a, b, func(x, y record.Field) bool {
		x.Type.Nullable = y.Type.Nullable
		return x == y
	})
}
