package rules

import (
	"slices"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// Kind is a kind of rule, named as its list is in a document.
type Kind = rule.Kind

// KindFlow is the kind of [flow.Rule].
const KindFlow Kind = "flow"

// Set is the rules of one or more documents, or of code. The zero value has
// none. Its methods write nothing to it, so that a set that nobody changes may
// be used concurrently.
type Set struct {
	// Flow holds the rate ceilings. Their names (the resource where the name is
	// left out) are unique.
	Flow []flow.Rule

	// positions tells where rules stand in documents. It is never written to
	// once a set has been handed out, so copies of the set share it.
	positions map[Key]Position
}

// Len returns how many rules the set has, of all kinds.
func (s Set) Len() int { return len(s.Flow) }

// Position returns where the rule begins in its document; false for a rule that
// the set does not have or that was made in code.
func (s Set) Position(kind Kind, name string) (Position, bool) {
	p, ok := s.positions[Key{Kind: kind, Name: name}]
	return p, ok
}

// Validate judges a set that was made in code: each rule, and that names are
// unique. The error is [Problems], every mistake at once; they name rules by
// their index. A set that [Parse] returned is sound already.
func (s Set) Validate() error {
	var problems Problems
	for _, section := range sections() {
		problems = append(problems, section.validate(s)...)
	}
	return problems.err()
}

// Sound says whether [Set.Validate] would find nothing wrong but names that several
// rules have. It is for those who know the names to be unique, and allocates
// nothing where all is well.
func (s Set) Sound() bool {
	return !slices.ContainsFunc(sections(), func(section section) bool { return !section.sound(s) })
}

// WithDefaults returns a deep copy with every field that a rule leaves out
// filled in. See [flow.Rule.WithDefaults].
func (s Set) WithDefaults() Set {
	for _, section := range sections() {
		section.complete(&s)
	}
	return s
}
