package documents

import (
	"errors"

	"github.com/penstock-go/penstock/rules"
)

// Collection is documents with what they say.
type Collection struct {
	Documents []Document

	// Rules are those of the documents without mistakes.
	Rules rules.Set

	// Problems are the mistakes of all documents, then those across them, which
	// name the documents by their places.
	Problems rules.Problems

	names map[string]string // of the documents, by place
}

// Judge reads what documents say. Rules whose names are taken by those of an
// earlier document are mistakes, and so are left out.
func Judge(documents []Document) Collection {
	c := Collection{Documents: documents, names: make(map[string]string, len(documents))}
	var sets []rules.Set
	for _, d := range documents {
		c.names[d.place()] = d.Name
		set, err := rules.Parse(d.place(), d.Data)
		if c.report(err) {
			sets = append(sets, set)
		}
	}
	merged, err := rules.Merge(sets...)
	if !c.report(err) {
		merged = c.mergeSound(sets)
	}
	c.Rules = merged
	return c
}

// report adds the problems that an error holds and tells whether there was none.
func (c *Collection) report(err error) bool {
	if problems, ok := errors.AsType[rules.Problems](err); ok {
		c.Problems = append(c.Problems, problems...)
	}
	return err == nil
}

// mergeSound merges the sets that take no names of earlier ones.
func (c *Collection) mergeSound(sets []rules.Set) rules.Set {
	taken := make(map[rules.Key]bool)
	var sound []rules.Set
next:
	for _, set := range sets {
		for key := range set.Keys() {
			if taken[key] {
				continue next
			}
		}
		for key := range set.Keys() {
			taken[key] = true
		}
		sound = append(sound, set)
	}
	merged, _ := rules.Merge(sound...) // no name is taken twice
	return merged
}

// home returns the name of the document that a rule stands in, "" when it is in
// none.
func (c Collection) home(kind rules.Kind, name string) string {
	at, _ := c.Rules.Position(kind, name)
	return c.names[at.Document]
}
