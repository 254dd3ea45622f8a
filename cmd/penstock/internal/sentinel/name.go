package sentinel

import (
	"strconv"
	"unicode/utf8"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// nameApart gives the rules that would share a name, mostly as they guard the
// same resource, names of their own: "orders", "orders-2", "orders-3".
func nameApart(list []flow.Rule) {
	taken := make(map[string]bool, len(list)) // also names that later rules have by themselves
	for _, rule := range list {
		taken[rule.WithDefaults().Name] = true
	}
	next := make(map[string]int)
	for i := range list {
		name := list[i].WithDefaults().Name
		if next[name]++; next[name] == 1 {
			continue
		}
		for {
			candidate := numbered(name, next[name])
			if !taken[candidate] {
				list[i].Name, taken[candidate] = candidate, true
				break
			}
			next[name]++
		}
	}
}

// numbered appends a number to a name, which is cut if that makes it too long.
func numbered(name string, n int) string {
	suffix := "-" + strconv.Itoa(n)
	end := min(len(name), rules.MaxNameLength-len(suffix))
	for end < len(name) && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + suffix
}
