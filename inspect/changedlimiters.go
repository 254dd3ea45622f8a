package inspect

import (
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
)

const (
	// unchangedShare is how much longer limiters are kept, than it took to find them, while the engine tells of no
	// change of a state, and maxUnchanged the longest time: some kinds of rules may not tell.
	unchangedShare = 10 * keptShare
	maxUnchanged   = time.Minute
)

// changedLimiters keeps which limiters are not in their first state: to find them among many takes most of the time
// of a status. Who forces or switches something, or has other rules in force, sees at once what came of it.
type changedLimiters struct {
	mu        sync.Mutex // guards what follows
	known     Limiters
	revision  uint64
	forced    []core.Forced // also what was switched
	until     clock.Instant
	unchanged clock.Instant // until when they are kept while no state changes
	last      uint64        // the event before they were found
}

// limiters returns those of the engine, as they were a few seconds ago at the most, or when one last changed its
// state.
func (l *changedLimiters) limiters(engine *core.Engine) Limiters {
	l.mu.Lock()
	defer l.mu.Unlock()
	began, status := engine.Clock().Now(), engine.Status()
	forced := slices.Concat(status.Forced, status.Switches)
	if status.Revision == l.revision && slices.Equal(forced, l.forced) && l.isCurrent(engine, began) {
		return l.known
	}
	l.revision, l.forced, l.last = status.Revision, forced, engine.LastEvent()
	l.known = limitersOf(engine, Selection{changed: true})
	found := engine.Clock().Now()
	l.until = keptUntil(began, found)
	l.unchanged = found.Add(min(unchangedShare*found.Sub(began), maxUnchanged))
	return l.known
}

// isCurrent says whether what is known can be shown still.
func (l *changedLimiters) isCurrent(engine *core.Engine, now clock.Instant) bool {
	if now < l.until || now >= l.unchanged {
		return now < l.until
	}
	if kept, _ := engine.Events(0); len(kept) == 0 { // the engine keeps none
		return false
	}
	events, missed := engine.Events(l.last)
	return !missed && !slices.ContainsFunc(events, func(e core.Event) bool { return e.Type == core.EventState })
}
