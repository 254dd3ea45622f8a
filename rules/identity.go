package rules

import "iter"

// Key identifies a rule among all rules in force.
type Key struct {
	Kind Kind
	Name string
}

// Keys yields the keys of all rules of a set that is complete, see
// [Set.WithDefaults].
func (s Set) Keys() iter.Seq[Key] {
	return func(yield func(Key) bool) {
		for i := range s.Flow {
			if !yield(Key{KindFlow, s.Flow[i].Name}) {
				return
			}
		}
	}
}
