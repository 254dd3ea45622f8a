package rules

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/penstock-go/penstock/flow"
)

// A section is one kind of rule, whatever its type.
type section interface {
	// name returns the kind, which is the name of the section in a document.
	name() Kind

	// read adds the rules of a document's section to the set, complete.
	read(document string, value node, to *Set) Problems

	// write returns the rules of the set from the first index to before the end
	// as a section of a document.
	write(set Set, first, end int) node

	sound(Set) bool
	count(Set) int
	validate(Set) Problems
	complete(*Set)
	merge(to *Set, from []Set) Problems

	// clashes returns what is wrong with the set's names, given who else has them.
	clashes(set Set, by func(Key) string) Problems

	// example writes rules that show every field between them.
	example(to *bytes.Buffer) error

	// diff returns how the rules of two sets differ, by name.
	diff(from, to Set) []Difference
}

// sections returns every kind of rule there is. To add a kind, give Set a list
// of its rules, count it in Set.Len and Set.Keys, and describe it here by a schema.
func sections() []section {
	return []section{flowRules()}
}

// schema is the section of the rules of type R.
type schema[R any] struct {
	kind         Kind
	rules        func(*Set) *[]R // where a set keeps them
	nameOf       func(R) string  // of a complete rule
	fill         func(R) R       // completes a rule with its defaults
	judge        func(R) []flow.Fault
	fields       fields[R]
	formerFields []formerField[R]

	examples func() []example[R]
}

func (s schema[R]) name() Kind { return s.kind }

func (s schema[R]) count(set Set) int { return len(*s.rules(&set)) }

func (s schema[R]) complete(set *Set) {
	rules := slices.Clone(*s.rules(set))
	for i, rule := range rules {
		rules[i] = s.fill(rule)
	}
	*s.rules(set) = rules
}

// faults returns what is wrong with a rule by itself: first what the rule says,
// and of the fields that are right by that, what is wrong all the same.
func (s schema[R]) faults(rule *R) []flow.Fault {
	faults := s.judge(*rule)
	for i := range s.fields {
		f := &s.fields[i]
		if f.check == nil {
			continue
		}
		message := f.check(rule)
		if message == "" || slices.ContainsFunc(faults, func(fault flow.Fault) bool { return fault.Field == f.path }) {
			continue
		}
		faults = append(faults, flow.Fault{Field: f.path, Message: message})
	}
	return faults
}

func (s schema[R]) sound(set Set) bool {
	all := *s.rules(&set)
	for i := range all {
		if len(s.faults(&all[i])) > 0 {
			return false
		}
	}
	return true
}

func (s schema[R]) validate(set Set) Problems {
	var problems Problems
	first := make(map[string]int, s.count(set)) // names, to the index of the rule that has them
	all := *s.rules(&set)
	for i := range all {
		name := s.fullName(all[i])
		faults := s.faults(&all[i])
		if other, taken := first[name]; !taken {
			first[name] = i
		} else if name != "" {
			faults = append(faults, nameTaken(fmt.Sprintf("%s[%d]", s.kind, other)))
		}
		for _, fault := range faults {
			problems = append(problems, s.problem(i, name, fault))
		}
	}
	return problems
}

// problem returns the fault as a problem of a rule that has no position.
func (s schema[R]) problem(index int, name string, fault flow.Fault) Problem {
	return Problem{Kind: s.kind, Index: index, Rule: name, Field: fault.Field, Message: fault.Message}
}

// nameTaken is the fault of a rule whose name another rule has.
func nameTaken(by string) flow.Fault {
	return flow.Fault{
		Field:   "name",
		Message: fmt.Sprintf("is taken by %s: give one of them another (the default is the resource)", by),
	}
}
