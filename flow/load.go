package flow

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

var _ optional.LoadReporter = (*ruleQueue)(nil)

// Load returns how much of the longest wait a call would wait that came now. That calls wait is usual
// for a rule which spaces them, and says nothing more.
func (l *ruleQueue) Load(now clock.Instant) rule.Load {
	q, longest := l.queue, l.compiled.rule.MaxWait
	if longest == 0 {
		return rule.Load{}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	passAt, ok := q.passTimeOf(now, 1, &caller{})
	if !ok {
		return rule.Load{Utilization: 1}
	}
	return rule.Load{Utilization: max(passAt.Sub(now).Seconds()/longest.Seconds(), 0)}
}
