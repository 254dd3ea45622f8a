package flow

import (
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/internal/pending"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/ask"
	"github.com/penstock-go/penstock/internal/sharing/exchange"
	"github.com/penstock-go/penstock/internal/versions"
	"github.com/penstock-go/penstock/rule"
)

// askLimiter is one version of a rule of mode ask: each call waits for the answer of the
// backend and, if that lets it pass only later, until then.
type askLimiter struct {
	limit   *askedLimit
	asker   *ask.Asker // that of the limit
	version *fleetVersion
	within  time.Duration // how long an answer takes at most
}

// askedLimit is what all versions of a rule share.
type askedLimit struct {
	asker   *ask.Asker
	warning fleetWarning

	mu       sync.Mutex // guards what follows
	versions versions.Versions
	version  *fleetVersion // in force
	waiters  map[*askWaiter]struct{}
}

var (
	_ fleetLimiter     = (*askLimiter)(nil)
	_ rule.Queue       = (*askLimiter)(nil)
	_ optional.Decider = (*askLimiter)(nil)
)

func newAskLimiter(v *fleetVersion, env *rule.Env) *askLimiter {
	l := &askedLimit{
		asker:   sharing.Of(env.Fleet).Asker(v.terms, v.operation(), v.rule.Fleet.OnOutage),
		version: v, waiters: make(map[*askWaiter]struct{}),
	}
	l.versions.Begin(v.number)
	l.warning.change(v)
	return &askLimiter{l, l.asker, v, sharing.Of(env.Fleet).Timeout()}
}

// Acquire refuses a call while a denial of the backend holds: nobody asks again. Every other
// call waits for an answer.
func (l *askLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if denied := l.asker.Denied(c.Now, c.Tokens); denied > 0 {
		return rule.RetryTicket(l.version.retryAfter(denied)), rule.Block
	}
	return 0, rule.Wait
}

// RetryAfter returns for how long a denial holds.
func (l *askLimiter) RetryAfter(c rule.Call) time.Duration {
	return l.version.retryAfter(l.asker.DeniedFor(c.Now, c.Tokens))
}

// DecidesWithin implements [optional.Decider].
func (l *askLimiter) DecidesWithin() time.Duration { return l.within }

// Join asks the backend.
func (l *askLimiter) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	w := &askWaiter{limit: l.limit, until: patience.Until}
	w.Begin(w, patience.Wake)
	if !l.limit.join(w, l.version, &c) {
		return nil, 0, rule.Stale
	}
	ticket, _, decision := w.Poll(c.Now) // the answer may be known already
	if decision != rule.Wait {
		return nil, ticket, decision
	}
	return w, 0, rule.Wait
}

// GiveBack gives back what the call took.
func (l *askLimiter) GiveBack(_ clock.Instant, t rule.Ticket, tokens int32) {
	l.asker.GiveBack(clock.Instant(t), tokens)
}

// Settle corrects what a call took.
func (l *askLimiter) Settle(_, _ clock.Instant, t rule.Ticket, tokens int32) {
	l.asker.Settle(clock.Instant(t), tokens)
}

// Status tells what the backend has answered of late.
func (l *askLimiter) Status(now clock.Instant) rule.Status {
	status := l.asker.Status(now)
	return l.version.status(&status)
}

// Idle says whether no call waits or has asked of late.
func (l *askLimiter) Idle(now clock.Instant) bool {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	return len(l.limit.waiters) == 0 && l.asker.Idle(now)
}

// Activate puts this version in force, unless a newer one is.
func (l *askLimiter) Activate(now clock.Instant) {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	l.limit.change(l.version, now)
}

// Retire lets go of calls that wait, for the rule is gone.
func (l *askLimiter) Retire(now clock.Instant) {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	if l.limit.versions.Retire(l.version.number) {
		l.limit.releaseAll()
		l.asker.Release(now)
	}
}

func (l *askLimiter) fleetVersion() *fleetVersion { return l.version }

func (l *askLimiter) adopted(v *fleetVersion, _ *rule.Env) rule.Limiter {
	l.limit.mu.Lock()
	defer l.limit.mu.Unlock()
	if !l.limit.versions.Adopt(v.number) {
		return nil
	}
	return &askLimiter{l.limit, l.asker, v, l.within}
}

// change goes over to a version. Calls go on without it that it may not be for. The mutex is
// held.
func (l *askedLimit) change(v *fleetVersion, now clock.Instant) {
	if !l.versions.Activate(v.number) {
		return
	}
	if v.rule.Origin != l.version.rule.Origin {
		l.releaseAll()
	}
	l.version = v
	l.warning.change(v)
	l.asker.Change(v.terms, v.operation(), v.rule.Fleet.OnOutage, now)
}

// join asks the backend for a call that waits under a version; false if a newer one is in force, or none.
func (l *askedLimit) join(w *askWaiter, v *fleetVersion, c *rule.Call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.change(v, c.Now)
	if !l.versions.IsInForce(v.number) {
		return false
	}
	w.wait = l.asker.Wait(c.Now, c.Tokens, w.Wake)
	l.waiters[w] = struct{}{}
	return true
}

// releaseAll has all calls that wait go on without the rule. The mutex is held.
func (l *askedLimit) releaseAll() {
	for w := range l.waiters {
		w.wait.Leave()
		w.Release()
		w.Wake()
	}
	clear(l.waiters)
}

// askWaiter is a call that waits for an answer, or until the instant that it names.
type askWaiter struct {
	pending.Call
	limit *askedLimit
	wait  *ask.Wait
	until clock.Instant // how long it can wait
}

// Look implements [pending.Place].
func (w *askWaiter) Look(now clock.Instant) time.Duration {
	after, state := w.wait.Poll(now)
	if state != exchange.Pending {
		w.limit.warning.note(w.limit.asker.Used)
	}
	w.limit.mu.Lock()
	defer w.limit.mu.Unlock()
	switch {
	case !w.Waits():
		return 0
	case state == exchange.Allowed:
		w.Grant(rule.Ticket(w.wait.Asked()))
	case state == exchange.Denied:
		w.Refuse()
	case after > 0 && now.Add(after) > w.until:
		w.wait.Leave()
		w.Refuse()
	default:
		return after
	}
	delete(w.limit.waiters, w)
	return 0
}

// Withdraw implements [pending.Place].
func (w *askWaiter) Withdraw(clock.Instant) {
	w.limit.mu.Lock()
	defer w.limit.mu.Unlock()
	if w.Waits() {
		w.wait.Leave()
		w.End()
		delete(w.limit.waiters, w)
	}
}

// GiveBack implements [pending.Place].
func (w *askWaiter) GiveBack(clock.Instant, rule.Ticket) { w.wait.Leave() }

// retryAfter returns when a call can pass that is denied for so long: of a balance that is not known.
func (v *fleetVersion) retryAfter(denied time.Duration) time.Duration {
	if v.rule.Algorithm == Prepaid {
		return 0
	}
	return denied
}
