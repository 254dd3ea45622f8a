package flow

import (
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// validateWait judges how long calls may wait.
func (r *Rule) validateWait(f *rule.Faults) {
	if kind := r.limiterKind(); kind == windowLimiter || kind == balanceLimiter {
		if r.MaxWait != 0 {
			f.Add("maxWait", "has no effect on %s: remove it, or set algorithm to %q or %q", kind, Throttle, TokenBucket)
		}
		return
	}
	if !rule.Within(r.MaxWait, 0, maxMaxWait) {
		f.Add("maxWait", "is %v: must be from 0s to %v", r.MaxWait, maxMaxWait)
	}
}

// validateBucket judges the fields of the token bucket.
func (r *Rule) validateBucket(f *rule.Faults) {
	switch {
	case r.limiterKind() != bucketLimiter:
		if r.Burst != 0 {
			f.Add("burst", "has no effect with algorithm %q: remove it or set algorithm to %q", r.Algorithm, TokenBucket)
		}
		if r.Overdraft {
			f.Add("overdraft", "has no effect with algorithm %q: remove it or set algorithm to %q", r.Algorithm, TokenBucket)
		}
	case r.WarmUp.Period != 0:
		if r.Burst != 0 {
			f.Add("burst", "has no effect with warmUp, which says what the bucket holds: remove one of them")
		}
	case r.Burst > 0 && r.Burst < 1 && !r.Overdraft:
		f.Add("burst", "is %v: no call could ever pass; make it at least 1, or set overdraft to true", r.Burst)
	default:
		if r.Burst <= 0 || !rule.Within(r.Burst, 0, MaxLimit) {
			f.Add("burst", "is %v: must be greater than 0 and at most %.0f tokens", r.Burst, float64(MaxLimit))
		}
	}
}

// waits says what to change so that no call waits for the rule; "" if none does.
func (r *Rule) waits() string {
	switch {
	case r.Algorithm == Throttle:
		return "set algorithm to " + string(TokenBucket)
	case r.limiterKind() == bucketLimiter && r.MaxWait != 0:
		return "remove maxWait"
	case isOfFleet(r) && (r.Calendar.IsSet() || r.Algorithm == Prepaid):
		return settings.InsteadOfAsking(r.Fleet, "")
	case isOfFleet(r):
		return settings.InsteadOfAsking(r.Fleet, r.defaultMode())
	}
	return ""
}

// keepsTokens says what to change so that calls can give back all that they took; "" if they can.
func (r *Rule) keepsTokens() string {
	switch {
	case r.Algorithm == Throttle:
		return "set algorithm to " + string(TokenBucket)
	case r.limiterKind() == bucketLimiter && r.MaxWait != 0:
		return "remove maxWait"
	case r.limiterKind() == bucketLimiter && r.WarmUp != (WarmUp{}):
		return "remove warmUp"
	case r.Related != "":
		return "remove related"
	}
	return ""
}

// knowsUseBy says by which mode instances know how much of the limit of a window all of them have used.
func (r *Rule) knowsUseBy() string {
	if r.Shadow {
		return "set fleet.mode to " + string(fleet.ModeWindow)
	}
	return "set fleet.mode to " + string(fleet.ModeWindow) + " or " + string(fleet.ModeAsk)
}

// hidesUse says what to change so that it is known how much of the limit is used; "" if it is.
func (r *Rule) hidesUse() string {
	switch {
	case r.limiterKind() != windowLimiter:
		return "set algorithm to " + string(FixedWindow)
	case isOfFleet(r) && r.decisionMode() != fleet.ModeWindow && r.decisionMode() != fleet.ModeAsk:
		return r.knowsUseBy()
	case r.WarmUp != (WarmUp{}):
		return "remove warmUp"
	case r.Follow != (Follow{}):
		return "remove follow"
	case r.Related != "":
		return "remove related"
	}
	return ""
}

func (r *Rule) validateWarmUp(f *rule.Faults) {
	w := r.WarmUp
	if w == (WarmUp{}) {
		return
	}
	if w.Period <= 0 || w.Period > maxPeriod {
		f.Add("warmUp.period", "is %v: must be longer than 0s and at most %v", w.Period, maxPeriod)
	}
	if w.Period != 0 && (w.ColdFactor <= 1 || !rule.Within(w.ColdFactor, 1, maxColdFactor)) {
		f.Add("warmUp.coldFactor", "is %v: must be greater than 1 and at most %v (a cold resource gets limit/coldFactor)",
			w.ColdFactor, maxColdFactor)
	}
	if r.limiterKind() == bucketLimiter {
		if w.Step != 0 {
			f.Add("warmUp.step", "has no effect with algorithm %q, whose effective limit follows every call: remove it", TokenBucket)
		}
		return
	}
	if w.Period != 0 && !rule.Within(w.Step, minWindow, time.Minute) {
		f.Add("warmUp.step", "is %v: must be from %v to %v", w.Step, minWindow, time.Minute)
	}
}

func (r *Rule) validateRelated(f *rule.Faults) {
	if r.Related == "" {
		return
	}
	if r.Related == r.Resource {
		f.Add("related", "is %q, the guarded resource: remove it", r.Related)
	}
	if r.Related == rule.OtherResources {
		f.Add("related", "is %q, which stands for the resources beyond an engine's bound: choose another name", rule.OtherResources)
	}
	if r.limiterKind() != windowLimiter {
		f.Add("related", "has no effect with algorithm %q, which cannot count what passes elsewhere: remove it or use a window", r.Algorithm)
	}
}
