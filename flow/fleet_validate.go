package flow

import (
	"math"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// defaultMode returns how instances share the limit if the rule does not say it.
func (r *Rule) defaultMode() fleet.Mode {
	switch {
	case r.Calendar.IsSet(), r.Algorithm == Prepaid:
		return fleet.ModeAsk
	case r.Algorithm == FixedWindow:
		return fleet.ModeWindow
	}
	return fleet.ModeLease
}

// validateFleet judges how instances share the limit.
func (r *Rule) validateFleet(f *rule.Faults) {
	if !settings.ValidateFleet(f, r.Scope, r.Fleet) {
		return
	}
	switch {
	case r.Algorithm == Prepaid:
		settings.ValidateAskedBalance(f, r.Fleet, r.Shadow)
		return
	case r.Calendar.IsSet():
		settings.ValidateAsked(f, r.Fleet, r.Shadow)
	case r.Fleet.Mode == fleet.ModeShare:
		return
	default:
		r.validateMode(f)
	}
	for _, field := range r.localFields() {
		f.Add(field, "has no effect with scope %q unless fleet.mode is %q: remove it, or set that", rule.ScopeFleet, fleet.ModeShare)
	}
}

// validateMode judges whether instances can share the limit by the mode, of a rule for which several are.
func (r *Rule) validateMode(f *rule.Faults) {
	switch mode := r.Fleet.Mode; {
	case mode == fleet.ModeLease && r.Algorithm == FixedWindow:
		f.Add("fleet.mode", "is %q, which shares a bucket: with algorithm %q set it to %q or %q, or set algorithm to %q",
			mode, r.Algorithm, fleet.ModeWindow, fleet.ModeAsk, SlidingWindow)
	case mode == fleet.ModeWindow && r.limiterKind() != windowLimiter:
		f.Add("fleet.mode", "is %q, which shares a window: with algorithm %q set it to %q, %q or %q",
			mode, r.Algorithm, fleet.ModeLease, fleet.ModeAsk, fleet.ModeShare)
	}
	if whole := r.Fleet.Mode == fleet.ModeWindow || r.Fleet.Mode == fleet.ModeAsk; whole && r.limiterKind() == windowLimiter &&
		r.Limit != math.Trunc(r.Limit) {
		f.Add("limit", "is %v: with fleet.mode %q must be a whole number of tokens: for a fraction, lengthen the window", r.Limit, r.Fleet.Mode)
	}
}

// localFields returns which fields the rule gives that only a limiter of this instance can
// obey.
func (r *Rule) localFields() (fields []string) {
	add := func(field string, given bool) {
		if given {
			fields = append(fields, field)
		}
	}
	add("strict", r.Strict)
	add("overdraft", r.Overdraft)
	add("warmUp.period", r.WarmUp != WarmUp{})
	add("follow.signal", r.Follow != Follow{})
	add("related", r.Related != "")
	return fields
}
