package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"

	"millrace/topology"
	"millrace/topology/spelling"
)

// keyDelimiter separates the parts of a key within viper. A dot would split keys that contain one.
const keyDelimiter = "::"

// OriginKind says which layer a setting's value came from.
type OriginKind uint8

// The layers, weakest first.
const (
	FromDefault OriginKind = iota
	FromFile
	FromEnvironment
	FromFlag
)

// Origin says where a setting's value came from. Pos.File names the variable or the flag where that is no file.
type Origin struct {
	Kind OriginKind
	Pos  topology.Pos
	node *node // of the file
}

func (o Origin) String() string {
	switch o.Kind {
	case FromDefault:
		return "default"
	case FromFile:
		return o.Pos.String()
	default:
		return o.Pos.File
	}
}

// settingsLoader puts the four layers of settings together: default, file, environment, --set. viper decides which one
// wins and fills the struct; this type knows where every value came from, so that whatever is wrong can be pointed at.
type settingsLoader struct {
	expander
	tree *node
	sets []string
	file string // named by findings about what is not there

	options  []option
	origins  map[string]Origin
	broken   map[string]bool // reported already; further checks would only add noise
	settings Settings
}

func (l *settingsLoader) load() (Settings, map[string]Origin) {
	l.options, l.origins, l.broken = options(), make(map[string]Origin), make(map[string]bool)
	flags := l.readSets()
	leaves := make(map[string]*node)
	l.collect(l.tree, "", leaves)

	v := viper.NewWithOptions(viper.KeyDelimiter(keyDelimiter))
	defaults := Default()
	for _, o := range l.options {
		key := strings.ReplaceAll(o.key, ".", keyDelimiter)
		fallback := o.value(&defaults).Interface()
		v.SetDefault(key, fallback)
		raw, origin := l.layer(o, flags, leaves[o.key])
		l.origins[o.key] = origin
		if origin.Kind == FromDefault || l.broken[o.key] {
			continue
		}
		value, err := convert(raw, o.typ)
		if err != nil {
			l.report(o, codeValue, quoteSource(err.Error(), origin), "")
			l.broken[o.key] = true
			continue
		}
		setLayer(v, key, value, origin.Kind)
	}
	exact := func(c *mapstructure.DecoderConfig) { c.WeaklyTypedInput = false }
	if err := v.UnmarshalExact(&l.settings, exact); err != nil {
		// Every value was converted to its field's type above, so this is a bug of ours; it must not pass for a setting.
		l.found.errorAt(topology.Pos{File: l.file}, codeShape, err.Error(), "")
	}
	l.settle()
	l.check()
	return l.settings, l.origins
}

// layer returns the strongest layer's value of an option. A file's references are expanded only when the file wins.
func (l *settingsLoader) layer(o option, flags map[string]string, leaf *node) (any, Origin) {
	if text, ok := flags[o.key]; ok {
		return text, Origin{Kind: FromFlag, Pos: topology.Pos{File: "--set " + o.key}}
	}
	if text, ok := l.lookup(o.env); ok && text != "" {
		return text, Origin{Kind: FromEnvironment, Pos: topology.Pos{File: o.env}}
	}
	if leaf == nil {
		return nil, Origin{}
	}
	origin := Origin{Kind: FromFile, Pos: leaf.pos, node: leaf}
	if leaf.shape == scalarNode {
		before := len(l.found.list)
		if l.resolve(leaf); len(l.found.list) > before {
			l.broken[o.key] = true
		}
		return leaf.text, origin
	}
	texts := make([]string, 0, len(leaf.items))
	for _, item := range leaf.items {
		if item.shape != scalarNode || item.isNull() {
			l.found.at(item, codeShape, o.key+" is a list of plain values", "")
			l.broken[o.key] = true
			continue
		}
		before := len(l.found.list)
		if l.resolve(item); len(l.found.list) > before {
			l.broken[o.key] = true
		}
		if item.text == item.raw {
			texts = append(texts, item.text)
		} else {
			texts = append(texts, splitList(item.text)...) // one variable may hold several brokers
		}
	}
	return texts, origin
}

// setLayer gives viper a value in the layer that it came from.
func setLayer(v *viper.Viper, key string, value any, kind OriginKind) {
	if kind == FromFlag {
		v.Set(key, value)
		return
	}
	parts := strings.Split(key, keyDelimiter)
	for i := len(parts) - 1; i >= 0; i-- {
		value = map[string]any{parts[i]: value}
	}
	// The map is ours and nested by construction; merging can only fail on a map of another kind.
	_ = v.MergeConfigMap(value.(map[string]any))
}

// collect finds the settings in the files and reports every key that is none.
func (l *settingsLoader) collect(n *node, prefix string, leaves map[string]*node) {
	for _, e := range n.entries {
		if prefix == "" && (e.key.text == "topology" || e.key.text == "tests" || isExtension(e.key.text)) {
			continue
		}
		key := prefix + e.key.text
		exact, below, siblings := l.lookFor(key, prefix)
		switch {
		case exact != nil && e.value.isNull(), below && e.value.isNull():
			l.found.at(e.key, codeShape, key+" has no value", "write one, or remove the key")
		case exact != nil && (e.value.shape == scalarNode || e.value.shape == listNode && exact.typ.Kind() == reflect.Slice):
			leaves[key] = e.value
		case exact != nil:
			l.found.at(e.key, codeShape, fmt.Sprintf("%s is %s, not %s", key, wantedShape(exact), shapeNames[e.value.shape]), "")
		case below && e.value.shape == mapNode:
			l.collect(e.value, key+".", leaves)
		case below:
			l.found.at(e.key, codeShape, fmt.Sprintf("%s is a map, not %s", key, shapeNames[e.value.shape]), "")
		default:
			l.found.at(e.key, codeUnknownKey, unknownKey(e.key.text, prefix), l.hint(e.key.text, siblings))
		}
	}
}

func wantedShape(o *option) string {
	if o.typ.Kind() == reflect.Slice {
		return "a list"
	}
	return "a plain value"
}

func unknownKey(key, prefix string) string {
	if prefix == "" {
		return fmt.Sprintf("unknown key %q", key)
	}
	return fmt.Sprintf("unknown key %q in %s", key, strings.TrimSuffix(prefix, "."))
}

func (l *settingsLoader) hint(key string, siblings []string) string {
	if later, ok := notYet[key]; ok {
		return later
	}
	return didYouMean(key, siblings)
}

// lookFor tells whether a key is a setting or leads to some, and which keys exist beside it.
func (l *settingsLoader) lookFor(key, prefix string) (exact *option, below bool, siblings []string) {
	for i, o := range l.options {
		rest, ok := strings.CutPrefix(o.key, prefix)
		if !ok {
			continue
		}
		if name, _, _ := strings.Cut(rest, "."); len(siblings) == 0 || siblings[len(siblings)-1] != name {
			siblings = append(siblings, name)
		}
		if o.key == key {
			exact = &l.options[i]
		}
		below = below || strings.HasPrefix(o.key, key+".")
	}
	if prefix == "" {
		siblings = append(siblings, "topology", "tests")
	}
	return exact, below, siblings
}

// readSets reads the --set flags. A later one of the same key wins, as flags do.
func (l *settingsLoader) readSets() map[string]string {
	flags := make(map[string]string)
	for _, set := range l.sets {
		key, value, ok := strings.Cut(set, "=")
		key = strings.TrimSpace(key)
		pos := topology.Pos{File: "--set " + key}
		if exact, _, _ := l.lookFor(key, ""); exact == nil {
			known := make([]string, len(l.options))
			for i, o := range l.options {
				known[i] = o.key
			}
			hint := spelling.Nearest(key, known)
			if hint != "" {
				hint = fmt.Sprintf("did you mean %q?", hint)
			}
			l.found.errorAt(pos, codeSetFlag, fmt.Sprintf("%q is not a setting", key), hint)
			continue
		}
		if !ok {
			l.found.errorAt(pos, codeSetFlag, "there is no value", "write --set "+key+"=VALUE")
			continue
		}
		flags[key] = value
	}
	return flags
}

// convert turns a layer's text, or list of texts, into the type of its field.
func convert(raw any, t reflect.Type) (any, error) {
	text, isText := raw.(string)
	switch {
	case t.Kind() == reflect.Slice && isText:
		return splitList(text), nil
	case !isText:
		return raw, nil
	case t == reflect.TypeFor[time.Duration]():
		return ParseDuration(text)
	case t == reflect.TypeFor[Size]():
		return ParseSize(text)
	case t == reflect.TypeFor[Secret]():
		return Secret(text), nil
	case t.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
		return text == "true", nil
	case t.Kind() == reflect.Int:
		number, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a whole number", text)
		}
		return number, nil
	default:
		return text, nil
	}
}

// splitList reads a list that is written as one text.
func splitList(text string) []string {
	list := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// quoteSource replaces an expanded value in a message by the reference that it came from: what a variable holds may be secret,
// whatever key it was used for.
func quoteSource(message string, origin Origin) string {
	n := origin.node
	if n == nil || n.text == n.raw || n.text == "" {
		return message
	}
	return strings.ReplaceAll(message, strconv.Quote(n.text), strconv.Quote(n.raw))
}

// report adds an error about a setting at the place where its value was written.
func (l *settingsLoader) report(o option, code, message, hint string) {
	origin := l.origins[o.key]
	if l.broken[o.key] {
		return
	}
	finding := topology.Finding{Code: code, Pos: origin.Pos, Message: o.key + ": " + message, Hint: hint}
	if origin.node != nil {
		finding.Len = origin.node.width
	}
	if origin.Kind == FromDefault {
		finding.Pos = topology.Pos{File: l.file}
	}
	l.found.add(finding)
}
