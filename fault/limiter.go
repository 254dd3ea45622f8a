package fault

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// limiter is one version of a rule. It never changes; all versions share an injector.
type limiter struct {
	*injector
	version uint64
	changed func(at clock.Instant, from, to, because string)

	below  uint64 // a call is chosen if what is drawn for it is less; 0: all are
	delay  time.Duration
	aborts bool
	shadow bool
	until  time.Time
	left   func(time.Time) time.Duration // until then, on the wall clock
}

var (
	_ rule.Queue        = (*limiter)(nil)
	_ rule.Activator    = (*limiter)(nil)
	_ rule.Retirer      = (*limiter)(nil)
	_ rule.Controllable = (*limiter)(nil)
)

func compile(r *Rule, env rule.Env, in *injector) *limiter {
	return &limiter{
		injector: in, version: env.Version, changed: env.Changed,
		below: threshold(r.Percent), delay: r.Delay, aborts: r.aborts(), shadow: r.Shadow,
		until: r.Until, left: env.Until,
	}
}

// remaining returns how long the rule goes on from now, by the wall clock if there is one. It is not
// positive if the rule has ended.
func (l *limiter) remaining(now clock.Instant) time.Duration {
	if l.left != nil {
		return l.left(l.until)
	}
	return clock.Instant(l.until.UnixNano()).Sub(now)
}

// threshold returns the number of 64 bits below which a share of all of them lie: 0, which
// stands for 2^64, for 100 %.
func threshold(percent float64) uint64 {
	share := percent / 100
	if share >= 1 {
		return 0
	}
	return uint64(share * (1 << 64))
}

func newLimiter(r *Rule, env rule.Env) rule.Limiter {
	l := compile(r, env, newInjector(env.Seed))
	l.forcedOff = env.Forced == Off
	l.current.Store(l)
	l.state = l.stateAt(env.Now)
	l.publish()
	l.scheduleRecheck(env.Now)
	return l
}

// adopt returns a newer version with the injector of the present one.
func adopt(present rule.Limiter, r *Rule, env rule.Env) rule.Limiter {
	former, ok := present.(*limiter)
	if !ok {
		return nil
	}
	return compile(r, env, former.injector)
}

// Acquire decides whether the fault is for a call. A call that it is not for passes
// without a lock, and nothing is written; only one that it is for looks whether the rule has ended.
func (l *limiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if l.injecting.Load() != l {
		if decision := l.acquireSlow(c.Now); decision != rule.Wait {
			return 0, decision
		}
	}
	if l.below != 0 && l.draw(uint64(c.Number())) >= l.below {
		return 0, rule.Pass
	}
	if l.remaining(c.Now) <= 0 {
		if decision := l.acquireSlow(c.Now); decision != rule.Wait {
			return 0, decision
		}
	}
	if l.delay > 0 {
		return 0, rule.Wait
	}
	l.count()
	return rule.RetryUnknown, rule.Block
}

// acquireSlow is Acquire while this version injects nothing: because it has ended, is
// turned off, or is not in force yet or any more. Wait means that it is in force now and
// that the call may be chosen.
func (l *limiter) acquireSlow(now clock.Instant) rule.Decision {
	if l.current.Load() == l && l.injecting.Load() == nil && now < clock.Instant(l.recheck.Load()) {
		return rule.Pass
	}
	l.mu.Lock()
	defer l.unlock()
	l.activate(l, now)
	l.followCalendar(now)
	switch {
	case l.current.Load() != l:
		return rule.Stale
	case l.state != Active || l.remaining(now) <= 0:
		return rule.Pass
	}
	return rule.Wait
}

// count counts a call into which a fault is injected.
func (l *limiter) count() {
	if !l.shadow {
		l.injected.Add(1)
	}
}

// Join delays a call that Acquire has chosen. The delay lasts as long as the context of
// the call lets it, whatever the patience.
func (l *limiter) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	l.mu.Lock()
	defer l.unlock()
	switch {
	case l.current.Load() != l, l.retired:
		return nil, 0, rule.Stale
	case l.state != Active || l.remaining(c.Now) <= 0:
		return nil, 0, rule.Pass
	case l.delayed.Len() >= maxDelayed:
		l.notDelayed++
		if !l.aborts {
			return nil, 0, rule.Pass
		}
		l.count()
		return nil, 0, rule.Block
	}
	l.count()
	w := &waiter{limiter: l, over: c.Now.Add(min(l.delay, l.remaining(c.Now)))}
	w.Begin(w, patience.Wake)
	l.delayed.Push(w, &w.node, 0)
	return w, 0, rule.Wait
}

// GiveBack does nothing: passing takes nothing.
func (l *limiter) GiveBack(clock.Instant, rule.Ticket, int32) {}

// RetryAfter is 0: the same call may pass now.
func (l *limiter) RetryAfter(rule.Call) time.Duration { return 0 }

// Status returns the state of all versions of the rule together.
func (l *limiter) Status(now clock.Instant) rule.Status {
	l.mu.Lock()
	defer l.unlock()
	l.followCalendar(now)
	return rule.Status{
		State:  l.state,
		Gauges: []float64{float64(l.delayed.Len()), float64(l.injected.Load()), float64(l.notDelayed)},
	}
}

// Idle says whether no call is in a delay.
func (l *limiter) Idle(clock.Instant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delayed.Len() == 0
}

// Activate puts this version in force, unless a newer one is.
func (l *limiter) Activate(now clock.Instant) {
	l.mu.Lock()
	defer l.unlock()
	l.activate(l, now)
}

// Retire ends all delays, for the rule is gone.
func (l *limiter) Retire(clock.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current.Load() == l {
		l.retired = true
		l.releaseAll()
	}
}

// Control turns the rule off, or on again with "". Calls in a delay go on at once.
func (l *limiter) Control(now clock.Instant, state string) {
	l.mu.Lock()
	defer l.unlock()
	l.forcedOff = state == Off
	l.changeTo(l.current.Load().stateAt(now), now)
}

// stateAt returns the state of this version at an instant. l.mu is held.
func (l *limiter) stateAt(now clock.Instant) string {
	switch {
	case l.forcedOff:
		return Off
	case l.remaining(now) <= 0:
		return Ended
	}
	return Active
}
