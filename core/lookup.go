package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/rule"
)

// get returns the resource of a name. If there are too many names, it is one that
// shares the statistics of the overflow.
func (g *registry) get(name string) *resource {
	if r := g.table.Get(name); r != nil {
		return r
	}
	return g.getOrAdd(name)
}

// getOrAdd is get for a name that is not in the table, or whose resource was evicted:
// it adds the name if there is space.
func (g *registry) getOrAdd(name string) *resource {
	now := g.env.clock.Now()
	g.sweepSome(now)
	for {
		patterns := g.overflow.patterns.Load()
		r, hasSpace := g.lookUp(name)
		switch {
		case r != nil:
			return r
		case !hasSpace:
			g.warnOfOverflow(name)
			return g.overflowResourceFor(name)
		}
		// Not under the lock, for it takes as long as rules match the name.
		forcings := g.forcings.Load()
		made := g.newResourceFor(name, patterns, now)
		states := made.states // guarded by swapMu from now on
		if r = g.add(made, patterns, now); r == made && g.forcings.Load() != forcings {
			g.applyForcedStates(states)
		}
		if r != nil {
			return r
		}
	}
}

// applyForcedStates brings the limiters of a new resource to the states that have been
// forced or released since these were made.
func (g *registry) applyForcedStates(rules []*inforce.State) {
	for _, s := range rules {
		if s.Own == nil {
			continue
		}
		g.swapMu.Lock()
		limiter, ok := s.Own.Limiter.Limiter.(rule.Controllable)
		g.swapMu.Unlock()
		if ok {
			s.Rule.ApplyForced([]rule.Controllable{limiter}, g.env.clock.Now)
		}
	}
}

// peek returns what a call of the name would find, without adding a new name.
func (g *registry) peek(name string) *resource {
	r, hasSpace := g.lookUp(name)
	switch {
	case r != nil:
		return r
	case !hasSpace:
		return g.overflowResourceFor(name)
	}
	patterns := g.overflow.patterns.Load()
	now := g.env.clock.Now()
	r = g.newResourceFor(name, patterns, now)
	g.inherit(r, patterns, now)
	return r
}

// lookUp returns the resource of a name, nil if there is none, and then whether there
// is space for one.
func (g *registry) lookUp(name string) (r *resource, hasSpace bool) {
	if r = g.table.Get(name); r != nil && !r.Evicted.Load() {
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
func (g *registry) add(r *resource, patterns *inforce.Patterns, now clock.Instant) *resource {
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
func (g *registry) put(r *resource, patterns *inforce.Patterns, now clock.Instant) {
	g.addWith(r, patterns, now)
	g.count++
	if g.swapping {
		g.addedDuringSwap = append(g.addedDuringSwap, r)
	}
}

// addWith adds a new resource that begins with what the overflow has counted. The caller holds g.mu.
func (g *registry) addWith(r *resource, patterns *inforce.Patterns, now clock.Instant) {
	g.adding.Store(true)
	defer g.adding.Store(false) // also if a limiter panics
	g.inherit(r, patterns, now)
	g.table.Put(r)
}

// stillOverflows says whether the resource is one of the overflow and its name still
// has no other. It is asked after a call was counted there: a name that gets a resource
// of its own begins with what was counted before.
func (g *registry) stillOverflows(r *resource) bool {
	if r.resourceStats != g.overflowResource.resourceStats {
		return false
	}
	isStable := !g.adding.Load() // no name is leaving the overflow just now
	switch own := g.table.Get(r.Name); {
	case isStable && own == nil:
		return true
	case isStable && !own.Evicted.Load():
		return false
	}
	g.mu.Lock() // until the name is added, or forgotten
	defer g.mu.Unlock()
	return g.present(r.Name) == nil
}

// switches returns what is switched off and on in the generation in force.
func (g *registry) switches() *inforce.Switches { return g.overflow.patterns.Load().Switches }

// isKnown says whether a resource was called of late or a rule is for it.
func (g *registry) isKnown(name string) (known bool) {
	if name == Overflow {
		return false
	}
	if r := g.table.Get(name); r != nil && !r.Evicted.Load() {
		return true
	}
	if len(name) > rule.MaxNameLength {
		return false
	}
	g.overflow.patterns.Load().Matching(name, func(*inforce.PatternRule) { known = true })
	return known
}
