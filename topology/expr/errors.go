package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"
)

// Error says what is wrong with an expression's text. Offset and Len are bytes in the source.
type Error struct {
	Offset, Len int
	Message     string
	Hint        string // what to do; may be empty
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + ": " + e.Hint
}

// place sets where in src the error is; the library counts in characters, we in bytes.
func (e *Error) place(src string, at file.Location) *Error {
	e.Offset = byteOffset(src, at.From)
	e.Len = max(byteOffset(src, at.To)-e.Offset, 0)
	return e
}

func byteOffset(src string, characters int) int {
	offset := 0
	for ; characters > 0 && offset < len(src); characters-- {
		_, n := utf8.DecodeRuneInString(src[offset:])
		offset += n
	}
	return offset
}

// fromLibrary turns an error of expr-lang's parser, checker or compiler into ours.
func fromLibrary(src string, err error) *Error {
	var found *file.Error
	if !errors.As(err, &found) {
		return &Error{Len: len(src), Message: err.Error()}
	}
	return (&Error{Message: found.Message}).place(src, found.Location)
}

// RuntimeError says that an expression could not be evaluated for a record.
type RuntimeError struct {
	Source string // the expression
	Err    error
}

func (e *RuntimeError) Error() string { return fmt.Sprintf("expression %q: %v", e.Source, e.Err) }

func (e *RuntimeError) Unwrap() error { return e.Err }

// suggest returns a hint for an unknown name: the nearest known one if it is near, or else the known ones.
func suggest(name, what string, known []string) string {
	best, distance := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) == 0 {
		return ""
	}
	known = slices.Sorted(slices.Values(known))
	if len(known) > 8 {
		return what + " are " + strings.Join(known[:8], ", ") + ", ..."
	}
	return what + " are " + strings.Join(known, ", ")
}

// editDistance counts the insertions, deletions and replacements that turn a into b.
func editDistance(a, b string) int {
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
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
