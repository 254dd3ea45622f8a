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
		for _, section := range sections() {
			for key := range section.keys(s) {
				if !yield(key) {
					return
				}
			}
		}
	}
}

// Has says whether the set has the rule of that key.
func (s Set) Has(key Key) bool {
	for k := range s.Keys() {
		if k == key {
			return true
		}
	}
	return false
}
