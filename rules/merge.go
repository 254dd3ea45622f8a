package rules

import (
	"fmt"
	"maps"
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
	first := make(map[string]string) // names, to where the rule stands that has them
	rules := s.rules(to)
	for _, set := range from {
		for i, rule := range *s.rules(&set) {
			*rules = append(*rules, rule)
			name := s.nameOf(s.fill(rule))
			p, ok := set.Position(s.kind, name)
			if by, taken := first[name]; taken {
				problem := s.problem(i, name, nameTaken(by))
				problem.Document, problem.Line, problem.Column = p.Document, p.Line, p.Column
				problems = append(problems, problem)
				continue
			}
			first[name] = fmt.Sprintf("%s[%d], made in code", s.kind, i)
			if ok {
				first[name] = "the rule at " + p.String()
			}
		}
	}
	return problems
}
