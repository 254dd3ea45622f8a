package inforce

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/rule"
)

// maxRemoved is how many rules that were removed are remembered.
const maxRemoved = 1000

// Removed are rules that were removed, or made to count other calls, and have
// counted something that would still count: one that comes back, under its name and
// for the same calls, goes on from there. Of each name only the last is remembered,
// and only if it has one limiter for all of its resources. The zero value is empty;
// core.ruleStore.mu guards it.
type Removed struct {
	byKey  map[rule.Key]*RemovedRule
	oldest []*RemovedRule // in the order in which they were removed, some of them back by now
}

// RemovedRule is what is remembered of a rule.
type RemovedRule struct {
	key         rule.Key
	target      rule.Target
	Limiter     call.VersionedLimiter
	Transitions *Transitions
	Forced      *Forced
}

// Keep remembers a rule that was removed.
func (r *Removed) Keep(a *Rule) {
	if !a.SharesLimiter || a.Related() != "" {
		return
	}
	if r.byKey == nil {
		r.byKey = make(map[rule.Key]*RemovedRule)
	}
	removed := &RemovedRule{a.Key, a.Target(), a.Shared, a.Transitions, a.Forced.Load()}
	r.byKey[a.Key] = removed
	r.oldest = append(r.oldest, removed)
}

// Prune forgets those that have nothing to tell any more, or are too many.
func (r *Removed) Prune(now clock.Instant) {
	for len(r.oldest) > maxRemoved || len(r.oldest) > 0 && r.oldest[0].Limiter.Idle(now) {
		first := r.oldest[0]
		if r.byKey[first.key] == first {
			delete(r.byKey, first.key)
		}
		r.oldest[0] = nil
		r.oldest = r.oldest[1:]
	}
}

// Take returns the rule from which one that comes into force goes on; nil if there is
// none.
func (r *Removed) Take(key rule.Key, target rule.Target) *RemovedRule {
	removed := r.byKey[key]
	if removed == nil || !CountLike(target, removed.target) {
		return nil
	}
	delete(r.byKey, key)
	return removed
}
