package rules

import (
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// UnknownKind is a list of a document that has rules of a kind which the table lacks: one of
// another program, or a misspelled one.
type UnknownKind struct {
	Kind rule.Kind

	// Meant is the kind of the table that has nearly the same name; "" if none has.
	Meant rule.Kind

	// Problem is what [Table.Parse] says of the list.
	Problem Problem
}

// ParseKnown is [Table.Parse] for documents that may have rules of kinds that the table lacks.
// Those rules are left out, and unknown says which kinds they are of, in the order of the
// document; on error, too. Nothing of them is judged but that they can be read.
func (t *Table) ParseKnown(name string, data []byte) (set Set, unknown []UnknownKind, err error) {
	set, unknown, problems := t.parse(name, data)
	if err := problems.Err(); err != nil {
		return Set{}, unknown, err
	}
	return set, unknown, nil
}

// unknownKind returns what is known of an entry at the top of a document that looks like the
// list of a kind which the table lacks; false if it does not look like one.
func (t *Table) unknownKind(e entry, kinds []string) (UnknownKind, bool) {
	name := e.key.text
	if e.key.fault != "" || !isCamelCase(name) || slices.Contains(kinds, name) || e.value.kind != document.List {
		return UnknownKind{}, false
	}
	shown := len(e.value.items) == 0
	for _, item := range e.value.items {
		if item.kind != document.Mapping {
			return UnknownKind{}, false
		}
		shown = shown || slices.ContainsFunc(item.entries, func(e entry) bool { return isTarget(e.key.text) })
	}
	if !shown && t.isField(name) {
		return UnknownKind{}, false // it has slipped out of a rule
	}
	u := UnknownKind{Kind: rule.Kind(name), Meant: rule.Kind(rule.Nearest(name, kinds))}
	message, advice := "unknown kind", "the kinds here are "+joined(t.kinds())
	if shown || u.Meant != "" { // else the document may be of another kind
		message += " " + rule.Quote(name)
	}
	if u.Meant != "" {
		advice = fmt.Sprintf("did you mean %q?", u.Meant)
	}
	u.Problem = e.key.problem("", message+": "+advice)
	return u, true
}

// isTarget reports whether a field says which calls a rule is for: each rule has one of these.
func isTarget(field string) bool { return field == "name" || field == "resource" || field == "match" }

// isField reports whether rules of a kind have a field.
func (t *Table) isField(name string) bool {
	return slices.ContainsFunc(t.lists, func(l list) bool { return fields(l.kind().Fields()).find(name) != nil })
}
