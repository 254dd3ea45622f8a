package core

import (
	"context"
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/load"
	"github.com/penstock-go/penstock/rule"
)

// Load is how loaded a resource or a service is, over the last seconds.
type Load struct {
	Level rule.LoadLevel

	// Utilization is what Level was made of: up to 1 the share of the places that are taken, more
	// where calls wait, and up to 2 where calls are refused.
	Utilization float64

	// Rate is how many tokens pass in a second; of several resources, in all of them.
	Rate float64
}

// Load returns how loaded the resource of the call is, as far as the rules of the resource with places
// or a queue tell: those of the kinds isolation and adaptive, and throttles. It follows the load over
// some seconds, so that a handler does not change with every call. It reads one atomic word, but for
// one call in 100 ms, which measures; so it is as of when the latest of the calls passed that ask. The
// first call that asks on a resource allocates.
func (g *Guard) Load() rule.LoadLevel {
	if g == nil || g.resource == nil {
		return rule.LoadNone
	}
	return g.resource.loadMeter().At(g.resource, g.start)
}

// LoadFrom returns the present load of the resource of the call within which ctx was made, see
// [GuardFrom]; [rule.LoadNone] if there is none.
func LoadFrom(ctx context.Context) rule.LoadLevel {
	c := callOf(ctx)
	if c == nil {
		return rule.LoadNone
	}
	defer c.mu.Unlock()
	r := c.guard.resource
	if r == nil {
		return rule.LoadNone
	}
	return r.loadMeter().At(r, r.Env.clock.Now())
}

// PresentLoad returns the highest load of the resources whose guards were asked for it in the last minute. So
// guards of calls to others, whose load is not that of this service, are not to be asked. It looks at the
// resources once in 100 ms at most. It returns false if no guard was asked.
func (e *Engine) PresentLoad() (Load, bool) {
	now := e.clock.Now()
	e.present.mu.Lock()
	defer e.present.mu.Unlock()
	if now >= e.present.until || now < e.present.until.Add(-load.Every) {
		e.present.until = now.Add(load.Every)
		e.present.highest, e.present.asked = e.highestLoad(now)
	}
	return e.present.highest, e.present.asked
}

// engineLoad is the load of an engine until an instant.
type engineLoad struct {
	mu      sync.Mutex // guards what follows
	until   clock.Instant
	highest Load
	asked   bool // a guard was asked of late
}

func (e *Engine) highestLoad(now clock.Instant) (highest Load, asked bool) {
	for _, r := range e.resources.All(now) {
		m := r.Load.Load()
		if m == nil || !m.WasAsked(now) {
			continue
		}
		level, utilization, rate := m.Present((*resource)(r), now)
		highest, asked = Load{max(highest.Level, level), max(highest.Utilization, utilization), highest.Rate + rate}, true
	}
	return highest, asked
}
