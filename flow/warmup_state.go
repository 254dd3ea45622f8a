package flow

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/warmup"
)

// warmUpState tells how warm the resource of a window or of a throttle is. Of a rule
// that does not warm up it is the zero value, and its limits are those of the rule.
type warmUpState struct{ bucket warmup.Bucket }

// newWarmUpState returns the state of a cold resource.
func newWarmUpState(t *Terms, now clock.Instant) warmUpState {
	if !t.warmsUp() {
		return warmUpState{}
	}
	return warmUpState{warmup.NewBucket(t.curve, t.curve.Step(now))}
}

// queueLimit returns the effective limit, in tokens per window, of the step that
// contains now, for a throttle.
func (s *warmUpState) queueLimit(t *Terms, now clock.Instant) float64 {
	return s.limit(t, now, t.seconds)
}

// windowLimit returns the same for a window, in tokens per span of the window.
func (s *warmUpState) windowLimit(t *Terms, now clock.Instant) float64 {
	return s.limit(t, now, t.spanLength().Seconds())
}

func (s *warmUpState) limit(t *Terms, now clock.Instant, seconds float64) float64 {
	if !t.warmsUp() {
		return t.rule.Limit
	}
	s.bucket.Sync(t.curve, t.curve.Step(now))
	return s.bucket.Ceiling(t.curve) * seconds
}

// isCold says whether the resource was as cold as it can be when the limit was last
// computed.
func (s *warmUpState) isCold(t *Terms) bool { return !t.warmsUp() || s.bucket.IsFull(t.curve) }

// refused notes that a window refused a call of n tokens, in the step for which the
// limit was last computed.
func (s *warmUpState) refused(t *Terms, n int64) {
	if n > 0 && t.warmsUp() {
		s.bucket.KeepBusy(t.curve, n)
	}
}

// delayed notes that a call of n tokens that came at now can pass no earlier than at a
// later turn: it waits for that, or is refused if the rule does not let it wait so long.
func (s *warmUpState) delayed(t *Terms, n int64, now, turn clock.Instant) {
	switch {
	case !t.warmsUp() || turn <= now:
	case turn.Sub(now) > t.rule.MaxWait:
		s.bucket.AddRefused(n)
	default:
		s.bucket.KeepBusyUntil(t.curve.Step(turn))
	}
}

// passed notes that n tokens passed at an instant; a negative n takes them back.
func (s *warmUpState) passed(t *Terms, n int64, at clock.Instant) {
	if t.warmsUp() {
		s.bucket.AddPassed(t.curve.Step(at), n)
	}
}

// adopt goes over to a changed rule. A resource that was half warm stays half warm.
func (s *warmUpState) adopt(from, to *Terms, now clock.Instant) {
	switch {
	case !to.warmsUp():
	case from.warmsUp():
		s.bucket.Rescale(from.curve, to.curve)
	default:
		*s = newWarmUpState(to, now)
	}
}
