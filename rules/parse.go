package rules

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/penstock-go/penstock/internal/document"
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
func Parse(name string, data []byte) (Set, error) { return NewTable().Parse(name, data) }

// Parse is [Parse] for the kinds of the table.
func (t *Table) Parse(name string, data []byte) (Set, error) {
	set, unknown, problems := t.parse(name, data)
	for _, u := range unknown {
		problems = append(problems, u.Problem)
	}
	if err := problems.Err(); err != nil {
		return Set{}, err
	}
	return set, nil
}

// parse reads and judges a document. Lists of kinds that the table lacks are not among the
// problems.
func (t *Table) parse(name string, data []byte) (Set, []UnknownKind, Problems) {
	set := Set{positions: make(map[rule.Key]Position)}
	var unknown []UnknownKind
	root, problems := readTree(name, data)
	if problems == nil {
		unknown, problems = t.readLists(name, root, &set)
	}
	for i := range problems {
		problems[i].Document = name
	}
	for i := range unknown {
		unknown[i].Problem.Document = name
	}
	return set, unknown, problems
}

// readTree returns what the document says, be it YAML or JSON.
func readTree(name string, data []byte) (node, Problems) {
	if len(data) > MaxDocumentSize {
		return node{}, Problems{place{1, 1}.problem("", fmt.Sprintf(
			"the document is %d bytes long: the most is %d; make several of it", len(data), MaxDocumentSize))}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if problems := checkText(data); problems != nil {
		return node{}, problems
	}
	if begin := bytes.TrimLeft(data, blank); isJSON(name) && len(begin) > 0 && (begin[0] == '{' || begin[0] == '[') {
		if problems := checkJSON(data); problems != nil {
			return node{}, problems
		}
		return readJSON(data)
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

// isJSON reports whether a document has the name of a JSON file.
func isJSON(name string) bool { return strings.ToLower(path.Ext(name)) == ".json" }

// blank is the white space of JSON.
const blank = " \t\r\n"

// readLists reads the top of a document: kinds of rules and their lists.
func (t *Table) readLists(name string, root node, to *Set) ([]UnknownKind, Problems) {
	top, unknown, problems := t.readTop(root)
	switch root.kind {
	case document.Mapping:
	case document.Null:
		return nil, append(problems, root.problem("", fmt.Sprintf(
			`the document is empty: write "%s: []" for a document without rules`, KindFlow)))
	default:
		return nil, append(problems, root.problem("", fmt.Sprintf(
			`the document is %v: must be a mapping of kinds to lists of rules; write "%s: []" for none`, root.shape(), KindFlow)))
	}
	for _, e := range top {
		if e.value.fault != "" {
			problems = append(problems, e.value.problem(e.key.text, e.value.fault))
		}
		switch {
		case e.value.kind == kindUnread:
		case e.key.text == string(kindServe):
			problems = append(problems, readServe(name, e.value, to)...)
		default:
			problems = append(problems, readList(t.find(rule.Kind(e.key.text)), name, e.value, to)...)
		}
	}
	return unknown, problems
}

// readTop returns the entries of a document that are kinds of rules, those that are kinds which
// the table lacks, and what is wrong with the others. Keys that are no words of rules are not
// shown: the document may be of another kind.
func (t *Table) readTop(root node) (top []entry, unknown []UnknownKind, problems Problems) {
	var kinds []string
	for _, kind := range t.kinds() {
		kinds = append(kinds, string(kind))
	}
	kinds = append(kinds, string(kindServe)) // which is a field like them
	shown := root
	shown.entries = nil
	for _, e := range root.entries {
		u, isKind := t.unknownKind(e, kinds)
		first := slices.IndexFunc(unknown, func(other UnknownKind) bool { return other.Kind == u.Kind })
		switch {
		case isKind && first >= 0:
			problems = append(problems, e.key.problem("", fmt.Sprintf(
				"a list of rules is given twice, first on line %d: remove one", unknown[first].Problem.Line)))
			continue
		case isKind:
			unknown = append(unknown, u)
			continue
		case t.isWord(e.key.text, kinds):
			shown.entries = append(shown.entries, e)
			continue
		}
		problems = append(problems, e.key.problem("", "unknown field: the fields here are "+strings.Join(kinds, ", ")))
	}
	keys := judgeKeys(shown, "", kinds)
	switch {
	case root.fault != "" && len(keys.entries) == 0:
		problems = append(problems, root.problem("", "the document has an anchor or a tag, or is an alias, which are not supported"))
	case root.fault != "":
		problems = append(problems, root.problem("", "the document "+root.fault))
	}
	return keys.entries, unknown, append(problems, keys.problems...)
}

// isWord reports whether a key may stand at the top of a document, or seems to mean one that
// may, or is a field of rules.
func (t *Table) isWord(key string, kinds []string) bool {
	return key == mergeKey || slices.Contains(kinds, key) || rule.Nearest(key, kinds) != "" || t.isField(key)
}
