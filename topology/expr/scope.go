package expr

import "millrace/record"

// Scope says what an expression may name: value, key, headers["x"], timestamp, meta.topic, meta.partition and meta.offset
// always; window.start and window.end if Window; acc if Acc is not nil.
type Scope struct {
	Value  *Layout      // of Row.Fields; nil: value is not in scope
	Key    record.Type  // of Row.Key: string, bytes, or long as 8 bytes, big endian; a derived row's key is text: string
	Window bool         // Row.Window is set
	Acc    *record.Type // of Row.Acc
}

func (s *Scope) names() []string {
	names := []string{"key", "headers", "timestamp", "meta"}
	if s.Value != nil {
		names = append(names, "value")
	}
	if s.Window {
		names = append(names, "window")
	}
	if s.Acc != nil {
		names = append(names, "acc")
	}
	return names
}

func (s *Scope) has(name string) bool {
	for _, n := range s.names() {
		if n == name {
			return true
		}
	}
	return false
}
