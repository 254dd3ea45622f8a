package flow

import "time"

// WithDefaults returns the rule with every field that was left out filled in.
// The receiver stays as it is.
func (r Rule) WithDefaults() Rule {
	setDefault(&r.Name, r.Resource)
	setDefault(&r.Name, r.Match)
	setDefault(&r.Window, DefaultWindow)
	setDefault(&r.Algorithm, SlidingWindow)
	if r.Algorithm == SlidingWindow {
		setDefault(&r.Buckets, defaultBuckets(r.Window))
	}
	if r.WarmUp.Period != 0 {
		setDefault(&r.WarmUp.ColdFactor, DefaultColdFactor)
		if r.Limiter() != BucketLimiter {
			setDefault(&r.WarmUp.Step, DefaultStep)
		}
	} else if r.Limiter() == BucketLimiter {
		setDefault(&r.Burst, defaultBurst(r.Limit))
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

// defaultBurst is the limit, or 1 where no call could pass otherwise.
func defaultBurst(limit float64) float64 {
	if limit > 1 && limit <= MaxLimit {
		return limit
	}
	return 1
}
