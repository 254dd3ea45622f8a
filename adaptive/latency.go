package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// latencyLimiter is one version of a rule with the strategy [Latency]. It never changes;
// all versions share a gate.
type latencyLimiter struct {
	gate    *gate
	rule    Rule
	version uint64
	inbound bool
}

var (
	_ rule.Queue      = (*latencyLimiter)(nil)
	_ rule.Suspender  = (*latencyLimiter)(nil)
	_ rule.Finisher   = (*latencyLimiter)(nil)
	_ rule.LateReader = (*latencyLimiter)(nil)
	_ rule.Activator  = (*latencyLimiter)(nil)
	_ rule.Retirer    = (*latencyLimiter)(nil)
	_ rule.Inheritor  = (*latencyLimiter)(nil)
)

func newLatency(r Rule, env rule.Env) rule.Limiter {
	l := &latencyLimiter{gate: new(gate), rule: r, version: env.Version, inbound: r.Inbound}
	l.gate.init(l, env)
	return l
}

func (l *latencyLimiter) strategy() Strategy { return Latency }

func (l *latencyLimiter) adopt(r Rule, env rule.Env) rule.Limiter {
	return &latencyLimiter{gate: l.gate, rule: r, version: env.Version, inbound: r.Inbound}
}

// The tickets.
const (
	counted   rule.Ticket = iota // the call is one of those under way
	uncounted                    // the rule is not for the call
)

// Acquire decides on a call whose caller is known.
func (l *latencyLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	t, decision := l.AcquireUnread(c)
	if decision == rule.NeedsAttribute {
		decision = l.gate.shedOrWait(&c)
	}
	return t, decision
}

// AcquireUnread lets a call pass if the limit is not reached and nobody waits: by one
// compare-and-swap. Refusing takes two loads. The caller counts only where those of one
// priority are divided.
func (l *latencyLimiter) AcquireUnread(c rule.Call) (rule.Ticket, rule.Decision) {
	if l.inbound && !c.Inbound() {
		return uncounted, rule.Pass
	}
	word := l.gate.word.Load()
	if word&full == 0 && l.gate.begin(c.Now, word) {
		return counted, rule.Pass
	}
	return rule.RetryUnknown, l.gate.acquireFull(&c, word)
}

// GiveBack undoes an Acquire.
func (l *latencyLimiter) GiveBack(now clock.Instant, t rule.Ticket, _ int32) {
	if t == counted {
		l.gate.leave(now)
	}
}

// Suspend counts a call out while it waits for another rule: the service does not work for
// it.
func (l *latencyLimiter) Suspend(now clock.Instant, t rule.Ticket) {
	if t == counted {
		l.gate.leave(now)
	}
}

// Resume counts it again, even if others have reached the limit meanwhile.
func (l *latencyLimiter) Resume(now clock.Instant, t rule.Ticket) {
	if t == counted {
		l.gate.resume(now)
	}
}

// Done counts the end of a call.
func (l *latencyLimiter) Done(t rule.Ticket, exit rule.Exit) {
	if t == counted {
		l.gate.done(exit)
	}
}

// RetryAfter is unknown: nobody knows when fewer calls come.
func (l *latencyLimiter) RetryAfter(rule.Call) time.Duration { return 0 }

// Join has a call wait until fewer calls than the limit are under way.
func (l *latencyLimiter) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	w, decision := l.gate.join(l, &c, patience)
	return w, counted, decision
}

// Activate puts this version in force, unless a newer one is.
func (l *latencyLimiter) Activate(now clock.Instant) {
	l.gate.lock(now)
	defer l.gate.unlock()
	l.gate.activate(l, now)
}

// Retire ends all waits, for the rule is gone.
func (l *latencyLimiter) Retire(now clock.Instant) {
	g := l.gate
	g.lock(now)
	defer g.unlock()
	if g.activate(l, now) {
		g.retired = true
		g.finishAll(released)
		g.openIfIdle(now)
	}
}

// Inherit begins with the limit of the limiter that names share. What that has learned of
// response times is about all of them.
func (l *latencyLimiter) Inherit(shared rule.Limiter, now clock.Instant) {
	from, ok := shared.(*latencyLimiter)
	if !ok {
		return
	}
	from.gate.mu.Lock()
	inherited := from.gate.control.Limit()
	from.gate.mu.Unlock()
	g := l.gate
	g.lock(now)
	defer g.unlock()
	g.control.Begin(inherited)
	g.apply(now)
}

// Status returns the gauges of all versions of the rule together.
func (l *latencyLimiter) Status(now clock.Instant) rule.Status {
	g := l.gate
	g.lock(now)
	defer g.unlock()
	baseline := g.control.Baseline()
	if baseline == 0 {
		baseline = math.NaN()
	}
	values := []float64{
		float64(g.limit), float64(g.underWay()), float64(g.queue.total), baseline, g.shed.Share(), math.NaN(),
	}
	for _, p := range rule.Priorities() {
		values = append(values, float64(g.shed.Refused(p)))
	}
	return rule.Status{Gauges: values}
}

// Idle says whether no call is under way or waits, and none has ended for a while.
func (l *latencyLimiter) Idle(now clock.Instant) bool {
	g := l.gate
	g.lock(now)
	defer g.unlock()
	return g.underWay() == 0 && g.queue.total == 0 && g.read(now).ends == g.begun.ends && now.Sub(g.lastUsed) > idleAfter
}

// idleAfter is how long a limiter remembers its limit without a call.
const idleAfter = time.Minute
