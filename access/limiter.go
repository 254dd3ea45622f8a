package access

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/list"
	"github.com/penstock-go/penstock/rule"
)

// limiter is one version of a rule on one resource. It counts nothing.
type limiter struct {
	rule    *compiledRule
	list    *list.Handle // nil if the rule has none
	monitor *monitor
	changed func(at clock.Instant, from, to, because string)
	until   func(time.Time) time.Duration // on the wall clock; nil if there is none but that of calls
}

func newLimiter(_ *Rule, env rule.Env) rule.Limiter { return makeLimiter(env, new(monitor)) }

// adopt returns a limiter of another version, which goes on from the state that was
// reported last.
func adopt(present rule.Limiter, _ *Rule, env rule.Env) rule.Limiter {
	old, ok := present.(*limiter)
	if !ok {
		return nil
	}
	return makeLimiter(env, old.monitor)
}

// makeLimiter returns a limiter. All limiters of a rule have one monitor: the given one,
// or that of those made before.
func makeLimiter(env rule.Env, m *monitor) *limiter {
	compiled := env.Compiled.(*compiledRule) // Kind compiles nothing else
	compiled.monitor.CompareAndSwap(nil, m)
	l := &limiter{rule: compiled, monitor: compiled.monitor.Load(), changed: env.Changed, until: env.Until}
	if compiled.list != "" {
		l.list = env.Lists.Handle(compiled.list)
	}
	return l
}

// present returns the list as it is now; nil if the rule has none, or if it is missing.
func (l *limiter) present() (of *list.List, missing bool) {
	if l.list == nil {
		return nil, false
	}
	of = l.list.List()
	if of == nil || l.rule.isIP && of.Len() > 0 && !of.HasAddrs() {
		return nil, true
	}
	return of, false
}

// asOf returns a list, nil if there is none, as it is now.
func (l *limiter) asOf(now clock.Instant, of *list.List) listed {
	if of == nil || !of.HasEnds() {
		return listed{of: of}
	}
	if l.until != nil {
		now = clock.Instant(-l.until(time.Unix(0, 0)))
	}
	return listed{of, now}
}

// Acquire lets a call pass or refuses it, by its attribute.
func (l *limiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	of, missing := l.present()
	if l.monitor.differs(missing) {
		l.monitor.report(l, c.Now)
	}
	if l.rule.passes(c.Attribute, l.asOf(c.Now, of)) {
		return 0, rule.Pass
	}
	return 0, rule.Block
}

// GiveBack does nothing: a call takes nothing.
func (l *limiter) GiveBack(clock.Instant, rule.Ticket, int32) {}

// RetryAfter returns Never for a call that is refused now.
func (l *limiter) RetryAfter(c rule.Call) time.Duration {
	of, _ := l.present()
	if l.rule.passes(c.Attribute, l.asOf(c.Now, of)) {
		return 0
	}
	return rule.Never
}

// Status returns the state, and reports it if it has changed.
func (l *limiter) Status(now clock.Instant) rule.Status {
	of, missing := l.present()
	if l.monitor.differs(missing) {
		l.monitor.report(l, now)
	}
	entries := math.NaN() // a rule without a list has no number of entries
	switch {
	case of != nil:
		entries = float64(of.LenAt(l.asOf(now, of).at))
	case missing:
		entries = 0
	}
	return rule.Status{State: stateOf(missing), Gauges: []float64{entries}}
}

// Idle returns true: there is nothing to forget.
func (l *limiter) Idle(clock.Instant) bool { return true }

// Activate reports the state if this version of the rule has another one.
func (l *limiter) Activate(now clock.Instant) {
	if _, missing := l.present(); l.monitor.differs(missing) {
		l.monitor.report(l, now)
	}
}

// The engine looks for this interface.
var _ rule.Activator = (*limiter)(nil)
