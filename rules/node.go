package rules

import (
	"cmp"
	"fmt"

	"github.com/penstock-go/penstock/internal/document"
)

// node is one value of a document, free of the syntax it was written in.
type node struct {
	place
	kind    document.Type
	text    string  // of a scalar: as written, without quotes and escapes
	items   []node  // of a list
	entries []entry // of a mapping, in order, keys given twice included

	// fault says what is wrong with the way the value is written, for whoever
	// knows what rule it belongs to. The value may be judged all the same.
	fault string
}

// entry is one field of a mapping.
type entry struct{ key, value node }

// kindUnread is the kind of a node that has a fault in place of a value.
const kindUnread document.Type = 255

// maxDepth bounds how deep values may nest. Rules need four levels.
const maxDepth = 32

var errTooDeep = fmt.Errorf("more than %d levels of nesting", maxDepth)

// place is a line and a column of a document, as in [Position].
type place struct{ line, column int }

// problem returns a problem at the place, which lacks document and rule.
func (p place) problem(field, message string) Problem {
	return Problem{Line: p.line, Column: p.column, Field: field, Message: message}
}

// String returns what a message says of the value.
func (n node) String() string { return n.value().String() }

// shape returns what a message says of a value that need not be part of a rule: a document
// of another kind may have secrets, so nothing of its content is shown.
func (n node) shape() string {
	switch n.kind {
	case document.Text:
		return "text"
	case document.Number:
		return "a number"
	default:
		return n.String()
	}
}

// value returns the value without its places.
func (n node) value() document.Value {
	v := document.Value{Type: n.kind, Text: n.text}
	for _, item := range n.items {
		v.Items = append(v.Items, item.value())
	}
	for _, e := range n.entries {
		v.Entries = append(v.Entries, document.Entry{Key: e.key.text, KeyType: e.key.kind, Value: e.value.value()})
	}
	return v
}

// nestedFault returns the first thing that is wrong with the way in which something
// within the value is written, "" if nothing is.
func (n node) nestedFault() string {
	for _, e := range n.entries {
		if fault := cmp.Or(e.key.fault, e.value.fault, e.value.nestedFault()); fault != "" {
			return fault
		}
	}
	for _, item := range n.items {
		if fault := cmp.Or(item.fault, item.nestedFault()); fault != "" {
			return fault
		}
	}
	return ""
}
