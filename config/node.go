package config

import (
	"millrace/topology"
)

// shape says which of a node's parts is set.
type shape uint8

const (
	scalarNode shape = iota
	mapNode
	listNode
)

var shapeNames = [...]string{"a plain value", "a map", "a list"}

// node is a piece of YAML as this package works on it: aliases are resolved, merge keys are applied, every node knows its
// file, and the position of a scalar is that of its first character, after an opening quote, so that an offset
// within the text can be added to the column.
type node struct {
	shape   shape
	pos     topology.Pos
	width   int    // characters to underline; 0 for maps and lists
	text    string // a scalar's value; expanded once resolve has seen it
	raw     string // a scalar's value as written
	tag     string // YAML's short tag: !!str, !!int, !!float, !!bool, !!null, …
	items   []*node
	entries []entry
}

// entry is one pair of a map. Maps keep the order of the file.
type entry struct {
	key   *node
	value *node
}

func (n *node) isNull() bool { return n.shape == scalarNode && n.tag == "!!null" }

// get returns the value under a key, or nil.
func (n *node) get(key string) *node {
	if n == nil || n.shape != mapNode {
		return nil
	}
	for _, e := range n.entries {
		if e.key.text == key {
			return e.value
		}
	}
	return nil
}

// path returns the value under nested keys, or nil.
func (n *node) path(keys ...string) *node {
	for _, key := range keys {
		n = n.get(key)
	}
	return n
}

// merge lays upper over lower: maps are merged key by key, everything else is replaced, lists too. A replaced key keeps its place
// in the order, so that an overlay does not reorder the steps of the base file.
func merge(lower, upper *node) *node {
	if lower == nil || lower.shape != mapNode || upper.shape != mapNode {
		return upper
	}
	merged := *lower
	merged.entries = append([]entry(nil), lower.entries...)
	for _, e := range upper.entries {
		if i := merged.index(e.key.text); i >= 0 {
			merged.entries[i] = entry{e.key, merge(merged.entries[i].value, e.value)}
		} else {
			merged.entries = append(merged.entries, e)
		}
	}
	return &merged
}

func (n *node) index(key string) int {
	for i, e := range n.entries {
		if e.key.text == key {
			return i
		}
	}
	return -1
}
