package flow

import (
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
			rule.SetDefault(&r.Fleet.OnOutage, fleet.OutageClosed)
		}
	case r.Calendar.IsSet():
		rule.SetDefault(&r.Algorithm, FixedWindow)
	default:
		rule.SetDefault(&r.Window, defaultWindow)
		rule.SetDefault(&r.Algorithm, SlidingWindow)
	}
	if r.Algorithm == SlidingWindow {
		rule.SetDefault(&r.Buckets, defaultBuckets(r.Window))
	}
	if r.WarmUp.Period != 0 {
		rule.SetDefault(&r.WarmUp.ColdFactor, DefaultColdFactor)
		if r.limiterKind() != bucketLimiter {
			rule.SetDefault(&r.WarmUp.Step, DefaultStep)
		}
	} else if r.limiterKind() == bucketLimiter {
		rule.SetDefault(&r.Burst, defaultBurst(r.Limit))
	}
	if r.OnExceed == rule.ExceedRefuse {
		r.OnExceed = ""
	}
	if r.Counts == rule.CountsCalls {
		r.Counts = ""
	}
	if r.isFair() {
		rule.SetDefault(&r.WeightBy, ByTokens)
		rule.SetDefault(&r.Newcomers, r.defaultNewcomers())
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
