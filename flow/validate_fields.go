package flow

import "time"

// validateWait judges how long calls may wait.
func (r Rule) validateWait(f *faults) {
	if r.Limiter() == WindowLimiter {
		f.check(r.MaxWait == 0, "maxWait",
			"has no effect on a window: remove it, or set control to %q or algorithm to %q", Throttle, TokenBucket)
		return
	}
	f.check(r.MaxWait >= 0 && r.MaxWait <= MaxMaxWait, "maxWait", "is %v: must be from 0s to %v", r.MaxWait, MaxMaxWait)
}

// validateBucket judges the fields of the token bucket.
func (r Rule) validateBucket(f *faults) {
	switch {
	case r.Limiter() != BucketLimiter:
		f.check(r.Burst == 0, "burst", "has no effect with %s: remove it or set algorithm to %q", r.manner(), TokenBucket)
		f.check(!r.Overdraft, "overdraft", "has no effect with %s: remove it or set algorithm to %q", r.manner(), TokenBucket)
	case r.WarmUp.Period != 0:
		f.check(r.Burst == 0, "burst", "has no effect with warmUp, which says what the bucket holds: remove one of them")
	case r.Burst > 0 && r.Burst < 1 && !r.Overdraft:
		f.add("burst", "is %v: no call could ever pass; make it at least 1, or set overdraft to true", r.Burst)
	default:
		f.check(r.Burst > 0 && r.Burst <= MaxLimit, "burst",
			"is %v: must be greater than 0 and at most %.0f tokens", r.Burst, float64(MaxLimit))
	}
}

func (r Rule) validateWarmUp(f *faults) {
	w := r.WarmUp
	if w == (WarmUp{}) {
		return
	}
	f.check(w.Period > 0 && w.Period <= MaxPeriod, "warmUp.period",
		"is %v: must be longer than 0s and at most %v", w.Period, MaxPeriod)
	f.check(w.Period == 0 || w.ColdFactor > 1 && w.ColdFactor <= MaxColdFactor, "warmUp.coldFactor",
		"is %v: must be greater than 1 and at most %v (a cold resource gets limit/coldFactor)", w.ColdFactor, MaxColdFactor)
	if r.Limiter() == BucketLimiter {
		f.check(w.Step == 0, "warmUp.step",
			"has no effect with algorithm %q, whose ceiling follows every call: remove it", TokenBucket)
		return
	}
	f.check(w.Period == 0 || w.Step >= MinWindow && w.Step <= time.Minute, "warmUp.step",
		"is %v: must be from %v to %v", w.Step, MinWindow, time.Minute)
}

func (r Rule) validateRelated(f *faults) {
	if r.Related == "" {
		return
	}
	f.check(r.Related != r.Resource, "related", "is %q, the guarded resource: remove it", r.Related)
	f.check(r.Limiter() == WindowLimiter, "related",
		"has no effect with %s, which cannot count what passes elsewhere: remove it or use a window", r.manner())
}
