package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"

	"millrace/topology/spelling"
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
	if near := spelling.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
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
