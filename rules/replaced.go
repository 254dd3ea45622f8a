package rules

import (
	"slices"

	"github.com/penstock-go/penstock/internal/parts"
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
//
// If there are many rules of a kind that comes with Penstock, several goroutines compare and ask.
func (t *Table) Replaced(
	present func(rule.Kind) (count int, at func(place int) rule.Rule), to Set, isSound func(rule.Rule) bool,
) (replaced []Replacement, sound bool) {
	for _, l := range t.of(to).lists {
		count, at := present(l.kind().Kind())
		total := max(count, l.count(to))
		var found [parts.Max][]Replacement
		var faulty [parts.Max]bool
		compare := func(part, from, past int) {
			room := past
			if part == 0 {
				room = total // the others are added
			}
			found[part], faulty[part] = replacedIn(l, from, past, room, at, to, isSound)
		}
		if _, isCustom := l.(customList); isCustom {
			compare(0, 0, total) // it may panic, which is the caller's
		} else {
			parts.Of(total, compare)
		}
		if slices.Contains(faulty[:], true) {
			return nil, false
		}
		for _, list := range found {
			if replaced == nil {
				replaced = list
			} else {
				replaced = append(replaced, list...)
			}
		}
	}
	return replaced, true
}

// replacedIn returns where the rules of a list differ, from one place on and before another, and whether one of
// the set is faulty. If there are many, it makes room for those up to another place.
func replacedIn(
	l list, from, past, room int, at func(place int) rule.Rule, to Set, isSound func(rule.Rule) bool,
) (replaced []Replacement, faulty bool) {
	const few = 64
	l.compare(from, past, at, to, func(place int, before, after rule.Rule) bool {
		if after != nil && !isSound(after) {
			faulty = true
			return false
		}
		if len(replaced) == few {
			replaced = slices.Grow(replaced, room-place) // most may be others
		}
		keepsKey := before != nil && after != nil && before.Key() == after.Key()
		replaced = append(replaced, Replacement{Place: place, From: before, To: after, KeepsKey: keepsKey})
		return true
	})
	return replaced, faulty
}
