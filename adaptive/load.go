package adaptive

import (
	"github.com/penstock-go/penstock/adaptive/internal/shed"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

var (
	_ optional.LoadReporter = (*latencyLimiter)(nil)
	_ optional.LoadReporter = (*shedLimiter)(nil)
)

// mostUnlimited is the most that calls under way tell while nothing is short: the limit is only what it
// has been raised to so far, and calls wait for a moment to find out whether more do as well.
const mostUnlimited = 0.65

// Load returns the calls under way as a share of the limit, of the group that is nearest to its own.
func (l *latencyLimiter) Load(clock.Instant) (load rule.Load) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		if g == nil || len(g.classes) == 0 {
			continue
		}
		share := float64(g.underWay()) / float64(max(g.limit, 1))
		if !g.isLimited {
			share = min(share, mostUnlimited)
		}
		load.Utilization = max(load.Utilization, share)
		load.Waiting = load.Waiting || g.isLimited && g.queue.total > 0
	}
	return load
}

// Load returns the calls under way as a share of the limit.
func (l *shedLimiter) Load(clock.Instant) rule.Load {
	return rule.Load{Utilization: float64(underWay(l.state.calls.Load())) / float64(max(l.state.limits().of(shed.Above), 1))}
}
