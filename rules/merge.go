package rules

import (
	"fmt"
	"maps"

	"github.com/penstock-go/penstock/rule"
)

// Merge joins sets, those of several documents for instance, in their order.
// The sets stay as they are. That each is sound by itself is not judged again,
// only that no two rules of a kind have the same name, and that all say the same of a
// domain: the error is [Problems], which names both places, and the set is empty then.
func Merge(sets ...Set) (Set, error) {
	merged := Set{positions: make(map[rule.Key]Position)}
	for _, set := range sets {
		maps.Copy(merged.positions, set.positions)
	}
	problems := mergeDomains(&merged, sets)
	for _, l := range NewTable().of(sets...).lists {
		problems = append(problems, merge(l, &merged, sets)...)
	}
	if err := problems.Err(); err != nil {
		return Set{}, err
	}
	return merged, nil
}

func merge(l list, to *Set, from []Set) Problems {
	var problems Problems
	type holder struct{ set, index int }
	first := make(map[rule.Key]holder) // of the names
	for j, set := range from {
		for i, r := range l.all(set) {
			l.add(to, r)
			key := r.WithDefaults().Key()
			if by, taken := first[key]; taken {
				problems = append(problems, clash(set, key, i, whereabouts(from[by.set], key, by.index)))
				continue
			}
			first[key] = holder{j, i}
		}
	}
	return problems
}

// clash is the problem of a rule of a set, at that index, whose name another rule has.
// by describes the other, such as "the rule at b.yaml:3:5".
func clash(set Set, key rule.Key, index int, by string) Problem {
	problem := problemOf(key.Kind, index, key.Name, nameTaken(by))
	p, _ := set.Position(key.Kind, key.Name)
	problem.Document, problem.Line, problem.Column = p.Document, p.Line, p.Column
	return problem
}

// Clashes says which names of a set other rules have: [Problems]
// like those of [Merge], nil if there are none. By describes the other rule that has
// a key, such as "the rule at b.yaml:3:5", and returns "" if there is none. What it
// costs does not depend on how many other rules there are.
func (t *Table) Clashes(set Set, by func(rule.Key) string) error {
	var problems Problems
	for _, l := range t.of(set).lists {
		for i, r := range l.all(set) {
			key := r.WithDefaults().Key()
			if other := by(key); other != "" {
				problems = append(problems, clash(set, key, i, other))
			}
		}
	}
	return problems.Err()
}

// whereabouts tells where the rule of that key stands.
func whereabouts(set Set, key rule.Key, index int) string {
	if p, ok := set.Position(key.Kind, key.Name); ok {
		return "the rule at " + p.String()
	}
	return fmt.Sprintf("%s[%d], made in code", key.Kind, index)
}
