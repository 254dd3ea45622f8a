package flow

import (
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/lease"
	"github.com/penstock-go/penstock/internal/versions"
	"github.com/penstock-go/penstock/rule"
)

// leasedLimit is what all versions of a rule of mode lease or window share: what the instance
// has leased, and the calls that wait for it.
type leasedLimit struct {
	budget  *lease.Budget
	warning fleetWarning

	mu       sync.Mutex // guards what follows
	versions versions.Versions
	queue    fleetQueue
}

func newLeasedLimit(v *fleetVersion, env *rule.Env) *leasedLimit {
	l := &leasedLimit{budget: sharing.Of(env.Fleet).Budget(v.terms, v.mode, v.rule.Fleet.OnOutage, env.Now)}
	l.versions.Begin(v.number)
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
	if l.versions.Activate(v.number) {
		l.budget.Change(v.terms, v.rule.Fleet.OnOutage, now)
		l.queue.change(v, now)
		l.warning.change(v)
	}
}
