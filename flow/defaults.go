package flow

import (
	"cmp"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// defaults fills in the fields that other kinds do not have.
func defaults(r *Rule) {
	switch {
	case r.Algorithm == Prepaid:
		if r.Scope == rule.ScopeFleet {
			r.Fleet.OnOutage = cmp.Or(r.Fleet.OnOutage, fleet.OutageClosed)
		}
	case r.Calendar.IsSet():
		r.Algorithm = cmp.Or(r.Algorithm, FixedWindow)
	default:
		r.Window = cmp.Or(r.Window, defaultWindow)
		r.Algorithm = cmp.Or(r.Algorithm, SlidingWindow)
	}
	if r.Algorithm == SlidingWindow {
		r.Buckets = cmp.Or(r.Buckets, defaultBuckets(r.Window))
	}
	if r.WarmUp.Period != 0 {
		r.WarmUp.ColdFactor = cmp.Or(r.WarmUp.ColdFactor, defaultColdFactor)
		if r.limiterKind() != bucketLimiter {
			r.WarmUp.Step = cmp.Or(r.WarmUp.Step, defaultStep)
		}
	} else if r.limiterKind() == bucketLimiter {
		r.Burst = cmp.Or(r.Burst, defaultBurst(r.Limit))
	}
	if r.OnExceed == rule.ExceedRefuse {
		r.OnExceed = ""
	}
	if r.Counts == rule.CountsCalls {
		r.Counts = ""
	}
	if r.isFair() {
		r.WeightBy = cmp.Or(r.WeightBy, ByTokens)
		r.Newcomers = cmp.Or(r.Newcomers, r.defaultNewcomers())
	}
	settings.SetFleetDefaults(&r.Scope, &r.Fleet, r.defaultMode())
}

// defaultBuckets is 10, for windows that can be parted so.
func defaultBuckets(window time.Duration) int {
	return int(max(1, min(defaultMaxBuckets, window/minBucket)))
}

// defaultBurst is the limit, or 1 where no call could pass otherwise.
func defaultBurst(limit float64) float64 {
	if limit > 1 && limit <= MaxLimit {
		return limit
	}
	return 1
}
