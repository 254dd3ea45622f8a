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
	until    clock.Instant
	revision uint64
	forced   []core.Forced // also what was switched
}

// limiters returns those of the engine, as they were a few seconds ago at the most.
func (l *changedLimiters) limiters(engine *core.Engine) Limiters {
	l.mu.Lock()
	defer l.mu.Unlock()
	began, status := engine.Clock().Now(), engine.Status()
	forced := slices.Concat(status.Forced, status.Switches)
	if began < l.until && status.Revision == l.revision && slices.Equal(forced, l.forced) {
		return l.known
	}
	l.known = LimitersOf(engine, Selection{changed: true})
	l.until, l.revision, l.forced = keptUntil(began, engine.Clock().Now()), status.Revision, forced
	return l.known
}
