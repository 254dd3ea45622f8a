package flow

import (
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/rule"
)

// versions notes which version of a rule uses what all of them share, for limiters of the
// fleet: the last one to end releases it. The zero value is that of the first version.
type versions struct {
	latest  uint64 // the newest one that there is, in force or about to be
	inForce uint64
	ended   bool // the rule is gone
}

// adopt notes that there is a newer version; false if what they share is released.
func (s *versions) adopt(number uint64) bool {
	if !s.ended {
		s.latest = max(s.latest, number)
	}
	return !s.ended
}

// activate says whether a version comes into force, rather than a newer one being there.
func (s *versions) activate(number uint64) bool {
	if s.ended || number <= s.inForce {
		return false
	}
	s.inForce = number
	return true
}

// retire says whether all ends with a version: there is no newer one.
func (s *versions) retire(number uint64) bool {
	if s.ended || number < s.latest {
		return false
	}
	s.ended = true
	return true
}

// leasedLimit is what all versions of a rule of mode lease or window share: what the instance
// has leased, and the calls that wait for it.
type leasedLimit struct {
	budget  *fleet.Budget
	warning fleetWarning

	mu       sync.Mutex // guards what follows
	versions versions
	queue    fleetQueue
}

func newLeasedLimit(v *fleetVersion, env *rule.Env) *leasedLimit {
	l := &leasedLimit{budget: env.Fleet.Budget(v.terms, v.mode, v.rule.Fleet.OnOutage, env.Now)}
	l.versions = versions{latest: v.number, inForce: v.number}
	l.queue.init(v, l.budget)
	l.budget.Notify(l.queue.wakeHead)
	l.warning.change(v)
	l.budget.Watch(func() { l.warning.note(l.budget.Used) })
	return l
}

// limiter returns the limiter of a version.
func (l *leasedLimit) limiter(v *fleetVersion) rule.Limiter {
	b := budgetLimiter{limit: l, budget: l.budget, version: v}
	if v.canWait() {
		return &queueLimiter{b}
	}
	return &b
}

// change goes over to a version. The mutex is held.
func (l *leasedLimit) change(v *fleetVersion, now clock.Instant) {
	if l.versions.activate(v.number) {
		l.budget.Change(v.terms, v.rule.Fleet.OnOutage, now)
		l.queue.change(v, now)
		l.warning.change(v)
	}
}
