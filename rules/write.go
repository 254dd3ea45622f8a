package rules

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// YAML returns the set as a document that [Parse] reads back to the same rules,
// without what is there by default. It fails with [Problems] if the set is not
// sound, and if the document would be longer than [MaxDocumentSize].
func (s Set) YAML() ([]byte, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	text, err := writeDomains(s.Serve)
	if err != nil {
		return nil, err
	}
	for _, l := range NewTable().of(s).lists {
		count := l.count(s)
		if count == 0 && s.Len() == 0 && len(text) == 0 {
			return []byte(string(l.kind().Kind()) + ": []\n"), nil
		}
		batch := document.Value{Type: document.List}
		for i, r := range l.all(s) {
			batch.Items = append(batch.Items, writeRule(r.WithDefaults()))
			if len(batch.Items) < writtenAtOnce && i+1 < count {
				continue
			}
			lines, err := dump(l.kind().Kind(), batch)
			if err != nil {
				return nil, err
			}
			if i >= writtenAtOnce { // the name of the list is there already
				_, lines, _ = bytes.Cut(lines, []byte("\n"))
			}
			if text = append(text, lines...); len(text) > MaxDocumentSize {
				return nil, fmt.Errorf("rules: the document would be too long, %d of its %d %s rules have %d bytes: the most is %d; make several sets of it",
					i+1, count, l.kind().Kind(), len(text), MaxDocumentSize)
			}
			batch.Items = nil
		}
	}
	return text, nil
}

// writeDomains returns the field that says which domains are served; nothing if none are.
func writeDomains(domains []Domain) ([]byte, error) {
	if len(domains) == 0 {
		return nil, nil
	}
	written := document.Value{Type: document.List}
	for _, d := range domains {
		written.Items = append(written.Items, d.WithDefaults().written())
	}
	if len(domains) == 1 {
		written = written.Items[0]
	}
	return dump(kindServe, written)
}

// writtenAtOnce is how many rules are handed to the YAML writer at a time, which
// needs time and memory out of proportion for many.
const writtenAtOnce = 200

// dump returns a list of rules as YAML.
func dump(name rule.Kind, rules document.Value) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{toYAML(document.TextValue(name)), toYAML(rules)}}
	data, err := yaml.Dump(root, yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("rules: writing YAML: %w", err)
	}
	return data, nil
}

// writeRule returns a complete rule without what is there by default.
func writeRule(r rule.Rule) document.Value {
	written := document.Value{Type: document.Mapping}
	for _, f := range r.Type().Fields() {
		if says(f, r) {
			put(&written, f.Path, r.Get(f.Path))
		}
	}
	return written
}

// says tells whether the document of a complete rule has to have the field: it is
// required and the rule has no other in its place, or it is not what it would be by
// default. nil is no rule.
func says(f document.Field, r rule.Rule) bool {
	if r == nil {
		return false
	}
	if f.Missing != "" {
		draft := r.Type().Draft()
		return !slices.ContainsFunc(f.Instead, func(path string) bool { return !r.SameField(path, draft) })
	}
	without := r.WithDefaults() // a copy
	without.Reset(f.Path)
	return !r.SameField(f.Path, without.WithDefaults())
}

// put adds a value to a mapping, below mappings of its own if its path has dots.
func put(to *document.Value, path string, value document.Value) {
	name, rest, below := strings.Cut(path, ".")
	if !below {
		to.Entries = append(to.Entries, document.Entry{Key: name, Value: value})
		return
	}
	last := len(to.Entries) - 1
	if last < 0 || to.Entries[last].Key != name {
		to.Entries = append(to.Entries, document.Entry{Key: name, Value: document.Value{Type: document.Mapping}})
		last++
	}
	put(&to.Entries[last].Value, rest, value)
}

// toYAML returns a value that the YAML writer takes, with quotes where text
// would be read as something else without.
func toYAML(v document.Value) *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Value: v.Text}
	switch v.Type {
	case document.Mapping:
		y.Kind = yaml.MappingNode
		for _, e := range v.Entries {
			y.Content = append(y.Content, toYAML(keyOf(e)), toYAML(e.Value))
		}
	case document.List:
		y.Kind = yaml.SequenceNode
		for _, item := range v.Items {
			y.Content = append(y.Content, toYAML(item))
		}
	case document.Text:
		y.Tag = "!!str"
		if document.PlainType(v.Text) != document.Text {
			y.Style = yaml.DoubleQuotedStyle
		}
	}
	return y
}

// keyOf returns the key of an entry. Fields have keys without a type, which are text.
func keyOf(e document.Entry) document.Value {
	if e.KeyType == document.Null {
		return document.TextValue(e.Key)
	}
	return document.Value{Type: e.KeyType, Text: e.Key}
}
