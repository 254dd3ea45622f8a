package inspect

import (
	"slices"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rules"
)

const (
	// unchangedShare is how much longer breakers are kept, than it took to find them, while the engine tells of no
	// change of a state, and maxUnchanged the longest time.
	unchangedShare = 10 * keptShare
	maxUnchanged   = time.Minute
)

// changedLimiters keeps which limiters are not in their first state: to find them among many takes most of the time
// of a status. Who forces or switches something, or has other rules in force, sees at once what came of it.
type changedLimiters struct {
	mu       sync.Mutex // guards what follows
	revision uint64
	forced   []core.Forced // also what was switched

	breakers keptLimiters
	others   keptLimiters
}

// keptLimiters are those of some kinds.
type keptLimiters struct {
	known     Limiters
	until     clock.Instant
	unchanged clock.Instant // until when they are kept while no state changes
	last      uint64        // the event before they were found
}

// limiters returns those of the engine, as they were a few seconds ago at the most, or when a breaker last
// changed its state. Breakers tell of each change when it happens; what other kinds say may change with time,
// or with a list, and is told only once somebody looks.
func (l *changedLimiters) limiters(engine *core.Engine) Limiters {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, status := engine.Clock().Now(), engine.Status()
	forced := slices.Concat(status.Forced, status.Switches)
	if status.Revision != l.revision || !slices.Equal(forced, l.forced) {
		l.revision, l.forced, l.breakers, l.others = status.Revision, forced, keptLimiters{}, keptLimiters{}
	}
	if now >= l.breakers.until && !l.breakers.isUnchanged(engine, now) {
		l.breakers.find(engine, func(kind rules.Kind) bool { return kind == rules.KindBreaker })
	}
	if now >= l.others.until {
		l.others.find(engine, func(kind rules.Kind) bool { return kind != rules.KindBreaker })
	}
	return l.breakers.known.with(&l.others.known)
}

func (k *keptLimiters) find(engine *core.Engine, kinds func(rules.Kind) bool) {
	began := engine.Clock().Now()
	k.last = engine.LastEvent()
	k.known = limitersOf(engine, Selection{changed: kinds})
	found := engine.Clock().Now()
	k.until = keptUntil(began, found)
	k.unchanged = found.Add(min(unchangedShare*found.Sub(began), maxUnchanged))
}

// isUnchanged says that the engine has told of no change of a state since, and that they are not too old.
func (k *keptLimiters) isUnchanged(engine *core.Engine, now clock.Instant) bool {
	if now >= k.unchanged {
		return false
	}
	if kept, _ := engine.Events(0); len(kept) == 0 { // the engine keeps none
		return false
	}
	events, missed := engine.Events(k.last)
	return !missed && !slices.ContainsFunc(events, func(e core.Event) bool { return e.Type == core.EventState })
}

// with returns these limiters and others, in order.
func (l *Limiters) with(others *Limiters) Limiters {
	all := Limiters{
		Limiters:     slices.Concat(l.Limiters, others.Limiters),
		MoreLimiters: l.MoreLimiters + others.MoreLimiters, MoreValues: l.MoreValues + others.MoreValues,
	}
	slices.SortFunc(all.Limiters, func(a, b Limiter) int { return a.compareName(&b) })
	if more := len(all.Limiters) - maxLimiters; more > 0 {
		all.Limiters, all.MoreLimiters = all.Limiters[:maxLimiters], all.MoreLimiters+more
	}
	return all
}
