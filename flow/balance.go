package flow

import (
	"math"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

var _ optional.Balancer = (*ruleLimiter)(nil)

// Balance returns how many tokens are left. A throttle has no quota, and a rule with related
// counts the calls of others: of these it is not known.
func (l *ruleLimiter) Balance(now, _ clock.Instant, _ rule.Ticket) (left int64, known bool) {
	switch {
	case l.queue != nil:
		return l.queue.balance(now)
	case l.related:
		return 0, false
	}
	return l.window.balance(l.compiled, now), true
}

// balance returns how many tokens remain, below 0 if more were counted than the limit.
func (w *window) balance(r *compiledRule, now clock.Instant) int64 {
	w.update(r.inForce(), now)
	return w.counts.Remaining()
}

// balance returns how many tokens the bucket holds, below 0 if it is in debt; of a throttle
// that is not known.
func (q *queue) balance(now clock.Instant) (left int64, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.catchUp(now)
	switch s := q.schedule.(type) {
	case *tokenBucket:
		return int64(math.Floor(s.balance(now))), true
	case *warmingBucket:
		stored, owed := s.balance(now)
		if owed > atOnce {
			return min(-1, -int64(owed*s.rate)), true
		}
		return 1 + int64(stored), true
	}
	return 0, false
}

// Balance returns how many tokens the instance has, below 0 if it owes some.
func (l *budgetLimiter) Balance(now, _ clock.Instant, _ rule.Ticket) (left int64, known bool) {
	return l.budget.Balance(now)
}

// Balance returns how many tokens the instance has, below 0 if it owes some.
func (l *queueLimiter) Balance(now, _ clock.Instant, _ rule.Ticket) (left int64, known bool) {
	return l.budget.Balance(now)
}

// Balance returns how many tokens are left by what the backend answered last.
func (l *askLimiter) Balance(now, _ clock.Instant, _ rule.Ticket) (left int64, known bool) {
	return l.asker.Balance(now)
}
