package config

import (
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ShowOptions says what Show writes.
type ShowOptions struct {
	Effective bool // with every default, not only what was set
	Origin    bool // with a comment that says where each value came from
	JSON      bool
}

// Show writes the configuration as one YAML document: the files laid over each other, references expanded, environment and --set
// applied. Secrets are written as ***. Tests are left out.
func (c *Config) Show(w io.Writer, opts ShowOptions) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, o := range options() {
		origin := c.origins[o.key]
		if origin.Kind == FromDefault && !opts.Effective {
			continue
		}
		value := settingNode(o.value(&c.Settings))
		if opts.Origin {
			value.LineComment = origin.String()
		}
		put(root, strings.Split(o.key, "."), value)
	}
	if t := c.tree.get("topology"); t != nil {
		put(root, []string{"topology"}, yamlNode(t))
	}
	if opts.JSON {
		return showJSON(w, root)
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return err
	}
	return enc.Close()
}

// Origin says where a setting's value came from.
func (c *Config) Origin(key string) Origin { return c.origins[key] }

// put stores a value under nested keys; settings of one map follow each other, so the last map is the one to continue.
func put(n *yaml.Node, path []string, value *yaml.Node) {
	for _, part := range path[:len(path)-1] {
		if size := len(n.Content); size > 0 && n.Content[size-2].Value == part && n.Content[size-1].Kind == yaml.MappingNode {
			n = n.Content[size-1]
			continue
		}
		below := &yaml.Node{Kind: yaml.MappingNode}
		n.Content = append(n.Content, stringNode(part), below)
		n = below
	}
	n.Content = append(n.Content, stringNode(path[len(path)-1]), value)
}

func stringNode(text string) *yaml.Node {
	n := new(yaml.Node)
	n.SetString(text)
	return n
}

// settingNode writes a setting's value; a number or a flag stays plain.
func settingNode(v reflect.Value) *yaml.Node {
	switch v.Kind() {
	case reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for i := range v.Len() {
			list.Content = append(list.Content, stringNode(v.Index(i).String()))
		}
		return list
	case reflect.Bool, reflect.Int:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: format(v)}
	default:
		return stringNode(format(v))
	}
}

// yamlNode writes a part of the files as it is in effect.
func yamlNode(n *node) *yaml.Node {
	switch n.shape {
	case mapNode:
		y := &yaml.Node{Kind: yaml.MappingNode}
		for _, e := range n.entries {
			y.Content = append(y.Content, stringNode(e.key.text), yamlNode(e.value))
		}
		return y
	case listNode:
		y := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range n.items {
			y.Content = append(y.Content, yamlNode(item))
		}
		return y
	}
	if n.tag == "!!str" || n.text != n.raw {
		return stringNode(n.text)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: n.text}
}

// showJSON writes the document for programs.
func showJSON(w io.Writer, root *yaml.Node) error {
	c := converter{src: &source{}, found: &findings{}}
	text, err := appendJSON(nil, c.convert(root, 0))
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}
