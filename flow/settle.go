package flow

import (
	"math"

	"github.com/penstock-go/penstock/clock"
)

// settleTokens adds n tokens at now to what a call took at an instant, whatever remains
// of the limit, or gives some of them back if n is negative.
func (w *window) settleTokens(r *compiledRule, now, taken clock.Instant, n int32) {
	switch {
	case n > 0:
		w.Count(r, now, n)
	case n < 0:
		w.GiveBack(r, taken, -max(n, -math.MaxInt32))
	}
}

// settle adds n tokens at now to what a call took at an instant, into debt if need be,
// or gives some of them back if n is negative. Those who wait are planned anew.
func (q *queue) settle(now, taken clock.Instant, n int32) {
	if n == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.catchUp(now)
	if throttle, ok := q.schedule.(*leakyBucket); ok {
		throttle.settle(n)
	} else if n > 0 {
		q.grant(now, now, n)
	} else {
		q.schedule.takeBack(turn{tokens: -n, undoAt: taken})
		if q.log != nil {
			q.log.giveBack(taken, -int64(n))
		}
	}
	q.promote(now)
}

// settle puts the next call off by the time that n more tokens take, counted from the
// last one. Tokens are not given back: calls that passed have waited for them already.
func (s *leakyBucket) settle(n int32) {
	limit := s.warmUp.queueLimit(s.compiled, s.lastPass.at)
	if n < 0 || limit == 0 {
		return
	}
	s.lastPass = s.lastPass.after(s.compiled.cost(int64(n), limit))
	s.warmUp.queueLimit(s.compiled, s.lastPass.at) // enter the step that it falls in
	s.warmUp.passed(s.compiled, int64(n), s.lastPass.at)
}
