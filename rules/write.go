package rules

import (
	"bytes"
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
	var document []byte
	for _, section := range sections() {
		count := section.count(s)
		if count == 0 && section.name() == KindFlow {
			document = append(document, "flow: []\n"...)
		}
		for first := 0; first < count; first += writtenAtOnce {
			lines, err := dump(section.name(), section.write(s, first, min(first+writtenAtOnce, count)))
			if err != nil {
				return nil, err
			}
			if first > 0 { // the name of the section is there already
				_, lines, _ = bytes.Cut(lines, []byte("\n"))
			}
			if document = append(document, lines...); len(document) > MaxDocumentSize {
				return nil, fmt.Errorf("rules: the document would be too long, %d of its %d rules have %d bytes: the most is %d; make several sets of it",
					min(first+writtenAtOnce, count), s.Len(), len(document), MaxDocumentSize)
			}
		}
	}
	return document, nil
}

// writtenAtOnce is how many rules are handed to the YAML writer at a time, which
// needs time and memory out of proportion for many.
const writtenAtOnce = 200

// dump returns a section with the rules as YAML.
func dump(name Kind, rules node) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{toYAML(writeText(name)), toYAML(rules)}}
	data, err := yaml.Dump(root, yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("rules: writing YAML: %w", err)
	}
	return data, nil
}

func (s schema[R]) write(set Set, first, end int) node {
	rules := node{kind: kindList}
	for _, rule := range (*s.rules(&set))[first:end] {
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
