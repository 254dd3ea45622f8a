package flow

import (
	"cmp"
	"math"
	"time"

	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/internal/settings"
	"github.com/penstock-go/penstock/rule"
)

// Rules of [rule.ScopeFleet] have limiters of their own. How instances share the limit says which:
//
//	lease, window   budgetLimiter: takes tokens that the instance has leased
//	                queueLimiter: the same, and calls may wait for tokens, or are evenly spaced
//	ask             askLimiter: each call waits for the answer of the backend
//	share           shareLimiter, shareQueue: a [RuleLimiter] whose limit is the instance's share

// fleetVersion is one version of a rule of the fleet. It never changes.
type fleetVersion struct {
	rule   Rule
	number uint64
	mode   fleet.Mode // by which the limiter decides
	terms  fleet.Terms

	warning *warning // nil if it has none
}

// newFleetVersion returns the version of a rule that a limiter of env is for.
func newFleetVersion(r *Rule, env *rule.Env) *fleetVersion {
	v := &fleetVersion{rule: *r, number: env.Version, mode: r.decisionMode()}
	v.warning = newWarning(&v.rule, env.Warn)
	v.terms = fleet.Terms{
		Key:    settings.FleetKey(env, rule.Key{Kind: kindName, Name: r.Name}, r.Match != ""),
		Limit:  r.Limit,
		Window: r.Calendar.Length(r.Window),
		Burst:  r.fleetBurst(v.mode),
	}
	v.terms.Calendar = r.Calendar.Compile()
	if r.limiterKind() == windowLimiter {
		v.terms.Buckets = max(1, r.Buckets) // a fixed window is not parted
	}
	if v.mode == fleet.ModeAsk {
		v.terms.MaxWait = r.MaxWait
	}
	return v
}

// decisionMode is the mode of the rule, but for shadow rules that would wait for answers.
func (r *Rule) decisionMode() fleet.Mode {
	if r.Shadow && r.Fleet.Mode == fleet.ModeAsk {
		return r.defaultMode()
	}
	return r.Fleet.Mode
}

// evenly is the time for which a throttle may lease tokens at once. Its calls are spaced
// evenly nevertheless.
const evenly = 100 * time.Millisecond

// fleetBurst returns how many tokens may pass at once after a quiet time.
func (r *Rule) fleetBurst(mode fleet.Mode) float64 {
	switch {
	case r.Algorithm == TokenBucket:
		return r.Burst
	case mode == fleet.ModeShare:
		return 0
	case r.Algorithm == SlidingWindow:
		return max(1, r.Limit/float64(r.Buckets))
	case r.Algorithm == Throttle && mode == fleet.ModeLease:
		return max(1, r.Limit*min(1, evenly.Seconds()/r.Window.Seconds()))
	}
	return 1
}

// operation returns how the backend decides on the calls of a rule of mode ask. A bucket for
// which calls wait is a throttle that lets a burst through.
func (v *fleetVersion) operation() fleet.Operation {
	switch {
	case v.rule.Algorithm == Prepaid:
		return fleet.AskBalance
	case v.rule.Algorithm == FixedWindow:
		return fleet.AskFixedWindow
	case v.rule.Algorithm == SlidingWindow:
		return fleet.AskSlidingLog
	case v.rule.Algorithm == TokenBucket && v.rule.MaxWait == 0:
		return fleet.AskTokenBucket
	}
	return fleet.AskThrottle
}

// canWait says whether calls can wait for tokens that the instance leases.
func (v *fleetVersion) canWait() bool {
	return v.rule.Algorithm == Throttle || v.rule.Algorithm == TokenBucket && v.rule.MaxWait > 0
}

// fleetLimiter is a limiter of a rule of the fleet.
type fleetLimiter interface {
	rule.Limiter
	rule.Settler
	rule.Activator
	rule.Retirer

	fleetVersion() *fleetVersion

	// adopted returns the limiter of another version, of the same mode and key, which goes
	// on with what this one shares; nil if that has ended.
	adopted(*fleetVersion, *rule.Env) rule.Limiter
}

// status returns the status of a limiter by that of its limit.
func (v *fleetVersion) status(of *fleet.LimitStatus) rule.Status {
	window := cmp.Or(of.Window, v.terms.Window) // of the calendar it is the one that is open
	quota := &rule.Quota{
		Limit: v.rule.Limit, Effective: of.Granted * window.Seconds(), Window: window,
		Remaining: of.Remaining, Reset: knownRetry(of.Retry),
	}
	switch {
	case v.rule.Algorithm == Prepaid:
		if quota = balanceQuota(v.rule.Limit, of.Remaining); !of.IsCounted {
			quota.Used, quota.Unknown = math.NaN(), true
		}
	case of.Mode == fleet.ModeAsk && !of.Outage && v.rule.Limit > 0 && of.Remaining == 0 && of.Retry == 0:
		quota.Unknown = true
	case of.IsCounted:
		quota.Used, quota.Capacity = float64(of.Used), v.rule.Limit
	}
	return rule.Status{
		Quota: quota,
		Fleet: &rule.FleetStatus{Granted: of.Granted, Demand: of.Demand, Outage: of.Outage},
	}
}

// knownRetry returns a duration until something changes, 0 if nothing ever does.
func knownRetry(d time.Duration) time.Duration {
	if d == rule.Never {
		return 0
	}
	return d
}
