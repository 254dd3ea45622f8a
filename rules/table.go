package rules

import (
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

// standard lists the kinds of rules that come with Penstock, in the order of
// documents. A new kind has a row here and a list in [Set].
func standard() []list {
	return []list{
		typedList[flow.Rule]{flow.Kind(), func(s *Set) *[]flow.Rule { return &s.Flow }},
		typedList[isolation.Rule]{isolation.Kind(), func(s *Set) *[]isolation.Rule { return &s.Isolation }},
		typedList[breaker.Rule]{breaker.Kind(), func(s *Set) *[]breaker.Rule { return &s.Breaker }},
		typedList[hotparam.Rule]{hotparam.Kind(), func(s *Set) *[]hotparam.Rule { return &s.HotParam }},
		typedList[access.Rule]{access.Kind(), func(s *Set) *[]access.Rule { return &s.Access }},
		typedList[adaptive.Rule]{adaptive.Kind(), func(s *Set) *[]adaptive.Rule { return &s.Adaptive }},
		typedList[fault.Rule]{fault.Kind(), func(s *Set) *[]fault.Rule { return &s.Fault }},
	}
}

// The names of the kinds that come with Penstock.
const (
	KindFlow      rule.Kind = "flow"
	KindIsolation rule.Kind = "isolation"
	KindBreaker   rule.Kind = "breaker"
	KindHotParam  rule.Kind = "hotParam"
	KindAccess    rule.Kind = "access"
	KindAdaptive  rule.Kind = "adaptive"
	KindFault     rule.Kind = "fault"
)

// Table is the kinds of rules that there are: those that come with Penstock and a
// user's own. It never changes. The functions of this package that need one but are
// not its methods use the kinds that come with Penstock.
type Table struct{ lists []list }

// NewTable returns the kinds that come with Penstock and others. The name of a kind is in
// camel case. NewTable panics when two kinds have the same name, or would have the same
// metrics (see [rule.MetricName]), which is a mistake of the program.
func NewTable(custom ...rule.Definition) *Table {
	t := &Table{lists: standard()}
	for _, kind := range custom {
		t.lists = append(t.lists, customList{kind})
		if fault := nameFault(t.Definitions()); fault != "" {
			panic("rules: " + fault)
		}
	}
	return t
}

// kinds returns the names of the kinds, in the order of documents.
func (t *Table) kinds() []rule.Kind {
	var kinds []rule.Kind
	for _, l := range t.lists {
		kinds = append(kinds, l.kind().Kind())
	}
	return kinds
}

// Definitions returns the kinds, in the order of documents.
func (t *Table) Definitions() []rule.Definition {
	var kinds []rule.Definition
	for _, l := range t.lists {
		kinds = append(kinds, l.kind())
	}
	return kinds
}

func (t *Table) find(kind rule.Kind) list {
	for _, l := range t.lists {
		if l.kind().Kind() == kind {
			return l
		}
	}
	return nil
}

// of returns the table for a set, which may have rules of a user's own kinds.
func (t *Table) of(sets ...Set) *Table {
	all := t
	for _, set := range sets {
		for _, r := range set.Custom {
			if r != nil && all.find(r.Type().Kind()) == nil {
				all = &Table{append(slices.Clip(all.lists), customList{r.Type()})}
			}
		}
	}
	return all
}

// list is the rules of one kind in a set.
type list interface {
	kind() rule.Definition
	count(Set) int

	// all yields the rules with their indexes, as they are in the set.
	all(Set) iter.Seq2[int, rule.Rule]

	// names yields the names of the rules, as they are in the set.
	names(Set) iter.Seq[string]

	// add adds a rule of the kind.
	add(*Set, rule.Rule)

	// compare finds the places where a set has other rules, see [rule.Type.Compare].
	compare(count int, present func(place int) rule.Rule, others Set, different func(place int, present, other rule.Rule) bool)
}

// typedList is the list of a kind that has a field of its own in [Set].
type typedList[R comparable] struct {
	of    *rule.Type[R]
	rules func(*Set) *[]R
}

func (l typedList[R]) kind() rule.Definition { return l.of }

func (l typedList[R]) count(s Set) int { return len(*l.rules(&s)) }

func (l typedList[R]) all(s Set) iter.Seq2[int, rule.Rule] {
	return func(yield func(int, rule.Rule) bool) {
		for i, r := range *l.rules(&s) {
			if !yield(i, l.of.Of(r)) {
				return
			}
		}
	}
}

func (l typedList[R]) names(s Set) iter.Seq[string] {
	return func(yield func(string) bool) {
		rules := *l.rules(&s)
		for i := range rules {
			if !yield(l.of.NameOf(&rules[i])) {
				return
			}
		}
	}
}

func (l typedList[R]) add(s *Set, r rule.Rule) {
	rules := l.rules(s)
	*rules = append(*rules, r.Value().(R))
}

func (l typedList[R]) compare(
	count int, present func(place int) rule.Rule, others Set, different func(place int, present, other rule.Rule) bool,
) {
	l.of.Compare(count, present, *l.rules(&others), different)
}

// customList is the list of a kind of the user's own: those of its rules among
// [Set.Custom].
type customList struct{ of rule.Definition }

func (l customList) kind() rule.Definition { return l.of }

func (l customList) count(s Set) int {
	count := 0
	for range l.all(s) {
		count++
	}
	return count
}

func (l customList) all(s Set) iter.Seq2[int, rule.Rule] {
	return func(yield func(int, rule.Rule) bool) {
		index := 0
		for _, r := range s.Custom {
			if r == nil || r.Type().Kind() != l.of.Kind() {
				continue
			}
			if !yield(index, r) {
				return
			}
			index++
		}
	}
}

func (l customList) names(s Set) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, r := range l.all(s) {
			if !yield(r.Key().Name) {
				return
			}
		}
	}
}

func (l customList) add(s *Set, r rule.Rule) { s.Custom = append(s.Custom, r) }

func (l customList) compare(
	count int, present func(place int) rule.Rule, others Set, different func(place int, present, other rule.Rule) bool,
) {
	var complete []rule.Rule
	for _, r := range l.all(others) {
		complete = append(complete, r.WithDefaults())
	}
	for place := range max(count, len(complete)) {
		var before, after rule.Rule
		if place < count {
			before = present(place)
		}
		if place < len(complete) {
			after = complete[place]
		}
		if before != nil && after != nil && before.Equal(after) {
			continue
		}
		if !different(place, before, after) {
			return
		}
	}
}
