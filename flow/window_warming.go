package flow

import "github.com/penstock-go/penstock/clock"

// windowWarming is how warm the resource of a window is, and the limits that its buckets had for that.
// nil stands for a window whose rule does not warm up: its limit is that of the rule.
type windowWarming struct {
	state   warmUpState
	history limitHistory
}

// newWindowWarming returns that of a cold resource; nil if the rule does not warm up.
func newWindowWarming(r *compiledRule, now clock.Instant) *windowWarming {
	if !r.warmsUp() {
		return nil
	}
	return &windowWarming{state: newWarmUpState(r, now)}
}

// limitOf returns the effective limit of the window that ends with a bucket, the open
// one or a later one, in tokens per window.
func (s *windowWarming) limitOf(r *compiledRule, bucket int64) float64 {
	if s == nil {
		return r.rule.Limit
	}
	return s.history.add(r, bucket, s.state.limit(r, r.bucketStart(bucket), r.spanLength()))
}

// passed notes that n tokens passed at an instant; a negative n takes them back.
func (s *windowWarming) passed(r *compiledRule, n int64, at clock.Instant) {
	if s != nil {
		s.state.passed(r, n, at)
	}
}

// refused notes that the window refused a call of n tokens, in the step for which the
// limit was last computed.
func (s *windowWarming) refused(r *compiledRule, n int64) {
	if s != nil {
		s.state.refused(r, n)
	}
}

// isCold says whether the resource was as cold as it can be, for all of the window, when the limit was
// last computed.
func (s *windowWarming) isCold(r *compiledRule) bool {
	return s == nil || s.state.isCold(r) && s.history.isConstant()
}

// adopt returns what it is under a changed rule, from an instant on.
func (s *windowWarming) adopt(from, to *compiledRule, now clock.Instant) *windowWarming {
	if s == nil || !to.warmsUp() {
		return newWindowWarming(to, now)
	}
	s.state.adopt(from, to, now)
	switch {
	case from.version != to.version:
		s.history = limitHistory{}
	case from.rule.Limit != to.rule.Limit: // it follows a signal, so neither is 0
		s.history.scale(from.rule.Limit, to.rule.Limit)
	}
	return s
}

// copyTo makes a copy that can be changed, in memory that the caller has, and returns it.
func (s *windowWarming) copyTo(copied *windowWarming) *windowWarming {
	if s == nil {
		return nil
	}
	*copied = windowWarming{state: s.state, history: s.history.clone()}
	return copied
}
