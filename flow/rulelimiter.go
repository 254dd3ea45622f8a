package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// limiterKind says what enforces a rule. When a rule is changed, the limiter that it
// has goes on as long as this stays the same; else another one follows it.
type limiterKind uint8

const (
	windowLimiter   limiterKind = iota // a [Window]: rules with a sliding or a fixed window
	throttleLimiter                    // a [Queue] whose calls are evenly spaced
	bucketLimiter                      // a [Queue] with a token bucket
)

// limiterKind returns what enforces the rule.
func (r Rule) limiterKind() limiterKind {
	switch r.Algorithm {
	case Throttle:
		return throttleLimiter
	case TokenBucket:
		return bucketLimiter
	}
	return windowLimiter
}

// RuleLimiter enforces one version of a flow rule, on one resource or on all that share the
// rule. What has been counted is in a window or a queue that the versions of the rule
// have in common.
//
// The engine asks the rules of a call together, by a [Chain]. By itself, through the
// methods of [rule.Limiter], it asks a RuleLimiter for a shadow rule: a call never waits
// for that.
type RuleLimiter struct {
	compiled *Compiled
	window   *Window // nil if the rule has a queue
	queue    *Queue  // nil if it has a window
	related  bool    // the window counts the passes of another resource
}

// newLimiter returns a limiter that has counted nothing yet, cold at now if the rule
// warms up.
func newLimiter(r *Compiled, now clock.Instant) *RuleLimiter {
	l := &RuleLimiter{compiled: r, related: r.rule.Related != ""}
	if r.rule.limiterKind() == windowLimiter {
		l.window = NewWindow(r, now)
	} else {
		l.queue = NewQueue(r, now)
	}
	return l
}

// withVersion returns the limiter of another version of the rule, which goes on from
// what this one has counted. See [Compiled.canFollow].
func (l *RuleLimiter) withVersion(r *Compiled) *RuleLimiter {
	if l.compiled == r {
		return l
	}
	return &RuleLimiter{compiled: r, window: l.window, queue: l.queue, related: l.related}
}

// follow makes a new limiter take over what has passed under the limiter of another version
// of the rule, see [Compiled.countsLike]. The other one goes on until the first call comes to
// this one, or until Activate; from then on it says Stale.
func (l *RuleLimiter) follow(before *RuleLimiter) {
	if l.queue != nil {
		l.queue.follow(before.asPredecessor())
	} else {
		l.window.follow(before.asPredecessor())
	}
}

func (l *RuleLimiter) asPredecessor() predecessor {
	if l.queue != nil {
		return l.queue
	}
	return l.window
}

// CanWait says whether calls can wait for the rule.
func (l *RuleLimiter) CanWait() bool { return l.queue != nil }

// Acquire decides on a call that does not wait, as of a shadow rule: if a queue would let it
// pass later, within MaxWait, it takes that later place and passes.
func (l *RuleLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if l.queue != nil {
		since, decision := l.queue.reserve(l.compiled, c.Now, c.Tokens)
		return rule.Ticket(since), decision
	}
	now := c.Now
	decision := l.takeWindow(now, c.Tokens)
	if decision == rule.Stale { // another goroutine has brought a later instant
		now = max(now, l.window.Opened())
		decision = l.takeWindow(now, c.Tokens)
	}
	if decision == rule.Block { // whose ticket would say when to retry
		return 0, decision
	}
	return rule.Ticket(now), decision
}

func (l *RuleLimiter) takeWindow(now clock.Instant, n int32) rule.Decision {
	if l.related {
		return l.window.Check(l.compiled, now, n)
	}
	return l.window.Take(l.compiled, now, n)
}

// GiveBack returns what Acquire took.
func (l *RuleLimiter) GiveBack(now clock.Instant, t rule.Ticket, tokens int32) {
	l.Settle(now, clock.Instant(t), t, -tokens)
}

// Settle adds tokens to what a call took, or gives some back if the number is
// negative. What is added counts from now on, whatever remains of the limit. What is
// given back is given back as of the moment at which the call took it; a throttle
// gives nothing back, as the calls behind have kept their distance already.
func (l *RuleLimiter) Settle(now, _ clock.Instant, t rule.Ticket, tokens int32) {
	switch taken := clock.Instant(t); {
	case l.queue != nil:
		l.queue.settle(now, taken, tokens)
	case !l.related:
		l.window.settleTokens(l.compiled, now, taken, tokens)
	}
}

// RetryAfter returns how long it takes until such a call passes the rule, for a call
// that can wait as long as the rule lets it.
func (l *RuleLimiter) RetryAfter(c rule.Call) time.Duration {
	if l.queue != nil {
		if _, decision := l.queue.expect(l.compiled, c.Now, c.Tokens, c.Priority(), endless); decision != rule.Block {
			return 0
		}
		return l.queue.retryAfter(c.Now, c.Tokens, c.Priority(), endless)
	}
	if l.window.Check(l.compiled, c.Now, c.Tokens) != rule.Block {
		return 0
	}
	return l.window.RetryAfter(c.Now, c.Tokens)
}

// Status returns the effective limit and what remains of it. See [rule.Quota].
func (l *RuleLimiter) Status(now clock.Instant) rule.Status {
	quota := rule.Quota{Limit: l.compiled.rule.Limit, Window: l.compiled.rule.Window}
	if l.queue != nil {
		quota.Effective, quota.Remaining, quota.Reset = l.queue.Status(now)
	} else {
		quota.Effective, quota.Remaining, quota.Reset = l.window.Status(now)
	}
	return rule.Status{Quota: &quota}
}

// Idle says whether the limiter holds nothing at now that would be missed if it were
// made anew.
func (l *RuleLimiter) Idle(now clock.Instant) bool {
	if l.queue != nil {
		return l.queue.Idle(now)
	}
	return l.window.Idle(now)
}

// Activate goes over to this version of the rule at once, rather than with the next
// call.
func (l *RuleLimiter) Activate(now clock.Instant) {
	if l.queue != nil {
		l.queue.Adopt(l.compiled, now)
	} else {
		l.window.Adopt(l.compiled, now)
	}
}

// Retire lets go of the calls that wait, for the rule is gone.
func (l *RuleLimiter) Retire(clock.Instant) {
	if l.queue != nil {
		l.queue.Retire()
	}
}

// Inherit has a limiter that is new, and that no call has reached yet, begin with what
// one of the same rule has counted.
func (l *RuleLimiter) Inherit(shared rule.Limiter, now clock.Instant) {
	from, ok := shared.(*RuleLimiter)
	switch {
	case !ok:
	case l.queue != nil:
		l.queue.Inherit(from.queue, now)
	case !from.Idle(now):
		l.window.Inherit(from.window, now)
	}
}

// CountPass counts a call that passed on the resource that the rule is related to.
func (l *RuleLimiter) CountPass(now clock.Instant, tokens int32) {
	l.window.Count(l.compiled, now, tokens)
}
