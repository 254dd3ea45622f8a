package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/rule"
)

// maxRemoved is how many rules that were removed are remembered.
const maxRemoved = 1000

// removedRules are rules that were removed, or made to count other calls, and have
// counted something that would still count: one that comes back, under its name and
// for the same calls, goes on from there. Of each name only the last is remembered,
// and only if it has one limiter for all of its resources. The zero value is empty;
// ruleStore.mu guards it.
type removedRules struct {
	byKey  map[rule.Key]*removedRule
	oldest []*removedRule // in the order in which they were removed, some of them back by now
}

type removedRule struct {
	key         rule.Key
	target      rule.Target
	limiter     call.VersionedLimiter
	transitions *transitions
	forced      *Forced
}

// keep remembers a rule that was removed.
func (r *removedRules) keep(a *activeRule) {
	if !a.sharesLimiter || a.related != "" {
		return
	}
	if r.byKey == nil {
		r.byKey = make(map[rule.Key]*removedRule)
	}
	removed := &removedRule{a.key, a.target(), a.shared, a.transitions, a.forced.Load()}
	r.byKey[a.key] = removed
	r.oldest = append(r.oldest, removed)
}

// prune forgets those that have nothing to tell any more, or are too many.
func (r *removedRules) prune(now clock.Instant) {
	for len(r.oldest) > maxRemoved || len(r.oldest) > 0 && r.oldest[0].limiter.Idle(now) {
		first := r.oldest[0]
		if r.byKey[first.key] == first {
			delete(r.byKey, first.key)
		}
		r.oldest[0] = nil
		r.oldest = r.oldest[1:]
	}
}

// take returns the rule from which one that comes into force goes on; nil if there is
// none.
func (r *removedRules) take(key rule.Key, target rule.Target) *removedRule {
	removed := r.byKey[key]
	if removed == nil || !target.CountsLike(removed.target) {
		return nil
	}
	delete(r.byKey, key)
	return removed
}
