package flow

import (
	"fmt"
	"time"
)

// Fault is one mistake in a rule: which field, what is wrong with it and what
// to do. Fields are named as in a rule document, those of a warm-up as
// "warmUp.period".
type Fault struct {
	Field   string
	Message string
}

// WithDefaults returns the rule with every field that was left out filled in.
// The receiver stays as it is.
func (r Rule) WithDefaults() Rule {
	setDefault(&r.Name, r.Resource)
	setDefault(&r.Window, DefaultWindow)
	setDefault(&r.Algorithm, SlidingWindow)
	setDefault(&r.Control, Reject)
	if r.Control == Reject {
		setDefault(&r.Buckets, defaultBuckets(r.Window))
	}
	if r.WarmUp.Period != 0 {
		setDefault(&r.WarmUp.ColdFactor, DefaultColdFactor)
		setDefault(&r.WarmUp.Step, DefaultStep)
	}
	return r
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// defaultBuckets is 10, for windows that can be parted so.
func defaultBuckets(window time.Duration) int {
	return int(max(1, min(DefaultBuckets, window/MinBucket)))
}

// Validate returns every mistake in the rule, none when it is sound. It judges
// the rule as [Rule.WithDefaults] completes it.
func (r Rule) Validate() []Fault {
	r = r.WithDefaults()
	var f faults
	f.check(r.Resource != "", "resource", "is missing: name the resource that the rule guards")
	f.check(r.Limit >= 0 && r.Limit <= MaxLimit, "limit",
		"is %v: must be from 0 (blocks all) to %.0f tokens per window", r.Limit, float64(MaxLimit))
	f.check(r.Window >= MinWindow && r.Window <= MaxWindow, "window",
		"is %v: must be from %v to %v", r.Window, MinWindow, MaxWindow)
	f.check(r.Algorithm == SlidingWindow, "algorithm",
		"is %q: this version knows %q", r.Algorithm, SlidingWindow)
	switch r.Control {
	case Reject:
		r.validateReject(&f)
	case Throttle:
		r.validateThrottle(&f)
	default:
		f.add("control", "is %q: must be %q or %q", r.Control, Reject, Throttle)
	}
	r.validateWarmUp(&f)
	return f
}

func (r Rule) validateReject(f *faults) {
	f.check(r.Buckets >= 1 && r.Buckets <= MaxBuckets, "buckets",
		"is %d: must be from 1 to %d", r.Buckets, MaxBuckets)
	if r.Buckets >= 1 && r.Window >= MinWindow {
		f.check(r.Window/time.Duration(r.Buckets) >= MinBucket, "buckets",
			"is %d: a window of %v has at most %d, so that none is shorter than %v",
			r.Buckets, r.Window, r.Window/MinBucket, MinBucket)
		f.check(r.Window%time.Duration(r.Buckets) == 0, "buckets",
			"is %d: does not part a window of %v evenly; choose a divisor", r.Buckets, r.Window)
	}
	f.check(r.MaxWait == 0, "maxWait", "has no effect with control %q: remove it or set control to %q", Reject, Throttle)
}

func (r Rule) validateThrottle(f *faults) {
	f.check(r.MaxWait >= 0 && r.MaxWait <= MaxMaxWait, "maxWait", "is %v: must be from 0s to %v", r.MaxWait, MaxMaxWait)
	f.check(r.Buckets == 0, "buckets", "has no effect with control %q: remove it", Throttle)
	f.check(!r.Strict, "strict", "has no effect with control %q: turns are evenly spaced in any case; remove it", Throttle)
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
	f.check(w.Period == 0 || w.Step >= MinWindow && w.Step <= time.Minute, "warmUp.step",
		"is %v: must be from %v to %v", w.Step, MinWindow, time.Minute)
}

// faults gathers what is wrong with a rule.
type faults []Fault

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, Fault{Field: field, Message: fmt.Sprintf(format, args...)})
}

// check adds the fault unless ok holds. Written so that NaN fails every range.
func (f *faults) check(ok bool, field, format string, args ...any) {
	if !ok {
		f.add(field, format, args...)
	}
}
