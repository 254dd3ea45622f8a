package flow

import (
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/warmup"
)

// warmUpState tells how warm the resource of a throttle or, in a windowWarming, of a window is. Of a rule
// that does not warm up it is the zero value, and its limits are those of the rule.
type warmUpState struct{ bucket warmup.Bucket }

// newWarmUpState returns the state of a cold resource.
func newWarmUpState(r *compiledRule, now clock.Instant) warmUpState {
	if !r.warmsUp() {
		return warmUpState{}
	}
	return warmUpState{warmup.NewBucket(r.curve, r.curve.Step(now))}
}

// queueLimit returns the effective limit, in tokens per window, of the step that
// contains now, for a throttle.
func (s *warmUpState) queueLimit(r *compiledRule, now clock.Instant) float64 {
	return s.limit(r, now, r.window())
}

func (s *warmUpState) limit(r *compiledRule, now clock.Instant, window time.Duration) float64 {
	if !r.warmsUp() {
		return r.rule.Limit
	}
	s.bucket.Sync(r.curve, r.curve.Step(now))
	return s.bucket.Limit(r.curve) * window.Seconds()
}

// isCold says whether the resource was as cold as it can be when the limit was last
// computed.
func (s *warmUpState) isCold(r *compiledRule) bool { return !r.warmsUp() || s.bucket.IsFull(r.curve) }

// refused notes that a window refused a call of n tokens, in the step for which the
// limit was last computed.
func (s *warmUpState) refused(r *compiledRule, n int64) {
	if n > 0 && r.warmsUp() {
		s.bucket.KeepBusy(r.curve, n)
	}
}

// delayed notes that a call of n tokens that came at now can pass no earlier than at a
// later instant: it waits for that, or is refused if the rule does not let it wait so
// long.
func (s *warmUpState) delayed(r *compiledRule, n int64, now, passAt clock.Instant) {
	switch {
	case !r.warmsUp() || passAt <= now:
	case passAt.Sub(now) > r.rule.MaxWait:
		s.bucket.AddRefused(n)
	default:
		s.bucket.KeepBusyUntil(r.curve.Step(passAt))
	}
}

// passed notes that n tokens passed at an instant; a negative n takes them back.
func (s *warmUpState) passed(r *compiledRule, n int64, at clock.Instant) {
	if r.warmsUp() {
		s.bucket.AddPassed(r.curve.Step(at), n)
	}
}

// adopt goes over to a changed rule. A resource that was half warm stays half warm.
func (s *warmUpState) adopt(from, to *compiledRule, now clock.Instant) {
	switch {
	case !to.warmsUp():
	case from.warmsUp():
		s.bucket.Rescale(from.curve, to.curve)
	default:
		*s = newWarmUpState(to, now)
	}
}
