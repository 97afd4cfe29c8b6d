package codec

import "millrace/record"

// level is what a decoder wants of one object: which keys lead to fields, and in which order the last record had its keys.
type level struct {
	entries []entry
	guesses []guess
	fields  []int // all fields below, for clearing
}

// entry is one wanted key.
type entry struct {
	key    string
	fields []int  // the fields that this key's value is; nearly always one
	below  *level // nil: no path goes further down
}

// guess is the key that stood at this place in the last record. Producers write their keys in a fixed order, so that a
// single comparison finds most keys; a wrong guess costs no more than that comparison.
type guess struct {
	text  []byte // the key and its closing quote; empty: nothing is guessed
	entry int    // index in entries; -1: not wanted
}

const (
	maxGuesses  = 64
	maxGuessLen = 64
)

// plan arranges fields by their paths. whole are the fields with an empty path.
func plan(fields []Field) (root *level, whole []int) {
	root = &level{}
	for i, f := range fields {
		if len(f.Path) == 0 {
			whole = append(whole, i)
			continue
		}
		at := root
		for _, key := range f.Path[:len(f.Path)-1] {
			at.fields = append(at.fields, i)
			e := at.entry(key)
			if e.below == nil {
				e.below = &level{}
			}
			at = e.below
		}
		at.fields = append(at.fields, i)
		e := at.entry(f.Path[len(f.Path)-1])
		e.fields = append(e.fields, i)
	}
	return root, whole
}

func (l *level) entry(key string) *entry {
	if i := l.find([]byte(key)); i >= 0 {
		return &l.entries[i]
	}
	l.entries = append(l.entries, entry{key: key})
	return &l.entries[len(l.entries)-1]
}

func (l *level) find(key []byte) int {
	for i := range l.entries {
		if e := &l.entries[i]; e.key == string(key) {
			return i
		}
	}
	return -1
}

// learn notes that key stood at place i.
func (l *level) learn(i int, key []byte, entry int) {
	if i >= maxGuesses {
		return
	}
	for len(l.guesses) <= i { // keys with escapes are not learnt, so that places may have been passed over
		l.guesses = append(l.guesses, guess{})
	}
	g := &l.guesses[i]
	g.text, g.entry = g.text[:0], entry
	if len(key) <= maxGuessLen {
		g.text = append(append(g.text, key...), '"')
	}
}

func (l *level) clear(into []record.Value) {
	for _, i := range l.fields {
		into[i] = record.Value{}
	}
}
