package inspect

import (
	"slices"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

// changedLimiters keeps which limiters are not in their first state: to find them among many takes most of the time
// of a status. Who forces or switches something, or has other rules in force, sees at once what came of it.
type changedLimiters struct {
	mu       sync.Mutex // guards what follows
	known    Limiters
	revision uint64
	forced   []core.Forced // also what was switched
	until    clock.Instant
}

// limiters returns those of the engine, as they were a few seconds ago at the most. The events of the engine do not
// say whether others have changed since: a state may change with time, or with a list, and is told only once
// somebody looks.
func (l *changedLimiters) limiters(engine *core.Engine) Limiters {
	l.mu.Lock()
	defer l.mu.Unlock()
	began, status := engine.Clock().Now(), engine.Status()
	forced := slices.Concat(status.Forced, status.Switches)
	if status.Revision == l.revision && slices.Equal(forced, l.forced) && began < l.until {
		return l.known
	}
	l.revision, l.forced = status.Revision, forced
	l.known = limitersOf(engine, RuleQuery{}, true)
	l.until = keptUntil(began, engine.Clock().Now())
	return l.known
}
