package registry

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/rule"
)

// Get returns the resource of a name. If there are too many names, it is one that
// shares the statistics of the overflow.
func (g *Registry[E]) Get(name string) *Resource[E] {
	if r := g.Table.Get(name); r != nil {
		return r
	}
	return g.GetOrAdd(name)
}

// GetOrAdd is get for a name that is not in the table, or whose resource was evicted:
// it adds the name if there is space.
func (g *Registry[E]) GetOrAdd(name string) *Resource[E] {
	now := g.config.Clock.Now()
	g.sweepSome(now)
	for {
		patterns := g.overflow.patterns.Load()
		r, hasSpace := g.lookUp(name)
		switch {
		case r != nil:
			return r
		case !hasSpace:
			g.warnOfOverflow(name)
			return g.overflowFor(name)
		}
		// Not under the lock, for it takes as long as rules match the name.
		Forcings := g.Forcings.Load()
		made := g.newResourceFor(name, patterns, now)
		states := made.States // guarded by SwapMu from now on
		if r = g.add(made, patterns, now); r == made && g.Forcings.Load() != Forcings {
			g.applyForcedStates(states)
		}
		if r != nil {
			return r
		}
	}
}

// applyForcedStates brings the limiters of a new resource to the states that have been
// forced or released since these were made.
func (g *Registry[E]) applyForcedStates(rules []*inforce.State) {
	for _, s := range rules {
		if s.Own == nil {
			continue
		}
		g.SwapMu.Lock()
		limiter, ok := s.Own.Limiter.Limiter.(rule.Controllable)
		g.SwapMu.Unlock()
		if ok {
			s.Rule.ApplyForced([]rule.Controllable{limiter}, g.config.Clock.Now)
		}
	}
}

// Peek returns what a call of the name would find, without adding a new name.
func (g *Registry[E]) Peek(name string) *Resource[E] {
	r, hasSpace := g.lookUp(name)
	switch {
	case r != nil:
		return r
	case !hasSpace:
		return g.overflowFor(name)
	}
	patterns := g.overflow.patterns.Load()
	now := g.config.Clock.Now()
	r = g.newResourceFor(name, patterns, now)
	g.inherit(r, patterns, now)
	return r
}

// lookUp returns the resource of a name, nil if there is none, and then whether there
// is space for one.
func (g *Registry[E]) lookUp(name string) (r *Resource[E], hasSpace bool) {
	if r = g.Table.Get(name); r != nil && !r.Evicted.Load() {
		return r, true
	}
	if g.full.Load() || g.mustOverflow(name) {
		return nil, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.present(name), g.hasSpace()
}

// add adds a new resource that was made with a set of patterns. It returns the
// resource, or the one of the same name that another goroutine has added meanwhile; nil
// if that is the set no longer or there is no space.
func (g *Registry[E]) add(r *Resource[E], patterns *inforce.Patterns, now clock.Instant) *Resource[E] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if present := g.present(r.Name); present != nil {
		return present
	}
	if g.overflow.patterns.Load() != patterns || !g.hasSpace() {
		return nil
	}
	g.put(r, patterns, now)
	return r
}

// put adds a new resource, and notes it for a swap that is under way. The caller holds
// g.mu.
func (g *Registry[E]) put(r *Resource[E], patterns *inforce.Patterns, now clock.Instant) {
	g.addWith(r, patterns, now)
	g.count++
	if g.swapping {
		g.addedDuringSwap = append(g.addedDuringSwap, r)
	}
}

// addWith adds a new resource that begins with what the overflow has counted. The caller holds g.mu.
func (g *Registry[E]) addWith(r *Resource[E], patterns *inforce.Patterns, now clock.Instant) {
	g.adding.Store(true)
	defer g.adding.Store(false) // also if a limiter panics
	g.inherit(r, patterns, now)
	g.Table.Put(r)
}

// StillOverflows says whether the resource is one of the overflow and its name still
// has no other. It is asked after a call was counted there: a name that gets a resource
// of its own begins with what was counted before.
func (g *Registry[E]) StillOverflows(r *Resource[E]) bool {
	if r.Stats != g.Overflow.Stats {
		return false
	}
	isStable := !g.adding.Load() // no name is leaving the overflow just now
	switch own := g.Table.Get(r.Name); {
	case isStable && own == nil:
		return true
	case isStable && !own.Evicted.Load():
		return false
	}
	g.mu.Lock() // until the name is added, or forgotten
	defer g.mu.Unlock()
	return g.present(r.Name) == nil
}

// Switches returns what is switched off and on in the generation in force.
func (g *Registry[E]) Switches() *inforce.Switches { return g.overflow.patterns.Load().Switches }

// IsKnown says whether a resource was called of late or a rule is for it.
func (g *Registry[E]) IsKnown(name string) (known bool) {
	if name == g.config.Overflow {
		return false
	}
	if r := g.Table.Get(name); r != nil && !r.Evicted.Load() {
		return true
	}
	if len(name) > rule.MaxNameLength {
		return false
	}
	g.overflow.patterns.Load().Matching(name, func(*inforce.PatternRule) { known = true })
	return known
}
