package quota

import (
	"hash/maphash"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// limiter enforces one version of a rule on one resource, or on all that share the rule.
type limiter struct {
	param   string
	perDay  int64
	version uint64
	counts  *counts // of all versions
}

func newLimiter(r *Rule, env rule.Env) rule.Limiter {
	return &limiter{r.Param, int64(r.PerDay), env.Version, &counts{seed: maphash.MakeSeed()}}
}

// adopt returns the limiter of a changed rule, which goes on from what was counted; nil if that
// was by another attribute.
func adopt(present rule.Limiter, r *Rule, env rule.Env) rule.Limiter {
	before := present.(*limiter)
	if before.param != r.Param {
		return nil
	}
	return &limiter{r.Param, int64(r.PerDay), env.Version, before.counts}
}

// Acquire takes the tokens of a call from what is left of its value. The ticket says where
// they were counted.
func (l *limiter) Acquire(c rule.Call) (rule.Ticket, rule.Decision) {
	if !c.Attribute.IsSet() {
		return 0, rule.Pass
	}
	l.counts.mu.Lock()
	defer l.counts.mu.Unlock()
	switch begin := l.counts.begin(); {
	case l.version < l.counts.version:
		return 0, rule.Stale // a newer version is in force
	case c.Now < begin:
		return rule.Ticket(begin), rule.Stale // the day of the call is over
	}
	l.counts.version = l.version
	l.counts.open(c.Now)
	at := l.counts.find(c.Attribute)
	if l.left(at) < int64(c.Tokens) {
		return rule.RetryTicket(l.refusedFor(c)), rule.Block
	}
	l.counts.take(at, c.Attribute, int64(c.Tokens))
	return l.counts.ticket(at), rule.Pass
}

// left returns what is left today of the quota that is counted at a place.
func (l *limiter) left(at int) int64 { return max(0, l.perDay-l.counts.used[at].tokens) }

// refusedFor returns how long such a call is refused that is refused now.
func (l *limiter) refusedFor(c rule.Call) time.Duration {
	if int64(c.Tokens) > l.perDay {
		return rule.Never
	}
	return dayOf(c.Now).end().Sub(c.Now)
}

// GiveBack returns the tokens of a call, unless their day is over.
func (l *limiter) GiveBack(_ clock.Instant, t rule.Ticket, tokens int32) {
	if t == 0 { // the call had no value
		return
	}
	l.counts.mu.Lock()
	defer l.counts.mu.Unlock()
	l.counts.giveBack(t, int64(tokens))
}

// Activate brings this version into force, when no call has done so yet.
func (l *limiter) Activate(clock.Instant) {
	l.counts.mu.Lock()
	defer l.counts.mu.Unlock()
	l.counts.version = max(l.counts.version, l.version)
}

// RetryAfter returns the time until the next day if what is left of the value does not suffice.
func (l *limiter) RetryAfter(c rule.Call) time.Duration {
	q := l.QuotaOf(c)
	if q == nil || q.Remaining >= int64(c.Tokens) {
		return 0
	}
	return l.refusedFor(c)
}

// Status returns how many values have used some of their quota.
func (l *limiter) Status(now clock.Instant) rule.Status {
	l.counts.mu.Lock()
	defer l.counts.mu.Unlock()
	values := l.counts.values
	if l.counts.isPast(now) {
		values = 0
	}
	return rule.Status{Gauges: []float64{float64(values)}}
}

// QuotaOf returns what is left of the quota of one value, which adapters write into answers.
func (l *limiter) QuotaOf(c rule.Call) *rule.Quota {
	if !c.Attribute.IsSet() {
		return nil
	}
	l.counts.mu.Lock()
	defer l.counts.mu.Unlock()
	limit := float64(l.perDay)
	q := &rule.Quota{Limit: limit, Effective: limit, Window: day, Remaining: l.perDay}
	if !l.counts.isPast(c.Now) {
		q.Remaining = l.left(l.counts.find(c.Attribute))
	}
	if q.Remaining < l.perDay {
		q.Reset = dayOf(c.Now).end().Sub(c.Now)
	}
	return q
}

// Idle says whether nothing is counted that still matters.
func (l *limiter) Idle(now clock.Instant) bool {
	l.counts.mu.Lock()
	defer l.counts.mu.Unlock()
	return l.counts.values == 0 || l.counts.isPast(now)
}
