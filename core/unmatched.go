package core

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/rules"
)

// maxUnmatched is how many rules [Status] names that never matched a call.
const maxUnmatched = 100

// Unmatched are the rules in force that no call has matched since they came into
// force: perhaps their resource is misspelled, or nothing guards it. A rule matches a
// call of a resource that it guards, whatever the call's origin. That a name was
// called is forgotten with the name, when it is not called for a minute.
type Unmatched struct {
	Count int
	Rules []rules.Key // the first hundred, by kind and name
}

// noteMatched takes note of the rules that calls have matched, but for those of names
// beyond the bound, whose rules are noted when they are looked up.
func (e *Engine) noteMatched() {
	for _, r := range e.resources.all(e.clock.Now()) {
		if r != e.resources.overflowResource {
			r.noteMatched()
		}
	}
}

// unmatched returns the rules of which no call was noted.
func (b *ruleStore) unmatched() Unmatched {
	var u Unmatched
	for key, active := range b.active {
		if !active.matched.Load() {
			u.Count++
			u.Rules = append(u.Rules, key)
		}
	}
	slices.SortFunc(u.Rules, func(a, b rules.Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	u.Rules = slices.Clip(u.Rules[:min(len(u.Rules), maxUnmatched)])
	return u
}
