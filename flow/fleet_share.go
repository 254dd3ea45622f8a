package flow

import (
	"math"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/internal/sharing"
	"github.com/penstock-go/penstock/internal/sharing/share"
	"github.com/penstock-go/penstock/internal/versions"
	"github.com/penstock-go/penstock/rule"
)

// shareLimiter is one version of a rule of mode share with a window: an ordinary ruleLimiter
// whose limit is what the instance has of that of the fleet. Its calls are counted as demand.
type shareLimiter struct {
	*ruleLimiter
	shared  *sharedLimit
	share   *share.Share // that of shared
	version *fleetVersion
}

// shareQueue is a shareLimiter of a rule with a queue, in which calls wait.
type shareQueue struct {
	*shareLimiter
	calls ruleQueue
}

// sharedLimit is what all versions of a rule have in common.
type sharedLimit struct {
	share *share.Share

	mu       sync.Mutex // guards what follows
	versions versions.Versions
}

var (
	_ fleetLimiter         = (*shareLimiter)(nil)
	_ optional.PassCounter = (*shareLimiter)(nil)
	_ optional.Inheritor   = (*shareLimiter)(nil)
	_ fleetLimiter         = (*shareQueue)(nil)
	_ rule.Queue           = (*shareQueue)(nil)
)

// shareSource is the limit of a rule of which the instance has a share. What a signal makes of
// the limit it makes of the share.
type shareSource struct {
	share   *share.Share
	written Rule
	signal  *signalSource // nil if the rule follows none
}

func (s *shareSource) limit() float64 {
	limit := min(s.share.Limit(), MaxLimit) // it is infinite while all calls are to pass
	if s.signal != nil && s.written.Limit > 0 {
		limit *= s.signal.limit() / s.written.Limit
	}
	return limit
}

// apply gives the instance its share of the burst, too.
func (s *shareSource) apply(r *Rule, limit float64) {
	r.Limit = limit
	if s.written.Burst > 0 && s.written.Limit > 0 {
		r.Burst = min(max(1, s.written.Burst*limit/s.written.Limit), MaxLimit)
	}
}

// withShare returns a copy of the compiled rule whose limit is that of a share.
func (r *compiledRule) withShare(share *share.Share) *compiledRule {
	source := &shareSource{share: share, written: *r.rule}
	if r.follower != nil {
		source.signal, _ = r.follower.source.(*signalSource)
	}
	return r.withSource(source)
}

// newShareLimiter returns the limiter of a rule that counts nothing yet.
func newShareLimiter(v *fleetVersion, env *rule.Env) rule.Limiter {
	share := sharing.Of(env.Fleet).NewShare(v.terms, v.rule.Fleet.OnOutage, env.Now)
	l := &shareLimiter{
		ruleLimiter: newLimiter(compiledFor(*env, nil).withShare(share), env.Now),
		shared:      &sharedLimit{share: share},
		share:       share, version: v,
	}
	l.shared.versions.Begin(v.number)
	return l.asQueue()
}

// asQueue returns the limiter, as a queue if calls can wait for it.
func (l *shareLimiter) asQueue() rule.Limiter {
	if l.queue != nil {
		return &shareQueue{l, ruleQueue{l.ruleLimiter}}
	}
	return l
}

// Acquire takes what the call takes. It may be a shadow rule that is asked, which never waits.
func (l *shareLimiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	ticket, decision := l.ruleLimiter.Acquire(c)
	l.count(c, decision)
	return ticket, decision
}

// count counts a call as demand that has been decided on.
func (l *shareLimiter) count(c rule.Call, decision rule.Decision) {
	if decision != rule.Stale {
		l.share.Count(c.Now, c.Tokens, decision == rule.Pass)
	}
}

// GiveBack returns what Acquire took.
func (l *shareLimiter) GiveBack(now clock.Instant, t rule.Ticket, tokens int32) {
	l.ruleLimiter.GiveBack(now, t, tokens)
	l.share.Count(now, -tokens, true)
}

// Settle corrects what a call took.
func (l *shareLimiter) Settle(now, start clock.Instant, t rule.Ticket, tokens int32) {
	l.ruleLimiter.Settle(now, start, t, tokens)
	l.share.Count(now, tokens, true)
}

// CountPass counts a call that passed on the resource that the rule is related to.
func (l *shareLimiter) CountPass(now clock.Instant, tokens int32) {
	l.ruleLimiter.CountPass(now, tokens)
	l.share.Count(now, tokens, true)
}

// Inherit begins with what another limiter of the same rule has counted.
func (l *shareLimiter) Inherit(shared rule.Limiter, now clock.Instant) {
	switch from := shared.(type) {
	case *shareLimiter:
		l.ruleLimiter.Inherit(from.ruleLimiter, now)
	case *shareQueue:
		l.ruleLimiter.Inherit(from.ruleLimiter, now)
	}
}

// Status tells the share of the limit, and what remains of it.
func (l *shareLimiter) Status(now clock.Instant) rule.Status {
	of := l.share.Status(now)
	status, own := l.version.status(&of), l.ruleLimiter.Status(now)
	own.Quota.Limit = l.version.rule.Limit
	if math.IsInf(of.Granted, 1) {
		own.Quota.Effective = of.Granted
	}
	status.Quota = own.Quota
	return status
}

// Idle says whether nothing would be missed if the limiter were made anew.
func (l *shareLimiter) Idle(now clock.Instant) bool {
	return l.ruleLimiter.Idle(now) && l.share.Idle(now)
}

// Activate puts this version in force, unless a newer one is.
func (l *shareLimiter) Activate(now clock.Instant) {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	if l.shared.versions.Activate(l.version.number) {
		l.share.Change(l.version.terms, l.version.rule.Fleet.OnOutage, now)
	}
	l.ruleLimiter.Activate(now)
}

// Retire lets go of calls that wait, for the rule is gone.
func (l *shareLimiter) Retire(now clock.Instant) {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	if l.shared.versions.Retire(l.version.number) {
		l.ruleLimiter.Retire(now)
		l.share.Release(now)
	}
}

func (l *shareLimiter) fleetVersion() *fleetVersion { return l.version }

func (l *shareLimiter) adopted(v *fleetVersion, env *rule.Env) rule.Limiter {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	if !l.shared.versions.Adopt(v.number) {
		return nil
	}
	compiled := compiledFor(*env, nil).withShare(l.share)
	next := &shareLimiter{shared: l.shared, share: l.share, version: v}
	next.ruleLimiter = l.next(compiled, env.Now)
	return next.asQueue()
}

// Acquire takes what the call takes if it need not wait. A shadow rule lets no call wait: it
// takes the later place.
func (l *shareQueue) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if l.version.rule.Shadow {
		return l.shareLimiter.Acquire(c)
	}
	ticket, decision := l.calls.Acquire(c)
	if decision != rule.Wait { // else it counts when it joins
		l.count(c, decision)
	}
	return ticket, decision
}

// Join has a call wait.
func (l *shareQueue) Join(c rule.Call, patience rule.Patience) (rule.Waiter, rule.Ticket, rule.Decision) {
	waiter, ticket, decision := l.calls.Join(c, patience)
	if decision == rule.Wait {
		l.share.Count(c.Now, c.Tokens, true) // taken back if it leaves
		return &shareWaiter{waiter, l.share, c.Tokens}, 0, decision
	}
	l.count(c, decision)
	return nil, ticket, decision
}

// shareWaiter is a call that waits in the queue of a shareQueue.
type shareWaiter struct {
	rule.Waiter
	share  *share.Share
	tokens int32
}

// Poll implements [rule.Waiter].
func (w *shareWaiter) Poll(now clock.Instant) (rule.Ticket, time.Duration, rule.Decision) {
	ticket, after, decision := w.Waiter.Poll(now)
	switch decision {
	case rule.Block:
		w.share.Count(now, -w.tokens, true)
		w.share.Count(now, w.tokens, false)
	case rule.Stale:
		w.share.Count(now, -w.tokens, true)
	}
	return ticket, after, decision
}

// Leave implements [rule.Waiter].
func (w *shareWaiter) Leave(now clock.Instant) {
	w.Waiter.Leave(now)
	w.share.Count(now, -w.tokens, true)
}
