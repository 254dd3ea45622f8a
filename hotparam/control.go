package hotparam

import (
	"errors"
	"math"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

var (
	_ optional.ValueKeeper = (*limiter)(nil)
	_ optional.ValueKeeper = (*throttle)(nil)
	_ optional.ValueKeeper = (*concurrencyLimiter)(nil)
	_ optional.ValueKeeper = (*fleetLimiter)(nil)
)

// The errors of operators that cannot be done.
var (
	errNoValue = errors.New("the call has no value that the rule would limit")
	errPlaces  = errors.New("the rule limits calls under way, which end by themselves: there is nothing to reset but a penalty")
	errFleet   = errors.New("the limit is one of the whole fleet, which this instance cannot reset: " +
		"it can lift the penalty that the value has here")
	errShared    = errors.New("the value has no state of its own, as the table of the rule is full: it shares one with others")
	errNoPenalty = errors.New("the rule has no penalty")
)

// ValueOf returns the state of the value of a call.
func (l *limiter) ValueOf(c rule.Call) optional.ValueState {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return optional.ValueState{Used: math.NaN()}
	}
	state := l.valueState(s, c)
	if l.rule.Concurrency != 0 {
		state.Places = int64(l.limits[s.class])
		state.InFlight = l.tablesOf(s, c.Now).concurrency.InFlight(s.key, c.Now)
		return state
	}
	state.Quota, state.Used = l.QuotaOf(c), l.usedBy(s, c.Now)
	return state
}

// valueState returns what all rules know of a value.
func (l *limiter) valueState(s subject, c rule.Call) optional.ValueState {
	state := optional.ValueState{Value: l.shown(s, c.Attribute), Used: math.NaN()}
	if l.penalties != nil {
		if left := l.penalties.left(s.key, c.Now); left > 0 {
			state.Penalty = c.Now.Add(left)
		}
	}
	return state
}

// shown returns a value as status shows it.
func (l *limiter) shown(s subject, value rule.Attribute) string {
	if !value.IsSet() {
		return ""
	}
	v := hotValue{of: l.state}
	v.setName(value)
	return shownValue(&v, s.key, l.rule.Mask == rule.MaskHash)
}

// usedBy returns how many tokens are missing for a value to be as new.
func (l *limiter) usedBy(s subject, now clock.Instant) float64 {
	if l.limits[s.class] == 0 {
		return 0
	}
	t := l.tablesOf(s, now)
	if t.buckets != nil {
		return t.buckets.Used(s.key, l.rates.Class(s.class), now)
	}
	return float64(t.windows.Used(s.key, l.terms, now))
}

// ResetValue makes a value as new.
func (l *limiter) ResetValue(c rule.Call) error {
	s, decision := l.subjectOf(c.Attribute)
	switch {
	case decision != limited:
		return errNoValue
	case l.rule.Concurrency != 0:
		if l.penalties == nil {
			return errPlaces
		}
	case l.usedBy(s, c.Now) > 0:
		if t := l.tablesOf(s, c.Now); t.buckets != nil {
			t.buckets.Reset(s.key, s.class, c.Now)
		} else {
			t.windows.Reset(s.key, c.Now)
		}
		if l.usedBy(s, c.Now) > 0 && l.isShared(s, c.Now) {
			return errShared
		}
	}
	if l.penalties != nil {
		l.penalties.lift(s.key)
	}
	return nil
}

// isShared says whether a value has no slot.
func (l *limiter) isShared(s subject, now clock.Instant) bool {
	t := l.tablesOf(s, now)
	if t.buckets != nil {
		return t.buckets.PlaceOf(s.key) == 0
	}
	return !t.windows.Has(s.key)
}

// LiftPenalty ends the penalty of a value.
func (l *limiter) LiftPenalty(c rule.Call) error {
	s, decision := l.subjectOf(c.Attribute)
	switch {
	case decision != limited:
		return errNoValue
	case l.penalties == nil:
		return errNoPenalty
	}
	l.penalties.lift(s.key)
	return nil
}

// ValueOf returns what this instance knows of the value of a call.
func (l *fleetLimiter) ValueOf(c rule.Call) optional.ValueState {
	s, decision := l.subjectOf(c.Attribute)
	if decision != limited {
		return optional.ValueState{Used: math.NaN(), Instance: true}
	}
	state := l.valueState(s, c)
	state.Quota, state.Instance = l.QuotaOf(c), true
	return state
}

// ResetValue is not possible: other instances count, too.
func (*fleetLimiter) ResetValue(rule.Call) error { return errFleet }
