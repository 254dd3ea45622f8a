package hotparam

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/rule"
)

var (
	_ rule.QuotaReader = (*limiter)(nil)
	_ rule.QuotaReader = (*throttle)(nil)
	_ rule.QuotaReader = (*fleetLimiter)(nil)
)

// QuotaOf returns what is left of the limit of a call's value. Nothing is told of a limit of calls
// under way.
func (l *limiter) QuotaOf(c rule.Call) *rule.Quota {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited || l.rule.Concurrency != 0 {
		return nil
	}
	q := l.quota(s, c.Now)
	switch t := l.tablesOf(s, c.Now); {
	case q.Limit == 0:
	case t.buckets != nil:
		rate := l.rates.Class(s.class)
		q.Remaining, q.Reset = t.buckets.Quota(s.key, rate, c.Now)
		if l.rule.Algorithm == TokenBucket {
			q.Used, q.Capacity = t.buckets.Used(s.key, rate, c.Now), l.rule.burst(q.Limit)
		}
	default:
		used := t.windows.Used(s.key, l.terms, c.Now)
		q.Used, q.Capacity = float64(used), q.Limit
		if q.Remaining = max(0, int64(q.Limit)-used); used > 0 {
			next := int32(min(q.Remaining+1, math.MaxInt32))
			q.Reset = t.windows.RetryAfter(s.key, l.terms, int64(q.Limit), c.Now, next)
		}
	}
	l.penalise(q, s, c)
	return q
}

// quota returns a quota of which is not known yet what is left.
func (l *limiter) quota(s subject, now clock.Instant) *rule.Quota {
	limit := l.limits[s.class]
	return &rule.Quota{Limit: limit, Effective: limit, Window: l.windowAt(now)}
}

// penalise leaves nothing to a value that is refused outright.
func (l *limiter) penalise(q *rule.Quota, s subject, c rule.Call) {
	if l.penalties == nil {
		return
	}
	if left := l.penalties.left(s.key, c.Now); left > 0 {
		if q.Remaining > 0 {
			q.Reset = 0
		}
		q.Remaining, q.Reset, q.Capacity, q.Unknown = 0, max(left, q.Reset), 0, false
	}
}

// QuotaOf returns what is left of the limit of a call's value, as far as this instance knows: what
// it may let pass without asking the fleet. Of a rule that asks for each call it knows only the limit, that
// nothing is left, or of a fixed window what the last answer said.
func (l *fleetLimiter) QuotaOf(c rule.Call) *rule.Quota {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return nil
	}
	q := l.quota(s, c.Now)
	v, _ := l.known(s)
	switch isAsk := l.rule.decisionMode() == fleet.ModeAsk; {
	case l.rule.Algorithm == Prepaid:
		left, _, known := int64(0), time.Duration(0), false
		if v != nil && v.cell == 0 {
			left, _, known = v.asker.Known(c.Now)
		}
		q.Prepaid, q.Unknown, q.Used, q.Window = true, !known, math.NaN(), 0
		if known {
			q.Remaining, q.Used, q.Capacity = left, max(0, q.Limit-float64(left)), q.Limit
		}
	case q.Limit == 0:
	case v == nil && isAsk:
		q.Unknown = true
	case v == nil:
		q.Remaining = int64(l.rule.burst(q.Limit))
	case v.asker != nil:
		left, lasts, known := v.asker.Known(c.Now)
		if q.Remaining, q.Reset = left, lasts; !known {
			q.Reset = v.asker.DeniedFor(c.Now, 1)
		}
		if used := v.asker.Status(c.Now); used.IsCounted {
			q.Used, q.Capacity = float64(used.Used), q.Limit
		}
		q.Unknown = q.Reset == 0
	default:
		if q.Remaining = v.budget.Available(c.Now); q.Remaining == 0 {
			q.Reset = max(0, v.budget.RetryAfter(c.Now, 1))
		}
	}
	l.penalise(q, s, c)
	return q
}
