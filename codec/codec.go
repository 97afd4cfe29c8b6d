// Package codec turns a record's bytes into values and back: JSON, and the single-valued formats string, long and bytes.
//
// A decoder is told which fields the plan reads and fills just those, one Value a field, in one pass over the bytes. It
// never builds a tree or a map. Values alias the bytes that they were read from, or the decoder's own scratch, and live
// until its next Decode. Decoders and encoders belong to one task: they hold scratch memory and are not safe for use by
// several goroutines.
//
// Null and absence: a field that a record does not have is Missing; one that it has as null is Null, whether or not its
// type is declared nullable, because a null is a fact about the data and not a damaged record. Only a value of another
// type is an error.
package codec

import (
	"fmt"
	"strings"

	"millrace/record"
)

// Field is one field that a decoder fills: the path to it and its declared type. An empty Path means the whole document.
type Field struct {
	Path []string
	Type record.Type
}

// SyntaxError says where a document stops being valid JSON.
type SyntaxError struct {
	Offset  int // bytes from the start of the document
	Message string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Message)
}

// TypeError says that a field's value is not of its declared type. The document itself is valid.
type TypeError struct {
	Path   []string
	Want   record.Type
	Got    string // what is there instead: "string", "number that is not integral", ...
	Offset int    // bytes from the start of the document
}

func (e *TypeError) Error() string {
	name := "the document"
	if len(e.Path) > 0 {
		name = "field " + strings.Join(e.Path, ".")
	}
	return fmt.Sprintf("%s at byte %d: want %s, got %s; correct the producer, or the type under `fields:`",
		name, e.Offset, e.Want, e.Got)
}
