package flow

import (
	"time"

	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// validate returns the mistakes of a complete rule in the fields that other kinds do
// not have.
func validate(r *Rule) []rule.Fault {
	var f rule.Faults
	if !rule.Within(r.Limit, 0, MaxLimit) {
		f.Add("limit", "is %v: must be from 0 (blocks all) to %.0f tokens per window", r.Limit, float64(MaxLimit))
	}
	if shortest := r.shortestWindow(); !r.validatePrepaid(&f) && !r.validateCalendar(&f) && !rule.Within(r.Window, shortest, MaxWindow) {
		f.Add("window", "is %v: must be from %v to %v, or days, weeks or months, such as 2d", r.Window, shortest, MaxWindow)
	}
	if r.validateAlgorithm(&f) {
		r.validateSliding(&f)
		r.validateWait(&f)
		r.validateBucket(&f)
		r.validateFairness(&f)
	}
	if r.Algorithm != Prepaid {
		r.validateWarmUp(&f)
		r.validateFollow(&f)
	}
	r.validateRelated(&f)
	r.validateFleet(&f)
	if r.OnExceed != "" || r.Counts != "" || r.WarnAt != 0 {
		settings.ValidateOnExceed(&f, r.OnExceed, r.waits())
		settings.ValidateCounts(&f, r.Counts, r.keepsTokens())
		settings.ValidateWarnAt(&f, r.WarnAt, r.hidesUse())
	}
	return f
}

// shortestWindow is that of a sliding window for algorithms that are not known.
func (r *Rule) shortestWindow() time.Duration {
	switch r.Algorithm {
	case FixedWindow, TokenBucket, Throttle:
		return MinFixedWindow
	}
	return MinWindow
}

// validateAlgorithm says whether the algorithm is known, so that it makes sense to
// ask which fields go with it.
func (r *Rule) validateAlgorithm(f *rule.Faults) bool {
	switch r.Algorithm {
	case SlidingWindow, FixedWindow, TokenBucket, Throttle, Prepaid:
		return true
	}
	f.Add("algorithm", "is %q: must be %q, %q, %q, %q or %q", r.Algorithm, SlidingWindow, FixedWindow, TokenBucket, Throttle, Prepaid)
	return false
}

// validateSliding judges the fields of the sliding window.
func (r *Rule) validateSliding(f *rule.Faults) {
	if r.Algorithm != SlidingWindow {
		if r.Buckets != 0 {
			f.Add("buckets", "has no effect with algorithm %q: remove it", r.Algorithm)
		}
		if r.Strict {
			f.Add("strict", "has no effect with algorithm %q: remove it", r.Algorithm)
		}
		return
	}
	if !rule.Within(r.Buckets, 1, MaxBuckets) {
		f.Add("buckets", "is %d: must be from 1 to %d", r.Buckets, MaxBuckets)
	}
	if r.Buckets >= 1 && r.Window >= MinWindow {
		if r.Window/time.Duration(r.Buckets) < minBucket {
			f.Add("buckets", "is %d: a window of %v has at most %d, so that none is shorter than %v",
				r.Buckets, r.Window, r.Window/minBucket, minBucket)
		}
		if r.Window%time.Duration(r.Buckets) != 0 {
			f.Add("buckets", "is %d: does not part a window of %v evenly; choose a divisor", r.Buckets, r.Window)
		}
	}
}
