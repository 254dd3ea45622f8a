package flow

import (
	"errors"
	"time"

	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rule"
)

// Validate returns every mistake in the rule, none when it is sound. It judges
// the rule as [Rule.WithDefaults] completes it. A field that would have no
// effect is a mistake too.
func (r Rule) Validate() []Fault {
	r = r.WithDefaults()
	var f rule.Faults
	r.validateTarget(&f)
	return append(f, r.validateOwn()...)
}

// validateOwn judges the fields of a complete rule other than its target.
func (r Rule) validateOwn() []Fault {
	var f rule.Faults
	if !rule.Within(r.Limit, 0, MaxLimit) {
		f.Add("limit", "is %v: must be from 0 (blocks all) to %.0f tokens per window", r.Limit, float64(MaxLimit))
	}
	shortest := r.shortestWindow()
	if !rule.Within(r.Window, shortest, MaxWindow) {
		f.Add("window", "is %v: must be from %v to %v", r.Window, shortest, MaxWindow)
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
func (r *Rule) validateTarget(f *rule.Faults) {
	if r.Match == "" {
		if r.Resource == "" {
			f.Add("resource", "is missing: name the resource that the rule guards, or write a pattern in match")
		}
		if r.Resource == OtherResources {
			f.Add("resource", noName, OtherResources)
		}
		if r.Shared {
			f.Add("perResource", "has no effect without match: remove it")
		}
		return
	}
	if r.Resource != "" {
		f.Add("match", "stands beside resource %q: a rule has one or the other; remove one", r.Resource)
	}
	_, err := match.Compile(r.Match)
	if mistake := (*match.Error)(nil); errors.As(err, &mistake) {
		f.Add("match", "is %s", mistake.Fault())
	}
}

// shortestWindow is that of a sliding window for rules that say nothing else.
func (r *Rule) shortestWindow() time.Duration {
	if r.Control == Throttle || r.Algorithm == FixedWindow || r.Algorithm == TokenBucket {
		return MinFixedWindow
	}
	return MinWindow
}

// validateAlgorithm says whether the algorithm and the control go together, so
// that it makes sense to ask which fields go with them.
func (r *Rule) validateAlgorithm(f *rule.Faults) bool {
	known := r.Algorithm == SlidingWindow || r.Algorithm == FixedWindow || r.Algorithm == TokenBucket
	if !known {
		f.Add("algorithm", "is %q: must be %q, %q or %q", r.Algorithm, SlidingWindow, FixedWindow, TokenBucket)
	}
	controlled := r.Control == Reject || r.Control == Throttle
	if !controlled {
		f.Add("control", "is %q: must be %q or %q", r.Control, Reject, Throttle)
	}
	if !known || !controlled {
		return false
	}
	if r.Control == Throttle && r.Algorithm != SlidingWindow {
		f.Add("algorithm", "has no effect with control %q: remove it or set control to %q", Throttle, Reject)
		return false
	}
	return true
}

// validateSliding judges the fields of the sliding window.
func (r *Rule) validateSliding(f *rule.Faults) {
	if !r.slides() {
		if r.Buckets != 0 {
			f.Add("buckets", "has no effect with %s: remove it", r.manner())
		}
		if r.Strict {
			f.Add("strict", "has no effect with %s: remove it", r.manner())
		}
		return
	}
	if !rule.Within(r.Buckets, 1, MaxBuckets) {
		f.Add("buckets", "is %d: must be from 1 to %d", r.Buckets, MaxBuckets)
	}
	if r.Buckets >= 1 && r.Window >= MinWindow {
		if r.Window/time.Duration(r.Buckets) < MinBucket {
			f.Add("buckets", "is %d: a window of %v has at most %d, so that none is shorter than %v",
				r.Buckets, r.Window, r.Window/MinBucket, MinBucket)
		}
		if r.Window%time.Duration(r.Buckets) != 0 {
			f.Add("buckets", "is %d: does not part a window of %v evenly; choose a divisor", r.Buckets, r.Window)
		}
	}
}

// manner names what decides which other fields make sense.
func (r *Rule) manner() string {
	if r.Control == Throttle {
		return `control "throttle"`
	}
	return `algorithm "` + string(r.Algorithm) + `"`
}
