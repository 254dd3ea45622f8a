package documents

import (
	"errors"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Collection is documents with their rules and mistakes.
type Collection struct {
	Documents []Document

	// Rules are the rules of the documents without mistakes.
	Rules rules.Set

	// Problems are the mistakes in single documents, then the conflicts between
	// documents. They name documents by place.
	Problems rules.Problems

	// Unknown are the kinds of rules that are not known and no mistakes, in the order of the
	// documents. Their rules are not among Rules.
	Unknown []UnknownKind

	// KindsRejected says that unknown kinds are among the problems.
	KindsRejected bool

	names map[string]string // of the documents, by place
}

// Judge parses and validates documents by the kinds of the table. A rule with the same name as
// one of an earlier document is a mistake; the rules of such a document are left out.
func Judge(table *rules.Table, documents []Document, unknown UnknownKinds) Collection {
	c := Collection{Documents: documents, names: make(map[string]string, len(documents))}
	var sets []rules.Set
	for _, d := range documents {
		c.names[d.place()] = d.Name
		set, err := c.parse(table, d, unknown)
		if c.addProblems(err) {
			sets = append(sets, set)
		}
	}
	merged, err := rules.Merge(sets...)
	if !c.addProblems(err) {
		merged = c.mergeValid(sets)
	}
	c.Rules = merged
	return c
}

// addProblems adds the problems in an error. It returns whether the error is nil.
func (c *Collection) addProblems(err error) bool {
	if problems, ok := errors.AsType[rules.Problems](err); ok {
		c.Problems = append(c.Problems, problems...)
	}
	return err == nil
}

// mergeValid merges the sets that have no rule names in common with earlier ones, and say the same of
// domains.
func (c *Collection) mergeValid(sets []rules.Set) rules.Set {
	taken := make(map[rule.Key]bool)
	var domains rules.Set // what is said of them so far
	var valid []rules.Set
next:
	for _, set := range sets {
		said, err := rules.Merge(domains, rules.Set{Serve: set.Serve})
		if err != nil {
			continue
		}
		for key := range set.Keys() {
			if taken[key] {
				continue next
			}
		}
		for key := range set.Keys() {
			taken[key] = true
		}
		valid, domains = append(valid, set), said
	}
	merged, _ := rules.Merge(valid...) // no name is taken twice
	return merged
}

// documentOf returns the name of the document that contains a rule, "" if none does.
func (c Collection) documentOf(kind rule.Kind, name string) string {
	at, _ := c.Rules.Position(kind, name)
	return c.names[at.Document]
}
