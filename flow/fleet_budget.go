package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/sharing/lease"
	"github.com/penstock-go/penstock/rule"
)

// budgetLimiter is one version of a rule of mode lease or window for which no call waits. To
// pass is one compare-and-swap, to be refused two atomic steps.
type budgetLimiter struct {
	budget  *lease.Budget // that of the limit
	limit   *leasedLimit
	version *fleetVersion
}

var _ fleetLimiter = (*budgetLimiter)(nil)

// Acquire takes what the call takes of the tokens that the instance has leased. The ticket of
// a call that is refused is how long it takes until one like it can pass.
func (l *budgetLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if l.budget.Take(c.Now, c.Tokens) {
		return 0, rule.Pass
	}
	return rule.RetryTicket(l.budget.RetryAfter(c.Now, c.Tokens)), rule.Block
}

// RetryAfter returns when the backend is expected to grant tokens.
func (l *budgetLimiter) RetryAfter(c rule.Call) time.Duration {
	if l.budget.Has(c.Now, c.Tokens) {
		return 0
	}
	return l.budget.RetryAfter(c.Now, c.Tokens)
}

// GiveBack gives back what Acquire took at the same instant.
func (l *budgetLimiter) GiveBack(now clock.Instant, _ rule.Ticket, tokens int32) {
	l.budget.GiveBack(now, tokens)
}

// Settle corrects what a call took that passed at start. What it took more is owed to the
// fleet if the instance has not leased it.
func (l *budgetLimiter) Settle(_, start clock.Instant, _ rule.Ticket, tokens int32) {
	l.budget.Settle(start, tokens)
}

// Status tells what the fleet grants to this instance.
func (l *budgetLimiter) Status(now clock.Instant) rule.Status {
	status := l.budget.Status(now)
	return l.version.status(&status)
}

// Idle says whether nothing is leased and no call has come of late.
func (l *budgetLimiter) Idle(now clock.Instant) bool {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	return l.limit.queue.isEmpty() && l.budget.Idle(now)
}

// Activate puts this version in force, unless a newer one is.
func (l *budgetLimiter) Activate(now clock.Instant) {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	l.limit.change(l.version, now)
}

// Retire hands back what is leased and lets go of calls that wait, for the rule is gone.
func (l *budgetLimiter) Retire(now clock.Instant) {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	if l.limit.versions.Retire(l.version.number) {
		l.limit.queue.releaseAll()
		l.budget.Release(now)
	}
}

func (l *budgetLimiter) fleetVersion() *fleetVersion { return l.version }

func (l *budgetLimiter) adopted(v *fleetVersion, _ *rule.Env) rule.Limiter {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	if !l.limit.versions.Adopt(v.number) {
		return nil
	}
	return l.limit.limiter(v)
}
