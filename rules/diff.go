package rules

import (
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/penstock-go/penstock/internal/document"
	"github.com/penstock-go/penstock/rule"
)

// Diff returns what has to be done to make one set of the other: the rules
// added, then those changed, then those removed, each by kind and name. Rules are told
// by their names; where and in which order they stand makes no difference, nor
// does a default that one set writes out and the other does not. Both sets are
// sound; see [Set.Validate].
func Diff(from, to Set) []Difference {
	differences := diffDomains(from, to)
	for _, l := range NewTable().of(from, to).lists {
		differences = append(differences, diff(l, from, to)...)
	}
	slices.SortStableFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Change, b.Change) })
	return differences
}

// diff returns the differences between the rules of a kind, by name.
func diff(l list, from, to Set) []Difference {
	before, after := byName(l, from), byName(l, to)
	kind := l.kind().Kind()
	var differences []Difference
	for name, next := range after {
		d := Difference{Kind: kind, Name: name, Change: Added}
		old, there := before[name]
		if there {
			d.Change = Changed
		}
		d.Fields = diffFields(old, next)
		if !there || len(d.Fields) > 0 {
			differences = append(differences, d)
		}
	}
	for name, old := range before {
		if _, there := after[name]; !there {
			differences = append(differences, Difference{Kind: kind, Name: name, Change: Removed, Fields: diffFields(old, nil)})
		}
	}
	slices.SortFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Name, b.Name) })
	return differences
}

// byName returns the rules of a kind, complete.
func byName(l list, set Set) map[string]rule.Rule {
	rules := make(map[string]rule.Rule)
	for _, r := range l.all(set) {
		r = r.WithDefaults()
		rules[r.Key().Name] = r
	}
	return rules
}

// diffFields returns the fields, except the name, in which two complete rules of
// one name differ; nil stands for a rule that is not there.
func diffFields(from, to rule.Rule) []FieldDifference {
	either := from
	if from == nil {
		either = to
	}
	var differences []FieldDifference
	for _, f := range either.Type().Fields() {
		same := from != nil && to != nil && from.SameField(f.Path, to)
		said := says(f, from) || says(f, to)
		if said && !same && f.Path != "name" {
			differences = append(differences, FieldDifference{f.Path, fieldText(f, from), fieldText(f, to)})
		}
	}
	return differences
}

// fieldText returns what a complete rule has in the field, "" when it has nothing.
func fieldText(f document.Field, r rule.Rule) string {
	if r == nil {
		return ""
	}
	written := r.Get(f.Path)
	if f.Missing == "" && written.Type != document.Boolean && r.SameField(f.Path, r.Type().Draft()) {
		return ""
	}
	return textOf(written)
}

// textOf returns a value as a document writes it on one line, less quotes if it is a
// scalar.
func textOf(v document.Value) string {
	if v.Type != document.List && v.Type != document.Mapping {
		return v.Text
	}
	y := toYAML(v)
	y.Style |= yaml.FlowStyle
	text, err := yaml.Dump(y)
	if err != nil {
		return v.String()
	}
	return strings.TrimSpace(string(text))
}

// Written returns the fields that a document of the rule has, in the order of writing,
// without the name and what is there by default: each with its value, less quotes, in To.
func Written(r rule.Rule) []FieldDifference { return diffFields(nil, r.WithDefaults()) }
