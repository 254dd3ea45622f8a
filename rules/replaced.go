package rules

import (
	"slices"

	"github.com/penstock-go/penstock/rule"
)

// Replacement is what stands in a set at the place of a rule.
type Replacement struct {
	Place    int       // among the rules of the kind
	From     rule.Rule // that was there; nil if none
	To       rule.Rule // that the set has there, complete; nil if none
	KeepsKey bool      // both are there and have the one key
}

// Replaced compares rules, which are complete, with those of a set, place by place, and returns where they
// differ: by kind, then by place. A rule that has only moved is in From of one place and in To of another.
// present returns how many rules of a kind there are, and which is at a place. Of the rules of the set that differ
// isSound is asked: if it says no to one of them, nothing is returned, and sound is false.
func (t *Table) Replaced(
	present func(rule.Kind) (count int, at func(place int) rule.Rule), to Set, isSound func(rule.Rule) bool,
) (replaced []Replacement, sound bool) {
	const few = 64
	sound = true
	for _, l := range t.of(to).lists {
		count, at := present(l.kind().Kind())
		l.compare(count, at, to, func(place int, before, after rule.Rule) bool {
			if sound = after == nil || isSound(after); !sound {
				return false
			}
			if len(replaced) == few {
				replaced = slices.Grow(replaced, to.Len()) // most may be others
			}
			keepsKey := before != nil && after != nil && before.Key() == after.Key()
			replaced = append(replaced, Replacement{Place: place, From: before, To: after, KeepsKey: keepsKey})
			return true
		})
		if !sound {
			return nil, false
		}
	}
	return replaced, true
}
