package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// parseYAML returns the documents in a YAML file, or the offset of the first error and the
// error.
func parseYAML(data []byte) (documents []node, offset int, err error) {
	t := yamlTree{lines: lineOffsets(data), size: len(data), left: maxNodes}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	for err == nil {
		var document yaml.Node
		if err = loader.Load(&document); err == nil && len(document.Content) > 0 {
			var n node
			if n, err = t.node(document.Content[0], 0); err == nil {
				documents = append(documents, n)
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return documents, 0, nil
	}
	if load := new(yaml.LoadError); errors.As(err, &load) {
		return nil, t.offset(load.Mark.Line, load.Mark.Column), errors.New(strings.TrimPrefix(load.Message, "yaml: "))
	}
	return nil, t.failedAt, err
}

// maxNodes is how many values a file may have, those included that it has by aliases.
const maxNodes = 1_000_000

var errTooLarge = fmt.Errorf("it has more than %d values, those of aliases included", maxNodes)

// yamlTree makes nodes of those of the YAML parser.
type yamlTree struct {
	lines    []int // offsets at which they begin
	size     int
	left     int // how many more nodes there may be
	failedAt int // the offset of an error
}

func lineOffsets(data []byte) []int {
	offsets := []int{0}
	for i, b := range data {
		if b == '\n' {
			offsets = append(offsets, i+1)
		}
	}
	return offsets
}

// offset returns the offset of a place. Columns count characters, so behind characters of
// several bytes it is that of an earlier one.
func (t *yamlTree) offset(line, column int) int {
	if line < 1 || line > len(t.lines) {
		return t.size
	}
	return min(t.size, t.lines[line-1]+max(0, column-1))
}

func (t *yamlTree) node(y *yaml.Node, depth int) (n node, err error) {
	n.offset = t.offset(y.Line, y.Column)
	if t.left--; t.left < 0 {
		t.failedAt = n.offset
		return node{}, errTooLarge
	}
	if depth++; depth > maxDepth {
		t.failedAt = n.offset
		return node{}, errTooDeep
	}
	switch y.Kind {
	case yaml.AliasNode:
		return t.node(y.Alias, depth)
	case yaml.SequenceNode:
		items := []node{}
		for _, item := range y.Content {
			read, err := t.node(item, depth)
			if err != nil {
				return node{}, err
			}
			items = append(items, read)
		}
		n.value = items
	case yaml.MappingNode:
		entries, err := t.mapping(y, depth)
		if err != nil {
			return node{}, err
		}
		n.value = entries
	default:
		n.value = scalar(y)
	}
	return n, nil
}

// mapping returns the fields of a mapping, with those that it merges (<<) and does not have itself.
func (t *yamlTree) mapping(y *yaml.Node, depth int) ([]entry, error) {
	entries, merged := []entry{}, []entry(nil)
	known := make(map[string]bool, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		of := y.Content[i]
		value, err := t.node(y.Content[i+1], depth)
		if err != nil {
			return nil, err
		}
		key := node{t.offset(of.Line, of.Column), of.Value}
		if of.ShortTag() == "!!merge" {
			more, ok := mergedFields(value)
			if !ok {
				t.failedAt = value.offset
				return nil, errors.New("<< merges what is no mapping")
			}
			merged = append(merged, more...)
			continue
		}
		if known[of.Value] {
			t.failedAt = key.offset
			return nil, fmt.Errorf("the field %v is given twice: remove one", key)
		}
		known[of.Value] = true
		entries = append(entries, entry{key, value})
	}
	for _, e := range merged { // the first of several counts
		if !known[e.name()] {
			known[e.name()] = true
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// mergedFields returns the fields of a mapping, or of several in their order.
func mergedFields(n node) (entries []entry, ok bool) {
	switch v := n.value.(type) {
	case []entry:
		return v, true
	case []node:
		for _, item := range v {
			more, ok := item.value.([]entry)
			if !ok {
				return nil, false
			}
			entries = append(entries, more...)
		}
		return entries, true
	}
	return nil, false
}

// scalar returns what a scalar of YAML says, in the types that JSON has.
func scalar(y *yaml.Node) any {
	switch y.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(y.Value, "true")
	case "!!int", "!!float":
		if written := strings.TrimPrefix(y.Value, "+"); json.Valid([]byte(written)) {
			return json.Number(written)
		}
	}
	return y.Value
}

// unreadable returns the finding of a file of which nothing was converted.
func unreadable(offset int, format string, args ...any) []Finding {
	return []Finding{{Kind: Unreadable, offset: offset, Message: fmt.Sprintf(format, args...)}}
}
