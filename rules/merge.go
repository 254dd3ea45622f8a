package rules

import (
	"fmt"
	"maps"
	"slices"
)

// Merge joins sets, those of several documents for instance, in their order.
// The sets stay as they are. That each is sound by itself is not judged again,
// only that no two rules of a kind have the same name: the error is [Problems],
// which names both places, and the set is empty then.
func Merge(sets ...Set) (Set, error) {
	merged := Set{positions: make(map[Key]Position)}
	for _, set := range sets {
		maps.Copy(merged.positions, set.positions)
	}
	var problems Problems
	for _, section := range sections() {
		problems = append(problems, section.merge(&merged, sets)...)
	}
	if err := problems.err(); err != nil {
		return Set{}, err
	}
	return merged, nil
}

func (s schema[R]) merge(to *Set, from []Set) Problems {
	var problems Problems
	count := 0
	for i := range from {
		count += s.count(from[i])
	}
	type holder struct{ set, index int }
	first := make(map[string]holder, count) // of the names
	rules := s.rules(to)
	*rules = slices.Grow(*rules, count)
	for j := range from {
		for i, rule := range *s.rules(&from[j]) {
			*rules = append(*rules, rule)
			name := s.fullName(rule)
			if by, taken := first[name]; taken {
				problems = append(problems, s.clash(from[j], i, name, s.whereabouts(from[by.set], name, by.index)))
				continue
			}
			first[name] = holder{j, i}
		}
	}
	return problems
}

// Clashes says which names of a set, which is complete, other rules have: [Problems]
// like those of [Merge], nil if there are none. By describes the other rule that has
// a key, such as "the rule at b.yaml:3:5", and returns "" if there is none. What it
// costs does not depend on how many other rules there are.
func (s Set) Clashes(by func(Key) string) error {
	var problems Problems
	for _, section := range sections() {
		problems = append(problems, section.clashes(s, by)...)
	}
	return problems.err()
}

func (s schema[R]) clashes(set Set, by func(Key) string) Problems {
	var problems Problems
	for i, rule := range *s.rules(&set) {
		name := s.nameOf(rule)
		if other := by(Key{Kind: s.kind, Name: name}); other != "" {
			problems = append(problems, s.clash(set, i, name, other))
		}
	}
	return problems
}

// clash is the problem of a rule whose name another rule has.
func (s schema[R]) clash(set Set, index int, name, by string) Problem {
	problem := s.problem(index, name, nameTaken(by))
	p, _ := set.Position(s.kind, name)
	problem.Document, problem.Line, problem.Column = p.Document, p.Line, p.Column
	return problem
}

// fullName returns the name of a rule that may have left it out.
func (s schema[R]) fullName(rule R) string {
	if name := s.nameOf(rule); name != "" {
		return name
	}
	return s.nameOf(s.fill(rule))
}

// whereabouts tells where the rule of that name stands.
func (s schema[R]) whereabouts(set Set, name string, index int) string {
	if p, ok := set.Position(s.kind, name); ok {
		return "the rule at " + p.String()
	}
	return fmt.Sprintf("%s[%d], made in code", s.kind, index)
}
