package rules

import (
	"iter"

	"github.com/penstock-go/penstock/rule"
)

// Key identifies a rule: names are unique within a kind.
type Key = rule.Key

// Keys yields the keys of all rules of a set that is complete, see
// [Set.WithDefaults].
func (s Set) Keys() iter.Seq[Key] {
	return func(yield func(Key) bool) {
		for i := range s.Flow {
			if !yield(Key{Kind: KindFlow, Name: s.Flow[i].Name}) {
				return
			}
		}
	}
}
