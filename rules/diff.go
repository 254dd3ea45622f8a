package rules

import (
	"cmp"
	"slices"
)

// Diff returns what has to be done to make one set of the other: the rules
// added, then those changed, then those removed, each by name. Rules are told
// by their names; where and in which order they stand makes no difference, nor
// does a default that one set writes out and the other does not. Both sets are
// sound; see [Set.Validate].
func Diff(from, to Set) []Difference {
	var differences []Difference
	for _, section := range sections() {
		differences = append(differences, section.diff(from, to)...)
	}
	slices.SortStableFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Change, b.Change) })
	return differences
}

// diff returns the differences between the rules of the kind, by name.
func (s schema[R]) diff(from, to Set) []Difference {
	before, after := s.byName(from), s.byName(to)
	var differences []Difference
	for name, rule := range after {
		d := Difference{Kind: s.kind, Name: name, Change: Added}
		old, there := before[name]
		if there {
			d.Change = Changed
		}
		d.Fields = s.diffFields(old, rule)
		if !there || len(d.Fields) > 0 {
			differences = append(differences, d)
		}
	}
	for name, rule := range before {
		if _, there := after[name]; !there {
			differences = append(differences,
				Difference{Kind: s.kind, Name: name, Change: Removed, Fields: s.diffFields(rule, nil)})
		}
	}
	slices.SortFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Name, b.Name) })
	return differences
}

// byName returns the rules of the set, complete.
func (s schema[R]) byName(set Set) map[string]*R {
	rules := make(map[string]*R)
	for _, rule := range *s.rules(&set) {
		rule = s.fill(rule)
		rules[s.nameOf(rule)] = &rule
	}
	return rules
}

// diffFields returns the fields, except the name, in which two complete rules of
// one name differ; nil stands for a rule that is not there.
func (s schema[R]) diffFields(from, to *R) []FieldDifference {
	var differences []FieldDifference
	for _, f := range s.fields {
		same := from != nil && to != nil && f.equal(from, to)
		said := s.says(f, from) || s.says(f, to)
		if said && !same && f.path != "name" {
			differences = append(differences, FieldDifference{f.path, f.value(from), f.value(to)})
		}
	}
	return differences
}

// value returns what a complete rule has in the field, "" when it has nothing.
func (f field[R]) value(rule *R) string {
	if rule == nil {
		return ""
	}
	var nothing R
	written := f.write(rule)
	if f.missing == "" && written.kind != kindBoolean && f.equal(rule, &nothing) {
		return ""
	}
	return written.text
}
