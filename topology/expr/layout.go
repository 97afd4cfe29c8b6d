package expr

import (
	"fmt"
	"strings"

	"millrace/record"
)

// Path is a field that expressions read, as the keys that lead to it. No segments mean the whole value.
type Path struct {
	Segments []string
	Type     record.Type
}

// Layout says which slot of Row.Fields holds which field. A source's layout grows while expressions are compiled: a slot
// is allotted for each path that one of them reads, and the decoder is then built for exactly these (Paths). It is not safe
// for concurrent use; after the last Compile nothing changes it any more.
type Layout struct {
	declared []record.Field
	open     bool
	row      bool
	paths    []Path
	slots    map[string]int // by the segments, joined by a byte that no key contains
}

// NewSourceLayout returns the layout of a source's records. A declared name with dots, as in device.os, is a path. An open
// source declares nothing, and any path may be read from it, with type any.
func NewSourceLayout(fields []record.Field, open bool) *Layout {
	return &Layout{declared: fields, open: open, slots: map[string]int{}}
}

// NewRowLayout returns the layout of derived rows, whose slot i is fields[i].
func NewRowLayout(fields []record.Field) *Layout {
	l := &Layout{declared: fields, row: true, slots: map[string]int{}}
	for _, f := range fields {
		l.allot([]string{f.Name}, f.Type)
	}
	return l
}

// Paths returns the fields in slot order.
func (l *Layout) Paths() []Path { return l.paths }

// Slot returns the slot and type of the field at path, and allots one in a source's layout. An empty path is the whole
// value. The error is an *Error without a place, which names the nearest known field.
func (l *Layout) Slot(path []string) (slot int, t record.Type, err error) {
	if _, ok := l.single(); ok && len(path) == 0 {
		path = []string{"value"}
	}
	t, problem := l.typeOf(path)
	if problem != nil {
		return 0, t, problem
	}
	return l.allot(path, t), t, nil
}

func (l *Layout) allot(path []string, t record.Type) int {
	key := strings.Join(path, "\x00")
	slot, ok := l.slots[key]
	if !ok {
		slot = len(l.paths)
		l.slots[key] = slot
		l.paths = append(l.paths, Path{Segments: append([]string(nil), path...), Type: t})
	}
	return slot
}

// depth is how many segments of path a slot can stand for; the rest is looked up in its value. A derived row's fields are
// whole values, while a decoder goes down any path.
func (l *Layout) depth(path []string) int {
	if l.row {
		return min(len(path), 1)
	}
	return len(path)
}

func (l *Layout) typeOf(path []string) (record.Type, *Error) {
	if len(path) == 0 {
		return l.wholeType()
	}
	for n := len(path); n > 0; n-- {
		f, ok := l.find(strings.Join(path[:n], "."))
		if !ok {
			continue
		}
		if n == len(path) {
			return f.Type, nil
		}
		if (f.Type.Any || f.Type.Kind == record.Map) && !l.row {
			return record.Type{Any: true}, nil
		}
		return record.Type{}, &Error{
			Message: fmt.Sprintf("field %s is %s and has no field %s", f.Name, f.Type, path[n]),
			Hint:    "declare it as map to read what is inside",
		}
	}
	name := strings.Join(path, ".")
	if l.open {
		return record.Type{Any: true}, nil
	}
	for _, f := range l.declared {
		if strings.HasPrefix(f.Name, name+".") && !l.row {
			return record.Type{Kind: record.Map, Nullable: true}, nil
		}
	}
	return record.Type{}, &Error{
		Message: fmt.Sprintf("unknown field %s", name),
		Hint:    suggest(name, "the fields", l.names()),
	}
}

// wholeType is the type of `value` alone: for a format with a single value, that value.
func (l *Layout) wholeType() (record.Type, *Error) {
	if f, ok := l.single(); ok {
		return f.Type, nil
	}
	if l.row {
		return record.Type{}, &Error{
			Message: "value is a whole row here", Hint: suggest("", "name one of its fields: they", l.names()),
		}
	}
	if l.open {
		return record.Type{Any: true}, nil
	}
	return record.Type{Kind: record.Map}, nil
}

// single returns the field of a format that has just one value, which is named value.
func (l *Layout) single() (record.Field, bool) {
	if len(l.declared) == 1 && l.declared[0].Name == "value" {
		return l.declared[0], true
	}
	return record.Field{}, false
}

func (l *Layout) find(name string) (record.Field, bool) {
	for _, f := range l.declared {
		if f.Name == name {
			return f, true
		}
	}
	return record.Field{}, false
}

func (l *Layout) names() []string {
	var names []string
	for _, f := range l.declared {
		names = append(names, f.Name)
	}
	return names
}
