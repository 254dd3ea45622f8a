package convert

import (
	"cmp"
	"strconv"
	"unicode/utf8"

	"github.com/penstock-go/penstock/access"
	"github.com/penstock-go/penstock/adaptive"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/isolation"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// nameUniquely gives rules of a kind that would have the same name, mostly because they
// guard the same resource, names with a number: "orders", "orders-2", "orders-3".
func nameUniquely(set *rules.Set) {
	makeNamesUnique(set.Flow, func(r *flow.Rule) (*string, string) { return &r.Name, cmp.Or(r.Resource, r.Match) })
	makeNamesUnique(set.Isolation, func(r *isolation.Rule) (*string, string) { return &r.Name, cmp.Or(r.Resource, r.Match) })
	makeNamesUnique(set.Access, func(r *access.Rule) (*string, string) { return &r.Name, cmp.Or(r.Resource, r.Match) })
	makeNamesUnique(set.HotParam, func(r *hotparam.Rule) (*string, string) { return &r.Name, cmp.Or(r.Resource, r.Match) })
	makeNamesUnique(set.Breaker, func(r *breaker.Rule) (*string, string) { return &r.Name, cmp.Or(r.Resource, r.Match) })
	makeNamesUnique(set.Adaptive, func(r *adaptive.Rule) (*string, string) { return &r.Name, adaptive.DefaultInboundName })
}

// makeNamesUnique works on the rules of one kind. nameOf returns where a rule keeps its
// name, and its default.
func makeNamesUnique[R any](list []R, nameOf func(*R) (name *string, byDefault string)) {
	taken := make(map[string]bool, len(list)) // also by later rules
	for i := range list {
		name, byDefault := nameOf(&list[i])
		taken[cmp.Or(*name, byDefault)] = true
	}
	count := make(map[string]int)
	for i := range list {
		field, byDefault := nameOf(&list[i])
		name := cmp.Or(*field, byDefault)
		if count[name]++; count[name] == 1 {
			continue
		}
		for {
			candidate := numbered(name, count[name])
			if !taken[candidate] {
				*field, taken[candidate] = candidate, true
				break
			}
			count[name]++
		}
	}
}

// numbered appends a number to a name and shortens the name if the result would be too
// long.
func numbered(name string, n int) string {
	suffix := "-" + strconv.Itoa(n)
	end := min(len(name), rule.MaxNameLength-len(suffix))
	for end < len(name) && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + suffix
}
