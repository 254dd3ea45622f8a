package adaptive

import (
	"time"

	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// shedLimiter is one version of a rule of the strategy [Threshold], which refuses calls at once. It never changes; all
// versions share a shedState.
type shedLimiter struct {
	state   *shedState
	version uint64
	rule    Rule
	signals []signalThreshold
	qps     *secondWindow // nil if the rate does not count
}

// countedLesser is the ticket of a call that has tokens of the quota of less important calls,
// beside counted and uncounted.
const countedLesser = uncounted + 1

var (
	_ rule.Finisher       = (*shedLimiter)(nil)
	_ optional.LateReader = (*shedLimiter)(nil)
	_ rule.Activator      = (*shedLimiter)(nil)
	_ optional.Inheritor  = (*shedLimiter)(nil)
)

func newShedLimiter(r *Rule, env rule.Env, control shedControl) rule.Limiter {
	l := &shedLimiter{version: env.Version, rule: *r, signals: signalThresholds(r, env)}
	if r.QPS > 0 {
		l.qps = newSecondWindow(r.QPS, env.Now)
	}
	newShedState(l, control, env)
	return l
}

func (l *shedLimiter) strategy() Strategy { return l.rule.Strategy }

// adopt returns a newer version with the state of this one.
func (l *shedLimiter) adopt(r *Rule, env rule.Env) rule.Limiter {
	next := &shedLimiter{state: l.state, version: env.Version, rule: *r, signals: signalThresholds(r, env)}
	if r.QPS > 0 {
		if next.qps = l.qps; l.qps == nil {
			next.qps = newSecondWindow(r.QPS, env.Now)
		}
	}
	return next
}

// Acquire decides on a call whose caller is known.
func (l *shedLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	t, decision := l.AcquireUnread(c)
	if decision != optional.NeedsAttribute {
		return t, decision
	}
	standing, seen := l.state.standing(&c)
	return l.take(&c, standing, seen)
}

// AcquireUnread lets a call pass while fewer than the limit are under way. Passing is a few
// loads and one compare-and-swap; refusing is a few loads and one addition. The caller
// counts only while calls are shed, and only of calls that would not be refused anyway.
func (l *shedLimiter) AcquireUnread(c rule.Call) (rule.Ticket, rule.Decision) {
	if l.rule.Inbound && !c.Inbound() {
		return uncounted, rule.Pass
	}
	s := l.state
	if s.current.Load() != l && !s.activate(l, c.Now) {
		return counted, rule.Stale
	}
	if int64(c.Now) >= s.next.Load() {
		s.update(c.Now)
	}
	if s.shed.Load().Active() {
		if !s.isFull() && (l.qps == nil || !l.qps.isFull(c.Now, c.Tokens)) {
			return counted, optional.NeedsAttribute
		}
		s.refuse(&c, shed.Above, false)
		return rule.RetryUnknown, rule.Block
	}
	return l.take(&c, shed.Above, false)
}

// take takes what the call needs, or refuses it. Seen says that its arrival is counted.
func (l *shedLimiter) take(c *rule.Call, standing shed.Standing, seen bool) (rule.Ticket, rule.Decision) {
	s := l.state
	limit := s.limits().of(standing)
	for {
		word := s.calls.Load()
		if underWay(word) >= limit {
			s.refuse(c, standing, seen)
			return rule.RetryUnknown, rule.Block
		}
		if s.calls.CompareAndSwap(word, word+1) {
			break
		}
	}
	if l.qps == nil {
		return counted, rule.Pass
	}
	ticket, decision := l.qps.take(c.Now, c.Tokens, standing == shed.Above)
	if decision != rule.Pass {
		s.calls.Add(^uint64(0))
		if decision == rule.Stale {
			return rule.Ticket(l.qps.opened()), decision
		}
		s.refuse(c, standing, seen)
		return rule.RetryUnknown, decision
	}
	if c.Tokens != 1 {
		s.extra.Add(int64(c.Tokens) - 1)
	}
	return ticket, decision
}

// GiveBack undoes an Acquire.
func (l *shedLimiter) GiveBack(now clock.Instant, t rule.Ticket, tokens int32) {
	if t == uncounted {
		return
	}
	l.state.calls.Add(^uint64(0))
	if l.qps != nil {
		l.qps.giveBack(now, t, tokens)
		if tokens != 1 {
			l.state.extra.Add(1 - int64(tokens))
		}
	}
}

// Done counts the end of the call.
func (l *shedLimiter) Done(t rule.Ticket, e rule.Exit) {
	if t == uncounted {
		return
	}
	s := l.state
	if e.Failed || e.Ignored {
		s.notGood.Add(1)
	}
	if e.Ignored {
		s.uncounted.Add(1)
	} else {
		s.took.Add(uint64(e.Took()))
	}
	s.calls.Add(oneEnd - 1)
}

// RetryAfter is unknown: nobody knows when calls end.
func (*shedLimiter) RetryAfter(rule.Call) time.Duration { return 0 }

// Activate brings this version of the rule into force, unless a later one is.
func (l *shedLimiter) Activate(now clock.Instant) { l.state.activate(l, now) }

// Inherit begins with the calls that the limiter which names share has counted in the
// last second. What else it has found out is not about this name.
func (l *shedLimiter) Inherit(shared rule.Limiter, _ clock.Instant) {
	if from, ok := shared.(*shedLimiter); ok && from.qps != nil && l.qps != nil {
		l.qps.copyFrom(from.qps)
	}
}

// Status returns the gauges.
func (l *shedLimiter) Status(clock.Instant) rule.Status { return l.state.status() }

// Idle says whether no call is under way and none has come for a while.
func (l *shedLimiter) Idle(now clock.Instant) bool { return l.state.idle(now) }
