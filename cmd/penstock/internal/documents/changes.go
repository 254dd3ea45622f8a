package documents

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// Changes are the differences between two collections.
type Changes struct {
	Rules     []RuleChange     // added, changed, removed, then moved, each by name
	Documents []DocumentChange // by name
}

// RuleChange is a rule that was added, changed, removed, or moved unchanged to another
// document.
type RuleChange struct {
	rules.Difference
	Moved bool // moved unchanged; Change has no meaning then

	// From and To are the documents that contain the rule, "" if none does. They
	// also differ if a changed rule moves.
	From, To string
}

// Word returns "added", "changed", "removed" or "moved".
func (c RuleChange) Word() string {
	if c.Moved {
		return "moved"
	}
	return string(c.Change)
}

// DocumentChange is a document that differs, perhaps only in comments.
type DocumentChange struct {
	Name   string
	Change rules.Change
}

// Compare returns the changes from one collection to another.
func Compare(from, to Collection) Changes {
	return Changes{Rules: compareRules(from, to), Documents: compareDocuments(from.Documents, to.Documents)}
}

// None reports whether the collections are equal, byte for byte.
func (c Changes) None() bool { return len(c.Rules) == 0 && len(c.Documents) == 0 }

// Removed returns how many documents are deleted.
func (c Changes) Removed() int {
	n := 0
	for _, d := range c.Documents {
		if d.Change == rules.Removed {
			n++
		}
	}
	return n
}

func compareRules(from, to Collection) []RuleChange {
	var changes []RuleChange
	compared := make(map[rule.Key]bool)
	for _, d := range rules.Diff(from.Rules, to.Rules) {
		compared[rule.Key{Kind: d.Kind, Name: d.Name}] = true
		changes = append(changes, RuleChange{Difference: d, From: from.documentOf(d.Kind, d.Name), To: to.documentOf(d.Kind, d.Name)})
	}
	var moved []RuleChange
	for key := range to.Rules.Keys() {
		before, after := from.documentOf(key.Kind, key.Name), to.documentOf(key.Kind, key.Name)
		if !compared[key] && before != after {
			d := rules.Difference{Kind: key.Kind, Name: key.Name}
			moved = append(moved, RuleChange{Difference: d, Moved: true, From: before, To: after})
		}
	}
	slices.SortFunc(moved, func(a, b RuleChange) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return append(changes, moved...)
}

func compareDocuments(from, to []Document) []DocumentChange {
	before := make(map[string][]byte, len(from))
	for _, d := range from {
		before[d.Name] = d.Data
	}
	var changes []DocumentChange
	for _, d := range to {
		data, there := before[d.Name]
		delete(before, d.Name)
		switch {
		case !there:
			changes = append(changes, DocumentChange{d.Name, rules.Added})
		case !bytes.Equal(data, d.Data):
			changes = append(changes, DocumentChange{d.Name, rules.Changed})
		}
	}
	for name := range before {
		changes = append(changes, DocumentChange{name, rules.Removed})
	}
	slices.SortFunc(changes, func(a, b DocumentChange) int { return cmp.Compare(a.Name, b.Name) })
	return changes
}
