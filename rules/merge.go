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
				problem := s.problem(i, name, nameTaken(s.whereabouts(from[by.set], name, by.index)))
				p, _ := from[j].Position(s.kind, name)
				problem.Document, problem.Line, problem.Column = p.Document, p.Line, p.Column
				problems = append(problems, problem)
				continue
			}
			first[name] = holder{j, i}
		}
	}
	return problems
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
