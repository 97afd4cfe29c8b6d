package cli

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"millrace/config"
	"millrace/topology"
)

// describeChanges says what differs between two configurations of a job, by name.
func describeChanges(before, after *config.Config) string {
	var parts []string
	part := func(kind string, old, next map[string]any) {
		var added, changed, removed []string
		for name, value := range sorted(next) {
			if was, ok := old[name]; !ok {
				added = append(added, name)
			} else if !sameMeaning(reflect.ValueOf(was), reflect.ValueOf(value)) {
				changed = append(changed, name)
			}
		}
		for name := range sorted(old) {
			if _, ok := next[name]; !ok {
				removed = append(removed, name)
			}
		}
		for _, list := range []struct {
			verb  string
			names []string
		}{{"changed", changed}, {"added", added}, {"removed", removed}} {
			if len(list.names) > 0 {
				parts = append(parts, plural(len(list.names), kind)+" "+list.verb+" ("+strings.Join(list.names, ", ")+")")
			}
		}
	}
	source := func(s topology.SourceSpec) string { return s.Name.Value }
	step := func(s topology.StepSpec) string { return s.Name.Value }
	sink := func(s topology.SinkSpec) string { return s.Name.Value }
	part("source", byName(before.Spec.Sources, source), byName(after.Spec.Sources, source))
	part("step", byName(before.Spec.Steps, step), byName(after.Spec.Steps, step))
	part("sink", byName(before.Spec.Sinks, sink), byName(after.Spec.Sinks, sink))
	if !reflect.DeepEqual(before.Settings, after.Settings) {
		parts = append(parts, "settings changed")
	}
	if len(parts) == 0 {
		return "nothing that the job does"
	}
	return strings.Join(parts, ", ")
}

func byName[T any](all []T, name func(T) string) map[string]any {
	named := map[string]any{}
	for _, one := range all {
		named[name(one)] = one
	}
	return named
}

var placeType = reflect.TypeFor[topology.Pos]()

// sameMeaning compares two values of one type except for the places where they were written: a comment above a step
// changes all of those below.
func sameMeaning(a, b reflect.Value) bool {
	if a.Type() == placeType {
		return true
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if !sameMeaning(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameMeaning(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return sameMeaning(a.Elem(), b.Elem())
	}
	return a.Equal(b)
}

// sorted walks a map by name, so that equal changes give equal texts.
func sorted(all map[string]any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !yield(name, all[name]) {
				return
			}
		}
	}
}
