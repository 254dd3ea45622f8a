package flow

import "time"

// validateWait judges how long calls may wait.
func (r *Rule) validateWait(f *faults) {
	if r.Limiter() == WindowLimiter {
		if r.MaxWait != 0 {
			f.add("maxWait", "has no effect on a window: remove it, or set algorithm to %q or %q", Throttle, TokenBucket)
		}
		return
	}
	if !within(r.MaxWait, 0, MaxMaxWait) {
		f.add("maxWait", "is %v: must be from 0s to %v", r.MaxWait, MaxMaxWait)
	}
}

// validateBucket judges the fields of the token bucket.
func (r *Rule) validateBucket(f *faults) {
	switch {
	case r.Limiter() != BucketLimiter:
		if r.Burst != 0 {
			f.add("burst", "has no effect with algorithm %q: remove it or set algorithm to %q", r.Algorithm, TokenBucket)
		}
		if r.Overdraft {
			f.add("overdraft", "has no effect with algorithm %q: remove it or set algorithm to %q", r.Algorithm, TokenBucket)
		}
	case r.WarmUp.Period != 0:
		if r.Burst != 0 {
			f.add("burst", "has no effect with warmUp, which says what the bucket holds: remove one of them")
		}
	case r.Burst > 0 && r.Burst < 1 && !r.Overdraft:
		f.add("burst", "is %v: no call could ever pass; make it at least 1, or set overdraft to true", r.Burst)
	default:
		if r.Burst <= 0 || !within(r.Burst, 0, MaxLimit) {
			f.add("burst", "is %v: must be greater than 0 and at most %.0f tokens", r.Burst, float64(MaxLimit))
		}
	}
}

func (r *Rule) validateWarmUp(f *faults) {
	w := r.WarmUp
	if w == (WarmUp{}) {
		return
	}
	if w.Period <= 0 || w.Period > MaxPeriod {
		f.add("warmUp.period", "is %v: must be longer than 0s and at most %v", w.Period, MaxPeriod)
	}
	if w.Period != 0 && (w.ColdFactor <= 1 || !within(w.ColdFactor, 1, MaxColdFactor)) {
		f.add("warmUp.coldFactor", "is %v: must be greater than 1 and at most %v (a cold resource gets limit/coldFactor)",
			w.ColdFactor, MaxColdFactor)
	}
	if r.Limiter() == BucketLimiter {
		if w.Step != 0 {
			f.add("warmUp.step", "has no effect with algorithm %q, whose ceiling follows every call: remove it", TokenBucket)
		}
		return
	}
	if w.Period != 0 && !within(w.Step, MinWindow, time.Minute) {
		f.add("warmUp.step", "is %v: must be from %v to %v", w.Step, MinWindow, time.Minute)
	}
}

func (r *Rule) validateRelated(f *faults) {
	if r.Related == "" {
		return
	}
	if r.Related == r.Resource {
		f.add("related", "is %q, the guarded resource: remove it", r.Related)
	}
	if r.Related == OtherResources {
		f.add("related", noName, OtherResources)
	}
	if r.Limiter() != WindowLimiter {
		f.add("related", "has no effect with algorithm %q, which cannot count what passes elsewhere: remove it or use a window", r.Algorithm)
	}
}
