package documents

import (
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// UnknownKinds says what [Judge] does about rules of kinds that it does not know, such as those
// of a program that brings its own.
type UnknownKinds uint8

const (
	// Mistakes are all of them: the default.
	Mistakes UnknownKinds = iota

	// MisspelledAreMistakes leaves out the rules of unknown kinds, except of those whose names are
	// nearly that of a known one.
	MisspelledAreMistakes

	// LeftOut leaves out the rules of all of them.
	LeftOut
)

// UnknownKind is a kind of rules in a document that is not known.
type UnknownKind struct {
	Document string // its name
	Kind     rule.Kind
	Line     int
}

// allows reports whether an unknown kind is left out rather than a mistake.
func (u UnknownKinds) allows(kind rules.UnknownKind) bool {
	return u == LeftOut || u == MisspelledAreMistakes && kind.Meant == ""
}

// parse reads a document, and adds the unknown kinds that are allowed in it to the collection.
func (c *Collection) parse(table *rules.Table, d Document, unknown UnknownKinds) (rules.Set, error) {
	set, found, err := table.ParseKnown(d.place(), d.Data)
	for _, u := range found {
		if !unknown.allows(u) {
			c.KindsRejected = true
			return table.Parse(d.place(), d.Data) // which says it with all other mistakes
		}
	}
	for _, u := range found {
		c.Unknown = append(c.Unknown, UnknownKind{d.Name, u.Kind, u.Problem.Line})
	}
	return set, err
}
