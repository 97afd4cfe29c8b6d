package config

import (
	"encoding/json"
	"fmt"
)

// Secret is a password or a token. Every way of printing it prints ***, so that it cannot reach a log, an error or a
// dump by accident; Reveal is the one way to its text, and easy to search for.
type Secret string

const hidden = "***"

// Reveal returns the text, for the one place that sends it to a server.
func (s Secret) Reveal() string { return string(s) }

// String hides a secret; an empty one stays empty, so that its absence can be seen.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides a secret from %#v.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format hides a secret from every verb: %x of a string would otherwise bypass String.
func (s Secret) Format(state fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || (verb == 'v' && state.Flag('#')) {
		text = fmt.Sprintf("%q", text)
	}
	// A Formatter has no way to return the writer's error; fmt reports it from the call that started this one.
	_, _ = state.Write([]byte(text))
}

// MarshalText hides a secret from YAML, XML and flag packages.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides a secret from JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }
