package rules

import (
	"fmt"
	"regexp"
)

// node is one value of a document, free of the syntax it was written in.
type node struct {
	place
	kind    nodeKind
	text    string  // of a scalar: as written, without quotes and escapes
	items   []node  // of a list
	entries []entry // of a mapping, in order, keys given twice included

	// fault says what is wrong with the way the value is written, for whoever
	// knows what rule it belongs to. The value may be judged all the same.
	fault string
}

// entry is one field of a mapping.
type entry struct{ key, value node }

type nodeKind int

const (
	kindNull nodeKind = iota
	kindBoolean
	kindNumber
	kindText
	kindList
	kindMapping
	kindUnread // there is a fault in place of a value
)

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
func (n node) String() string {
	switch n.kind {
	case kindNull:
		return "left empty"
	case kindText:
		return quote(n.text)
	case kindList:
		if len(n.items) == 0 {
			return "an empty list"
		}
		return "a list"
	case kindMapping:
		if len(n.entries) == 0 {
			return "an empty mapping"
		}
		return "a mapping"
	default:
		return n.text
	}
}

// numeral matches the numbers of the core schema of YAML 1.2, those of JSON
// among them.
var numeral = regexp.MustCompile(`^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?` +
	`|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)

// plainKind tells what text is that stands in YAML without quotes.
func plainKind(plain string) nodeKind {
	switch plain {
	case "", "~", "null", "Null", "NULL":
		return kindNull
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return kindBoolean
	}
	if numeral.MatchString(plain) {
		return kindNumber
	}
	return kindText
}
