package flow

import (
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
)

// leakyBucket is the schedule of a throttle, the leaky bucket as a queue. A call passes
// when its tokens have leaked at the effective limit since the last call passed:
//
//	passes at = max(arrival, last pass + tokens / effective limit · window)
//
// Calls pass at whole nanoseconds, though the distances need not be whole. What an
// instant is rounded up by is taken off the next distance, so that rounding does not
// add up.
type leakyBucket struct {
	compiled    *compiledRule
	warmUp      warmUpState
	lastPass    rounded // when the last call passes that was granted
	plannedPass rounded // when the first call in the queue is to pass
}

// rounded is an instant and what it was rounded up by, in nanoseconds.
type rounded struct {
	at clock.Instant
	by float64
}

// after returns the instant so many nanoseconds later.
func (r rounded) after(nanoseconds float64) rounded {
	const tolerance = 1e-4 // by which sums of fractions may miss a whole nanosecond
	exact := min(nanoseconds-r.by, float64(forever))
	whole := math.Ceil(exact - tolerance)
	by := whole - exact
	if by < tolerance {
		by = 0 // it was whole
	}
	return rounded{r.at.Add(time.Duration(whole)), by}
}

// next plans with the limit of the step in which the call becomes the first.
func (s *leakyBucket) next(now clock.Instant, n int32) (clock.Instant, bool) {
	limit := s.warmUp.queueLimit(s.compiled, max(s.lastPass.at, now))
	if limit == 0 {
		return 0, false
	}
	s.plannedPass = s.lastPass.after(s.compiled.cost(int64(n), limit)).notBefore(now)
	return s.plannedPass.at, true
}

func (r rounded) notBefore(now clock.Instant) rounded {
	if r.at <= now {
		return rounded{at: now}
	}
	return r
}

// nextBehind plans with the limit of the step in which the first call in the queue
// became the first: the warm-up goes from step to step in the order in which calls
// pass.
func (s *leakyBucket) nextBehind(_ *waiter, between int64, now clock.Instant, n int32) (clock.Instant, bool) {
	limit := s.warmUp.queueLimit(s.compiled, s.lastPass.at)
	return s.plannedPass.after(s.compiled.cost(between+int64(n), limit)).notBefore(now).at, true
}

// nextInstead does not touch the plan of the first call in the queue.
func (s *leakyBucket) nextInstead(now clock.Instant, n int32) (clock.Instant, bool) {
	ahead := *s
	return ahead.next(now, n)
}

// delay notes the demand. Calls pass far apart because the throttle keeps them so,
// which does not mean that the resource is idle.
func (s *leakyBucket) delay(now, passAt clock.Instant, n int32) {
	s.warmUp.delayed(s.compiled, int64(n), now, passAt)
}

func (s *leakyBucket) grant(_, passAt clock.Instant, n int32) turn {
	s.warmUp.queueLimit(s.compiled, passAt) // enter the step that it falls in
	s.warmUp.passed(s.compiled, int64(n), passAt)
	turn := turn{at: passAt, tokens: n, undoAt: s.lastPass.at, undoAmount: s.lastPass.by}
	s.lastPass = rounded{at: passAt}
	if s.plannedPass.at == passAt {
		s.lastPass = s.plannedPass
	}
	return turn
}

// takeBack takes back the last turn. An earlier one cannot be given to another
// call: the call behind it has kept its distance already.
func (s *leakyBucket) takeBack(turn turn) bool {
	if s.lastPass.at != turn.at {
		return false
	}
	s.lastPass = rounded{turn.undoAt, turn.undoAmount}
	s.warmUp.passed(s.compiled, -int64(turn.tokens), turn.at)
	return true
}

func (s *leakyBucket) adopt(r *compiledRule, now clock.Instant) schedule {
	s.warmUp.adopt(s.compiled, r, now)
	s.compiled = r
	return s
}

func (s *leakyBucket) resume(log *passLog, _ clock.Instant) {
	if at, ok := log.last(); ok {
		s.lastPass = rounded{at: at}
	}
}

// recent returns a token for the last pass: only its instant is known.
func (s *leakyBucket) recent(now clock.Instant) (at clock.Instant, tokens int64) {
	if s.lastPass.at == beforeAll {
		return 0, 0
	}
	return min(s.lastPass.at, now), 1
}

func (s *leakyBucket) isNew(now clock.Instant) bool {
	ahead := *s
	passAt, ok := ahead.next(now, int32(max(1, math.Ceil(s.compiled.rule.Limit))))
	return (!ok || passAt == now) && ahead.warmUp.isCold(s.compiled)
}
