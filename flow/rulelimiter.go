package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// ruleLimiter enforces one version of a flow rule, on one resource or on all that share the
// rule. What has been counted is in a window or a queue that the versions of the rule
// have in common. Of a rule with a queue it is part of a ruleQueue.
type ruleLimiter struct {
	compiled *compiledRule
	window   *window // nil if the rule has a queue
	queue    *queue  // nil if it has a window
	related  bool    // the window counts the passes of another resource

	fairness *fairness // of tenants, who share the queue; else nil
	warning  *warning  // nil if the rule has none
}

var _ optional.Forecaster = (*ruleLimiter)(nil)

// limiter returns what enforces the rule: a ruleQueue if calls can wait for it.
func (l *ruleLimiter) limiter() rule.Limiter {
	if l.queue != nil {
		return &ruleQueue{l}
	}
	return l
}

// ruleLimiterOf returns the limiter of a flow rule that is not for the fleet; nil for another.
func ruleLimiterOf(limiter rule.Limiter) *ruleLimiter {
	switch l := limiter.(type) {
	case *ruleLimiter:
		return l
	case *ruleQueue:
		return l.ruleLimiter
	}
	return nil
}

// newLimiter returns a limiter that has counted nothing yet, cold at now if the rule
// warms up.
func newLimiter(r *compiledRule, now clock.Instant) *ruleLimiter {
	l := &ruleLimiter{compiled: r, related: r.rule.Related != ""}
	if r.rule.limiterKind() == windowLimiter {
		l.window = newWindow(r, now)
	} else {
		l.queue = newQueue(r, now)
	}
	return l
}

// kind says what the limiter is.
func (l *ruleLimiter) kind() limiterKind {
	if l.window != nil { // the rule is far away in memory
		return windowLimiter
	}
	return l.compiled.rule.limiterKind()
}

// next returns the limiter of another version of the rule, which goes on from what this one has
// counted: the same one, unless the rule counts in another way then.
func (l *ruleLimiter) next(r *compiledRule, now clock.Instant) *ruleLimiter {
	if r.rule.limiterKind() == l.kind() {
		return l.withVersion(r)
	}
	next := newLimiter(r, now)
	next.follow(l)
	return next
}

// withVersion returns the limiter of another version of the rule, with what this one has counted.
func (l *ruleLimiter) withVersion(r *compiledRule) *ruleLimiter {
	if l.compiled == r {
		return l
	}
	return &ruleLimiter{compiled: r, window: l.window, queue: l.queue, related: l.related}
}

// follow makes a new limiter take over what has passed under the limiter of another version
// of the rule. The other one goes on until the first call comes to
// this one, or until Activate; from then on it says Stale.
func (l *ruleLimiter) follow(before *ruleLimiter) {
	if l.queue != nil {
		l.queue.follow(before.asPredecessor())
	} else {
		l.window.follow(before.asPredecessor())
	}
}

func (l *ruleLimiter) asPredecessor() predecessor {
	if l.queue != nil {
		return l.queue
	}
	return l.window
}

// Acquire takes what the call takes, and returns the instant of that. For a call that may not
// wait, as of a shadow rule, a queue takes a later place within MaxWait.
func (l *ruleLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if l.queue != nil {
		turn, decision := l.queue.book(l.compiled, c.Now, c.Tokens)
		return l.queue.answer(l.compiled, turn, decision, c.Now, endless)
	}
	var decision rule.Decision
	if l.related {
		decision = l.window.Check(l.compiled, c.Now, c.Tokens)
	} else {
		decision = l.window.Take(l.compiled, c.Now, c.Tokens)
	}
	if l.warning != nil && decision != rule.Stale {
		l.noteUse(c.Now)
	}
	switch decision {
	case rule.Block:
		return rule.RetryTicket(l.window.RetryAfter(c.Now, c.Tokens)), decision
	case rule.Stale:
		return rule.Ticket(l.window.laterThan(c.Now)), decision
	default:
		return rule.Ticket(c.Now), decision
	}
}

// GiveBack returns what Acquire took.
func (l *ruleLimiter) GiveBack(now clock.Instant, t rule.Ticket, tokens int32) {
	if l.queue != nil {
		l.queue.giveBackTicket(now, t, tokens)
		return
	}
	l.Settle(now, now, t, -tokens)
}

// Settle adds tokens to what a call took, or gives some back if the number is
// negative. What is added counts from now on, whatever remains of the limit. What is
// given back is given back as of the moment at which the call took it; a throttle
// gives nothing back, as the calls behind have kept their distance already.
func (l *ruleLimiter) Settle(now, _ clock.Instant, t rule.Ticket, tokens int32) {
	switch taken := clock.Instant(t); {
	case l.queue != nil:
		l.queue.settle(now, taken, tokens)
	case !l.related:
		l.window.settleTokens(l.compiled, now, taken, tokens)
	}
}

// RetryAfter returns how long it takes until such a call passes the rule, for a call
// that can wait as long as the rule lets it.
func (l *ruleLimiter) RetryAfter(c rule.Call) time.Duration {
	if l.queue != nil {
		var who caller
		l.identify(&who, &c)
		return l.queue.retryAfter(l.compiled, c, &who)
	}
	if l.window.Check(l.compiled, c.Now, c.Tokens) != rule.Block {
		return 0
	}
	return l.window.RetryAfter(c.Now, c.Tokens)
}

// Status returns the effective limit and what remains of it. See [rule.Quota].
func (l *ruleLimiter) Status(now clock.Instant) rule.Status {
	quota := rule.Quota{Limit: l.compiled.rule.Limit, Window: l.compiled.windowAt(now)}
	if l.queue != nil {
		quota.Effective, quota.Remaining, quota.Reset = l.queue.Status(now)
		quota.Used, quota.Capacity = l.queue.used(now)
	} else {
		quota.Effective, quota.Remaining, quota.Reset = l.window.Status(now)
		quota.Used, quota.Capacity = max(0, quota.Effective-float64(quota.Remaining)), quota.Limit
	}
	s := rule.Status{Quota: &quota}
	if l.fairness != nil {
		l.describeTenants(&s)
	}
	return s
}

// Idle says whether the limiter holds nothing at now that would be missed if it were
// made anew.
func (l *ruleLimiter) Idle(now clock.Instant) bool {
	if l.queue != nil {
		return l.queue.Idle(now)
	}
	return l.window.Idle(now)
}

// Activate goes over to this version of the rule at once, rather than with the next
// call.
func (l *ruleLimiter) Activate(now clock.Instant) {
	if l.queue != nil {
		l.queue.Adopt(l.compiled, now)
	} else {
		l.window.Adopt(l.compiled, now)
	}
}

// Retire lets go of the calls that wait, for the rule is gone.
func (l *ruleLimiter) Retire(clock.Instant) {
	if l.queue != nil {
		l.queue.Retire()
	}
}

// Inherit has a limiter that is new, and that no call has reached yet, begin with what
// one of the same rule has counted.
func (l *ruleLimiter) Inherit(shared rule.Limiter, now clock.Instant) {
	from := ruleLimiterOf(shared)
	switch {
	case from == nil:
	case l.queue != nil:
		l.queue.Inherit(from.queue, now)
	case !from.Idle(now):
		l.window.Inherit(from.window, now)
	}
}

// CountPass counts a call that passed on the resource that the rule is related to.
func (l *ruleLimiter) CountPass(now clock.Instant, tokens int32) {
	l.window.Count(l.compiled, now, tokens)
}

// warnBy has the limiter warn as its rule says.
func (l *ruleLimiter) warnBy(warn func(string)) *ruleLimiter {
	if l.window != nil {
		l.warning = newWarning(l.compiled.rule, warn)
	}
	return l
}

// noteUse warns once in each window of which so much is used as the rule says.
func (l *ruleLimiter) noteUse(now clock.Instant) {
	r := l.compiled
	l.warning.tell(r.most-l.window.counts.Remaining(), r.bucketOf(now)/int64(max(1, r.rule.Buckets)), &l.window.warned)
}
