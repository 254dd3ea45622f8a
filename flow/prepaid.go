package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/internal/prepaid"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// validatePrepaid judges a balance, which is only recharged. It says whether the rule has one.
func (r *Rule) validatePrepaid(f *rule.Faults) (is bool) {
	if r.Algorithm != Prepaid {
		return false
	}
	if r.Window != 0 || r.Calendar.IsSet() {
		f.Add("window", "has no effect with algorithm %q, of which nothing flows back: remove one of them", Prepaid)
	}
	if !r.Calendar.IsSet() {
		settings.ValidateCalendar(f, 0, r.Calendar)
	}
	if r.Limit != math.Trunc(r.Limit) {
		f.Add("limit", "is %v: must be a whole number of tokens with algorithm %q", r.Limit, Prepaid)
	}
	if r.WarmUp != (WarmUp{}) {
		f.Add("warmUp.period", "has no effect with algorithm %q: remove it", Prepaid)
	}
	if r.Follow != (Follow{}) {
		f.Add("follow.signal", "has no effect with algorithm %q: remove it", Prepaid)
	}
	return true
}

// prepaidLimiter enforces one version of a rule with a balance on this instance.
type prepaidLimiter struct {
	rule    *Rule
	terms   prepaid.Terms
	balance *prepaid.Balance // that of all versions
}

var (
	_ optional.Balancer  = (*prepaidLimiter)(nil)
	_ optional.Recharger = (*prepaidLimiter)(nil)
	_ optional.Inheritor = (*prepaidLimiter)(nil)
	_ rule.Activator     = (*prepaidLimiter)(nil)
)

// newPrepaid returns a limiter whose balance is as at first.
func newPrepaid(r *compiledRule) *prepaidLimiter {
	terms := r.prepaidTerms()
	return &prepaidLimiter{r.rule, terms, prepaid.New(terms)}
}

// adoptPrepaid returns the limiter of a changed rule, nil if it had no balance.
func adoptPrepaid(present rule.Limiter, r *compiledRule) rule.Limiter {
	before, ok := present.(*prepaidLimiter)
	if !ok {
		return nil
	}
	return &prepaidLimiter{r.rule, r.prepaidTerms(), before.balance}
}

func (r *compiledRule) prepaidTerms() prepaid.Terms {
	return prepaid.Terms{Version: r.version, Limit: int64(r.rule.Limit)}
}

// Acquire takes what the call takes, if so much is left.
func (l *prepaidLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	decision := l.balance.Take(l.terms, c.Tokens)
	if decision == rule.Block {
		return rule.RetryUnknown, decision
	}
	return rule.Ticket(c.Now), decision
}

// GiveBack gives back what the call took.
func (l *prepaidLimiter) GiveBack(_ clock.Instant, _ rule.Ticket, tokens int32) {
	l.balance.Correct(-tokens)
}

// Settle corrects what the call took, also if the balance falls below 0.
func (l *prepaidLimiter) Settle(_, _ clock.Instant, _ rule.Ticket, tokens int32) {
	l.balance.Correct(tokens)
}

// Balance returns what is left.
func (l *prepaidLimiter) Balance(_, _ clock.Instant, _ rule.Ticket) (left int64, known bool) {
	return l.balance.Left(l.terms), true
}

// RetryAfter is not known: somebody has to recharge the balance.
func (l *prepaidLimiter) RetryAfter(rule.Call) time.Duration { return 0 }

// Recharge changes the balance.
func (l *prepaidLimiter) Recharge(_ rule.Call, tokens int64, done func(left int64, err error)) {
	done(l.balance.Add(l.terms, tokens))
}

// Status tells what is left.
func (l *prepaidLimiter) Status(clock.Instant) rule.Status {
	return rule.Status{Quota: balanceQuota(l.rule.Limit, l.balance.Left(l.terms))}
}

// balanceQuota returns the state of a balance of which so much is left, below 0 if more was taken than there was.
func balanceQuota(limit float64, left int64) *rule.Quota {
	return &rule.Quota{
		Limit: limit, Effective: limit, Prepaid: true, Remaining: max(0, left),
		Used: max(0, limit-float64(left)), Capacity: limit,
	}
}

// Idle says whether the balance is as at first.
func (l *prepaidLimiter) Idle(clock.Instant) bool { return l.balance.Left(l.terms) == l.terms.Limit }

// Activate goes over to this version of the rule.
func (l *prepaidLimiter) Activate(clock.Instant) { l.balance.Adopt(l.terms) }

// Inherit begins with what the shared balance has.
func (l *prepaidLimiter) Inherit(shared rule.Limiter, _ clock.Instant) {
	if from, ok := shared.(*prepaidLimiter); ok {
		l.balance.Inherit(from.balance)
	}
}

// Recharge changes the balance in the fleet.
func (l *askLimiter) Recharge(c rule.Call, tokens int64, done func(left int64, err error)) {
	if l.version.rule.Algorithm != Prepaid {
		done(0, optional.ErrNoBalance)
		return
	}
	l.asker.Recharge(c.Now, tokens, done)
}
