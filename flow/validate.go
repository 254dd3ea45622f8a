package flow

import (
	"errors"
	"time"

	"github.com/penstock-go/penstock/match"
)

// Validate returns every mistake in the rule, none when it is sound. It judges
// the rule as [Rule.WithDefaults] completes it. A field that would have no
// effect is a mistake too.
func (r Rule) Validate() []Fault {
	r = r.WithDefaults()
	var f faults
	r.validateTarget(&f)
	if !within(r.Limit, 0, MaxLimit) {
		f.add("limit", "is %v: must be from 0 (blocks all) to %.0f tokens per window", r.Limit, float64(MaxLimit))
	}
	shortest := r.shortestWindow()
	if !within(r.Window, shortest, MaxWindow) {
		f.add("window", "is %v: must be from %v to %v", r.Window, shortest, MaxWindow)
	}
	if r.validateAlgorithm(&f) {
		r.validateSliding(&f)
		r.validateWait(&f)
		r.validateBucket(&f)
	}
	r.validateWarmUp(&f)
	r.validateRelated(&f)
	return f
}

// noName is what is wrong with [OtherResources] as a name.
const noName = "is %q, which stands for the resources that an engine has no room for: choose another name"

// validateTarget judges what the rule guards.
func (r *Rule) validateTarget(f *faults) {
	if r.Match == "" {
		if r.Resource == "" {
			f.add("resource", "is missing: name the resource that the rule guards, or write a pattern in match")
		}
		if r.Resource == OtherResources {
			f.add("resource", noName, OtherResources)
		}
		if r.Shared {
			f.add("perResource", "has no effect without match: remove it")
		}
		return
	}
	if r.Resource != "" {
		f.add("match", "stands beside resource %q: a rule has one or the other; remove one", r.Resource)
	}
	_, err := match.Compile(r.Match)
	if mistake := (*match.Error)(nil); errors.As(err, &mistake) {
		f.add("match", "is %s", mistake.Fault())
	}
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
func (r *Rule) validateAlgorithm(f *faults) bool {
	switch r.Algorithm {
	case SlidingWindow, FixedWindow, TokenBucket, Throttle:
		return true
	}
	f.add("algorithm", "is %q: must be %q, %q, %q or %q", r.Algorithm, SlidingWindow, FixedWindow, TokenBucket, Throttle)
	return false
}

// validateSliding judges the fields of the sliding window.
func (r *Rule) validateSliding(f *faults) {
	if r.Algorithm != SlidingWindow {
		if r.Buckets != 0 {
			f.add("buckets", "has no effect with algorithm %q: remove it", r.Algorithm)
		}
		if r.Strict {
			f.add("strict", "has no effect with algorithm %q: remove it", r.Algorithm)
		}
		return
	}
	if !within(r.Buckets, 1, MaxBuckets) {
		f.add("buckets", "is %d: must be from 1 to %d", r.Buckets, MaxBuckets)
	}
	if r.Buckets >= 1 && r.Window >= MinWindow {
		if r.Window/time.Duration(r.Buckets) < MinBucket {
			f.add("buckets", "is %d: a window of %v has at most %d, so that none is shorter than %v",
				r.Buckets, r.Window, r.Window/MinBucket, MinBucket)
		}
		if r.Window%time.Duration(r.Buckets) != 0 {
			f.add("buckets", "is %d: does not part a window of %v evenly; choose a divisor", r.Buckets, r.Window)
		}
	}
}
