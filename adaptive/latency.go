package adaptive

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// latencyLimiter is one version of a rule with the strategy [Latency]. It never changes;
// all versions share an overload.
type latencyLimiter struct {
	*overload
	version *version
	class   *class // of the calls that are asked about
	inbound bool
}

// version is a version of a rule, which never changes.
type version struct {
	number uint64
	rule   Rule
}

var (
	_ rule.Queue          = (*latencyLimiter)(nil)
	_ optional.Suspender  = (*latencyLimiter)(nil)
	_ rule.Finisher       = (*latencyLimiter)(nil)
	_ optional.LateReader = (*latencyLimiter)(nil)
	_ rule.Activator      = (*latencyLimiter)(nil)
	_ rule.Retirer        = (*latencyLimiter)(nil)
	_ optional.Inheritor  = (*latencyLimiter)(nil)
	_ optional.Divided    = (*latencyLimiter)(nil)
)

func newLatency(r *Rule, env rule.Env) rule.Limiter {
	l := &latencyLimiter{version: &version{env.Version, *r}, inbound: r.Inbound}
	l.overload = newOverload(l.version, env)
	l.class = l.others
	return l
}

func (l *latencyLimiter) strategy() Strategy { return Latency }

func (l *latencyLimiter) adopt(r *Rule, env rule.Env) rule.Limiter {
	return &latencyLimiter{overload: l.overload, version: &version{env.Version, *r}, class: l.class, inbound: r.Inbound}
}

// For returns the limiter for the calls of one of the resources that share the rule.
func (l *latencyLimiter) For(resource string) rule.Limiter {
	of := *l
	of.class = l.classOf(resource)
	return &of
}

// The tickets.
const (
	counted   rule.Ticket = 0         // plus the index of the group by whose limit the call passed
	uncounted rule.Ticket = maxGroups // the rule is not for the call
)

// Acquire decides on a call whose caller is known.
func (l *latencyLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	t, decision := l.AcquireUnread(c)
	if decision == optional.NeedsAttribute {
		decision = l.class.group.Load().shedOrWait(&c)
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
	g := l.class.group.Load()
	word := g.word.Load()
	if word&full == 0 && g.begin(l.class, c.Now, word) {
		return counted + rule.Ticket(g.index), rule.Pass
	}
	return rule.RetryUnknown, g.acquireFull(l.class, &c, word)
}

// GiveBack undoes an Acquire.
func (l *latencyLimiter) GiveBack(now clock.Instant, t rule.Ticket, _ int32) {
	if t < uncounted {
		l.groups[t].leave(l.class, now)
	}
}

// Suspend counts a call out while it waits for another rule: the service does not work for
// it.
func (l *latencyLimiter) Suspend(now clock.Instant, t rule.Ticket) {
	if t < uncounted {
		l.groups[t].leave(l.class, now)
	}
}

// Resume counts it again, even if others have reached the limit meanwhile.
func (l *latencyLimiter) Resume(now clock.Instant, t rule.Ticket) {
	if t < uncounted {
		l.groups[t].resume(l.class, now)
	}
}

// Done counts the end of a call.
func (l *latencyLimiter) Done(t rule.Ticket, exit rule.Exit) {
	if t < uncounted {
		l.groups[t].done(l.class, exit)
	}
}

// RetryAfter is unknown: nobody knows when fewer calls come.
func (l *latencyLimiter) RetryAfter(rule.Call) time.Duration { return 0 }

// Join has a call wait until fewer calls than the limit are under way.
func (l *latencyLimiter) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	g := l.class.group.Load()
	w, decision := g.join(l.version, l.class, &c, patience)
	return w, counted + rule.Ticket(g.index), decision
}

// Activate puts this version in force, unless a newer one is.
func (l *latencyLimiter) Activate(now clock.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.activate(l.version, now)
}

// Retire ends all waits, for the rule is gone.
func (l *latencyLimiter) Retire(now clock.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.activate(l.version, now) {
		l.retire(now)
	}
}

// Inherit begins with the limit of the limiter that names share. What that has learned of
// response times is about all of them.
func (l *latencyLimiter) Inherit(shared rule.Limiter, now clock.Instant) {
	from, ok := shared.(*latencyLimiter)
	if !ok {
		return
	}
	from.mu.Lock()
	inherited := from.groups[0].control.Limit()
	from.mu.Unlock()
	g := l.groups[0]
	g.lock(now)
	defer g.unlock()
	g.control.Begin(inherited)
	g.apply(now)
}

// Status returns the gauges of all versions of the rule together.
func (l *latencyLimiter) Status(now clock.Instant) rule.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	common := l.groups[0]
	common.catchUp(now)
	baseline := common.control.Baseline()
	if baseline == 0 {
		baseline = math.NaN()
	}
	values := []float64{
		float64(common.limit), float64(common.underWay()), float64(common.queue.total), baseline, common.shed.Share(), math.NaN(),
	}
	for _, p := range rule.Priorities() {
		refused := uint64(0)
		for _, g := range l.groups {
			if g != nil {
				refused += g.shed.Refused(p)
			}
		}
		values = append(values, float64(refused))
	}
	values = append(values, l.apartGauges(math.NaN())...)
	return rule.Status{State: l.state, Gauges: values, Notes: l.notes()}
}

// Idle says whether no call is under way or waits, and none has ended for a while.
func (l *latencyLimiter) Idle(now clock.Instant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.inUse() {
		g.catchUp(now)
		if g.underWay() > 0 || g.queue.total > 0 || g.measure(now).Ended > 0 || now.Sub(g.lastUsed) <= idleAfter {
			return false
		}
	}
	return true
}

// idleAfter is how long a limiter remembers its limit without a call.
const idleAfter = time.Minute
