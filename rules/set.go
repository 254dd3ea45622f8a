package rules

import (
	"fmt"
	"iter"
	"slices"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
)

// Set is the rules of one or more documents, or of code. The zero value has
// none. Its methods write nothing to it, so that a set that nobody changes may
// be used concurrently. Names (the resource or the pattern where the name is left
// out) are unique within a kind.
type Set struct {
	// Flow holds the limits on how much passes in a time.
	Flow []flow.Rule

	// Isolation holds the limits on how many calls are under way at once.
	Isolation []isolation.Rule

	// Breaker holds the circuit breakers.
	Breaker []breaker.Rule

	// HotParam holds the limits for each value of an attribute.
	HotParam []hotparam.Rule

	// Access holds who may call at all.
	Access []access.Rule

	// Adaptive holds what refuses calls while the service is overloaded.
	Adaptive []adaptive.Rule

	// Fault holds the faults to inject.
	Fault []fault.Rule

	// Custom holds rules of kinds that do not come with Penstock, as [rule.Type.Of]
	// makes them. The engine has to know the kinds: see core.Config.Kinds.
	Custom []rule.Rule

	// Serve holds the domains of which requests of proxies are served. They are no rules: engines
	// hand them on to package serve, and other programs ignore them.
	Serve []Domain

	// positions tells where rules stand in documents. It is never written to
	// once a set has been handed out, so copies of the set share it.
	positions map[rule.Key]Position
}

// Len returns how many rules the set has, of all kinds.
func (s Set) Len() int {
	return len(s.Flow) + len(s.Isolation) + len(s.Breaker) + len(s.HotParam) + len(s.Access) + len(s.Adaptive) + len(s.Fault) +
		len(s.Custom)
}

// All yields all rules of the set, complete: by kind, then as they stand.
func (s Set) All() iter.Seq[rule.Rule] { return NewTable().All(s) }

// All is [Set.All] with the rules made by the kinds of the table.
func (t *Table) All(s Set) iter.Seq[rule.Rule] {
	return func(yield func(rule.Rule) bool) {
		for _, l := range t.of(s).lists {
			for _, r := range l.all(s) {
				if !yield(r.WithDefaults()) {
					return
				}
			}
		}
	}
}

// Keys yields the keys of all rules of a set, of which those of custom kinds are complete.
func (s Set) Keys() iter.Seq[rule.Key] { return NewTable().Keys(s) }

// Keys is [Set.Keys] with the kinds of the table. To make a table takes longer than to look at a small set.
func (t *Table) Keys(s Set) iter.Seq[rule.Key] {
	return func(yield func(rule.Key) bool) {
		for _, l := range t.of(s).lists {
			for name := range l.names(s) {
				if !yield(rule.Key{Kind: l.kind().Kind(), Name: name}) {
					return
				}
			}
		}
	}
}

// Position returns where the rule begins in its document; false for a rule that
// the set does not have or that was made in code.
func (s Set) Position(kind rule.Kind, name string) (Position, bool) {
	p, ok := s.positions[rule.Key{Kind: kind, Name: name}]
	return p, ok
}

// Validate judges a set that was made in code: each rule, and that names are
// unique. The error is [Problems], every mistake at once; they name rules by
// their index. A set that [Parse] returned is sound already.
func (s Set) Validate() error {
	problems := append(validateDomains(s), validateCustom(s)...)
	for _, l := range NewTable().of(s).lists {
		problems = append(problems, validate(l, s)...)
	}
	return problems.Err()
}

func validate(l list, s Set) Problems {
	var problems Problems
	kind := l.kind().Kind()
	first := make(map[string]int, l.count(s)) // names, to the index of the rule that has them
	for i, r := range l.all(s) {
		name := r.WithDefaults().Key().Name
		faults := r.Faults()
		if other, taken := first[name]; !taken {
			first[name] = i
		} else if name != "" {
			faults = append(faults, nameTaken(fmt.Sprintf("%s[%d]", kind, other)))
		}
		for _, fault := range faults {
			problems = append(problems, problemOf(kind, i, name, fault))
		}
	}
	return problems
}

// validateCustom judges whether [Set.Custom] has only rules that belong there.
func validateCustom(s Set) (problems Problems) {
	for i, r := range s.Custom {
		if r == nil {
			problems = append(problems, Problem{Message: fmt.Sprintf("Custom[%d] is nil: remove it", i)})
		} else if l := NewTable().find(r.Type().Kind()); l != nil {
			problems = append(problems, Problem{
				Kind: r.Type().Kind(), Index: i, Rule: r.Key().Name,
				Message: "is among the custom rules: put it into the list of its kind",
			})
		}
	}
	return problems
}

// problemOf returns the fault as a problem of a rule that has no position.
func problemOf(kind rule.Kind, index int, name string, fault rule.Fault) Problem {
	return Problem{Kind: kind, Index: index, Rule: name, Field: fault.Field, Message: fault.Message}
}

// nameTaken is the fault of a rule whose name another rule has.
func nameTaken(by string) rule.Fault {
	return rule.Fault{
		Field:   "name",
		Message: fmt.Sprintf("is taken by %s: give one of them another (the default is the resource)", by),
	}
}

// WithRules returns a set that has other rules, and else what the set has.
func (t *Table) WithRules(s Set, rules iter.Seq[rule.Rule]) Set {
	other := Set{Serve: slices.Clone(s.Serve), positions: s.positions}
	for r := range rules {
		if l := t.find(r.Type().Kind()); l != nil {
			l.add(&other, r)
		} else {
			other.Custom = append(other.Custom, r)
		}
	}
	return other
}
