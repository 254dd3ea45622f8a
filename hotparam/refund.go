package hotparam

import (
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

var (
	_ optional.Refunder = (*limiter)(nil)
	_ optional.Refunder = (*throttle)(nil)
	_ optional.Refunder = (*fleetLimiter)(nil)
)

// Refund gives back tokens that calls of the value took, unless that has no counters of its own.
func (l *limiter) Refund(c rule.Call) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return
	}
	switch t := l.tablesOf(s, c.Now); {
	case t.buckets != nil:
		t.buckets.Charge(s.key, s.class, c.Now, -c.Tokens)
	case t.windows != nil:
		t.windows.Refund(s.key, c.Now, int64(c.Tokens))
	}
}

// Refund does nothing: the calls behind have waited already.
func (*throttle) Refund(rule.Call) {}

// Refund does nothing: a call takes one place until it ends.
func (*concurrencyLimiter) Refund(rule.Call) {}

// Refund hands tokens that calls of the value took back to the fleet, in mode ask. See
// [sharing.Asker.Refund].
func (l *fleetLimiter) Refund(c rule.Call) {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return
	}
	if v, _ := l.known(s); v != nil && v.asker != nil && l.rule.Algorithm != Prepaid {
		v.asker.Refund(c.Now, c.Tokens)
	}
}
