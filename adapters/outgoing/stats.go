package outgoing

import (
	"cmp"
	"slices"
	"time"

	"github.com/penstock-go/penstock/rule"
)

// ThrottleStats is what a throttle has done.
type ThrottleStats struct {
	// Targets are those that have state, by name. One that is forgotten is missing.
	Targets []TargetStats

	// Untracked counts calls that were not limited because there were more than
	// [ThrottleOptions.MaxTargets] targets, or because the name of their target has more
	// than 512 bytes.
	Untracked uint64
}

// TargetStats is what a throttle has done with the calls of one target. Counts only grow.
type TargetStats struct {
	Target    string
	Accepted  uint64 // by the target
	Rejected  uint64 // by the target
	Throttled uint64 // refused here because the target rejects too many
	Paused    uint64 // refused here because the target wants no calls

	// Refusal is the share of calls of normal priority that are refused now because
	// the target rejects too many, from 0 to 0.99.
	Refusal float64

	// PausedFor is how long it takes until calls of all priorities pass; 0 if they do.
	PausedFor time.Duration
}

// Stats returns what the throttle has done. It takes no lock.
func (t *Throttle) Stats() ThrottleStats {
	now := t.clock.Now()
	stats := ThrottleStats{Untracked: t.targets.untracked.Load()}
	for _, of := range t.targets.all() {
		of.window.advance(now)
		present := of.window.totals()
		stats.Targets = append(stats.Targets, TargetStats{
			Target:    of.name,
			Accepted:  min(present.accepted, present.ended),
			Rejected:  present.ended - min(present.accepted, present.ended),
			Throttled: present.refused,
			Paused:    of.pausedCalls.Load(),
			Refusal:   min(of.window.refusal(t.k[rule.PriorityNormal.Level()]), maxRefusal),
			PausedFor: of.pausedFor(now),
		})
	}
	slices.SortFunc(stats.Targets, func(a, b TargetStats) int { return cmp.Compare(a.Target, b.Target) })
	return stats
}

// RetryStats is what the retry budget of a target has done. Counts only grow.
type RetryStats struct {
	Target  string  // "(other)" of those beyond [RetryOptions.MaxTargets]
	Calls   uint64  // that were no retries
	Retries uint64  // that were allowed
	Refused uint64  // retries
	Tokens  float64 // how many retries are allowed now
}

// stats returns what the budget has done.
func (b *retryBudget) stats() RetryStats {
	b.fill()
	return RetryStats{
		Target: b.exhausted.Target, Calls: b.calls.Load(), Retries: b.retries.Load(), Refused: b.refused.Load(),
		Tokens: float64(b.tokens.Load()) / retryUnit,
	}
}

// Stats returns what the budgets have done, by name of the target.
func (b *RetryBudgets) Stats() []RetryStats {
	var stats []RetryStats
	for _, budget := range b.targets.all() {
		stats = append(stats, budget.stats())
	}
	slices.SortFunc(stats, func(x, y RetryStats) int { return cmp.Compare(x.Target, y.Target) })
	if others := b.others.stats(); others.Calls+others.Retries+others.Refused > 0 {
		stats = append(stats, others)
	}
	return stats
}
