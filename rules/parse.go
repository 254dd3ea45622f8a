package rules

import (
	"bytes"
	"fmt"

	"github.com/penstock-go/penstock/rule"
)

// MaxDocumentSize is how many bytes a document may have.
const MaxDocumentSize = 1 << 20

// Parse reads and judges one rule document. The name of the document stands in
// positions and messages, and is best what a user knows it by: a path, a key.
//
// The rules returned are complete: what the document leaves out has its
// default. On error the set is empty and the error is [Problems]: every mistake
// of the document, or the first one of its syntax.
func Parse(document string, data []byte) (Set, error) { return NewTable().Parse(document, data) }

// Parse is [Parse] for the kinds of the table.
func (t *Table) Parse(document string, data []byte) (Set, error) {
	set := Set{positions: make(map[Key]Position)}
	root, problems := readTree(data)
	if problems == nil {
		problems = t.readLists(document, root, &set)
	}
	for i := range problems {
		problems[i].Document = document
	}
	if err := problems.err(); err != nil {
		return Set{}, err
	}
	return set, nil
}

// readTree returns what the document says, be it YAML or JSON.
func readTree(data []byte) (node, Problems) {
	if len(data) > MaxDocumentSize {
		return node{}, Problems{place{1, 1}.problem("", fmt.Sprintf(
			"the document is %d bytes long: the most is %d; make several of it", len(data), MaxDocumentSize))}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if problems := checkText(data); problems != nil {
		return node{}, problems
	}
	inner, braced := bytes.CutPrefix(bytes.TrimLeft(data, blank), []byte("{"))
	if !braced {
		return readYAML(data)
	}
	syntax := checkJSON(data)
	if syntax == nil {
		return readJSON(data)
	}
	root, problems := readYAML(data)
	if problems != nil && bytes.HasPrefix(bytes.TrimLeft(inner, blank), []byte(`"`)) {
		return node{}, syntax
	}
	return root, problems
}

// blank is the white space of JSON.
const blank = " \t\r\n"

// readLists reads the top of a document: kinds of rules and their lists.
func (t *Table) readLists(document string, root node, to *Set) Problems {
	var problems Problems
	if root.fault != "" {
		problems = append(problems, root.problem("", "the document "+root.fault))
	}
	switch root.kind {
	case rule.Mapping:
	case rule.Null:
		return append(problems, root.problem("", fmt.Sprintf(
			`the document is empty: write "%s: []" for a document without rules`, KindFlow)))
	default:
		return append(problems, root.problem("", fmt.Sprintf(
			`the document is %v: must be a mapping of kinds to lists of rules; write "%s: []" for none`, root, KindFlow)))
	}
	var names []string
	for _, kind := range t.Kinds() {
		names = append(names, string(kind))
	}
	keys := judgeKeys(root, "", names)
	problems = append(problems, keys.problems...)
	for _, e := range keys.entries {
		if e.value.fault != "" {
			problems = append(problems, e.value.problem(e.key.text, e.value.fault))
		}
		if e.value.kind != kindUnread {
			problems = append(problems, readList(t.find(Kind(e.key.text)), document, e.value, to)...)
		}
	}
	return problems
}
