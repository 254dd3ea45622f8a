package documents

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/rules"
)

// Changes is what makes one collection of another.
type Changes struct {
	Rules     []RuleChange     // added, changed, removed, then moved, each by name
	Documents []DocumentChange // by name
}

// RuleChange is a rule that was added, changed, removed, or moved to another
// document as it is.
type RuleChange struct {
	rules.Difference
	Moved bool // and no more than that: Change means nothing then

	// From and To are the documents that the rule stands in, "" when it is not
	// there. They differ when a changed rule moves, too.
	From, To string
}

// Word returns what became of the rule: "added", "changed", "removed" or
// "moved".
func (c RuleChange) Word() string {
	if c.Moved {
		return "moved"
	}
	return c.Change.String()
}

// DocumentChange is a document that is not the same, be it in comments alone.
type DocumentChange struct {
	Name   string
	Change rules.Change
}

// Compare returns what has to be done to make one collection of the other.
func Compare(from, to Collection) Changes {
	return Changes{Rules: compareRules(from, to), Documents: compareDocuments(from.Documents, to.Documents)}
}

// None tells whether the collections are the same, byte for byte.
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
	told := make(map[rules.Key]bool)
	for _, d := range rules.Diff(from.Rules, to.Rules) {
		told[rules.Key{Kind: d.Kind, Name: d.Name}] = true
		changes = append(changes, RuleChange{Difference: d, From: from.home(d.Kind, d.Name), To: to.home(d.Kind, d.Name)})
	}
	var moved []RuleChange
	for key := range to.Rules.Keys() {
		before, after := from.home(key.Kind, key.Name), to.home(key.Kind, key.Name)
		if !told[key] && before != after {
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
