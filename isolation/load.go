package isolation

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

var _ optional.LoadReporter = (*limiter)(nil)

// Load returns the share of the places that is taken, and whether calls wait for one.
func (l *limiter) Load(clock.Instant) rule.Load {
	word := l.pool.word.Load()
	return rule.Load{Utilization: float64(word&placesMask) / float64(max(l.limit, 1)), Waiting: word&waiting != 0}
}
