package rules

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// YAML returns the set as a document that [Parse] reads back to the same rules,
// without what is there by default. It fails with [Problems] if the set is not
// sound, and if the document would be longer than [MaxDocumentSize].
func (s Set) YAML() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, section := range sections() {
		if section.count(s) > 0 || section.name() == KindFlow {
			root.Content = append(root.Content, toYAML(writeText(section.name())), toYAML(section.write(s)))
		}
	}
	data, err := yaml.Dump(root, yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("rules: writing YAML: %w", err)
	}
	if len(data) > MaxDocumentSize {
		return nil, fmt.Errorf("rules: the document would be %d bytes long: the most is %d; make several sets of it",
			len(data), MaxDocumentSize)
	}
	return data, nil
}

func (s schema[R]) write(set Set) node {
	rules := node{kind: kindList}
	for _, rule := range *s.rules(&set) {
		rules.items = append(rules.items, s.writeRule(s.fill(rule)))
	}
	return rules
}

// writeRule returns a complete rule without what is there by default.
func (s schema[R]) writeRule(rule R) node {
	written := node{kind: kindMapping}
	for _, f := range s.fields {
		if s.says(f, &rule) {
			written.put(f.path, f.write(&rule))
		}
	}
	return written
}

// says tells whether the document of a complete rule has to have the field: it
// is required, or not what it would be by default. nil is no rule.
func (s schema[R]) says(f field[R], rule *R) bool {
	if rule == nil {
		return false
	}
	without := *rule
	f.reset(&without)
	without = s.fill(without)
	return f.missing != "" || !f.equal(rule, &without)
}

// put adds a field to a mapping, below mappings of its own if its path has dots.
func (n *node) put(path string, value node) {
	name, rest, below := strings.Cut(path, ".")
	if !below {
		n.entries = append(n.entries, entry{writeText(name), value})
		return
	}
	last := len(n.entries) - 1
	if last < 0 || n.entries[last].key.text != name {
		n.entries = append(n.entries, entry{writeText(name), node{kind: kindMapping}})
		last++
	}
	n.entries[last].value.put(rest, value)
}

// toYAML returns a node that the YAML writer takes, with quotes where text
// would be read as something else without.
func toYAML(n node) *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Value: n.text}
	switch n.kind {
	case kindMapping:
		y.Kind = yaml.MappingNode
		for _, e := range n.entries {
			y.Content = append(y.Content, toYAML(e.key), toYAML(e.value))
		}
	case kindList:
		y.Kind = yaml.SequenceNode
		for _, item := range n.items {
			y.Content = append(y.Content, toYAML(item))
		}
	case kindText:
		y.Tag = "!!str"
		if plainKind(n.text) != kindText {
			y.Style = yaml.DoubleQuotedStyle
		}
	}
	return y
}
