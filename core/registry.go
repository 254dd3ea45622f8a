package core

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// Overflow is the name of the resource whose statistics the names beyond
// [Config.MaxResources] share.
const Overflow = rule.OtherResources

// resource is one name that was called or that a rule names.
type resource struct {
	*resourceStats
	engine  *Engine
	name    string
	plan    atomic.Pointer[plan] // never nil
	evicted atomic.Bool          // no longer in the table, or never was: look the name up again

	patterns *patternSet // of a name in the overflow: where its rules come from

	// registry.swapMu guards what follows, once others can find the resource.
	attached   *attachments // nil while no rule in force names it
	states     []*ruleState // of the rules in force, by kind and name
	affectedIn uint64       // the generation in which its plan last changed
}

// resourceStats is what is counted of the calls of a resource. The runtime allots it
// 512 bytes and lays it where a cache line begins, which is what its node wants.
type resourceStats struct {
	node   stat.Node
	logged atomic.Int64 // the second in which a refusal was last logged, plus one; 0 before the first
}

// registry finds the resources by their names.
type registry struct {
	engine           *Engine
	table            nameTable
	full             atomic.Bool // there is no space for more names
	overflowResource *resource
	overflow         overflow
	noRules          plan
	max              int // resources that no rule names

	adding atomic.Bool // a name is being added, and inherits from the overflow

	// swapMu is held while rules are swapped and while idle resources are looked for,
	// however long that takes: calls do not wait for it.
	swapMu sync.Mutex
	sweep  sweep

	// mu guards what follows, and changes of the table. It is held for as long as it
	// takes to add a name, or to copy a part of the table.
	mu              sync.Mutex
	count           int // resources in the table
	attachedCount   int // of them, those that have attachments
	swapping        bool
	addedDuringSwap []*resource // that were added while rules are swapped
}

func (g *registry) init(e *Engine, limit int) {
	g.engine, g.max = e, limit
	g.table.init()
	g.overflow.seed = maphash.MakeSeed()
	g.overflow.patterns.Store(&patternSet{index: new(match.Index)})
	g.overflowResource = g.newResource(Overflow, new(resourceStats))
	g.overflow.unmatched = g.newResource(Overflow, g.overflowResource.resourceStats)
	g.sweep.due.Store(int64(e.clock.Now().Add(sweepInterval)))
}

func (g *registry) newResource(name string, stats *resourceStats) *resource {
	r := &resource{engine: g.engine, name: name, resourceStats: stats}
	r.plan.Store(&g.noRules)
	return r
}

// get returns the resource of a name. If there are too many names, it is one that
// shares the statistics of the overflow.
func (g *registry) get(name string) *resource {
	if r := g.table.get(name); r != nil {
		return r
	}
	return g.getOrAdd(name)
}

// getOrAdd is get for a name that is not in the table, or whose resource was evicted:
// it adds the name if there is space.
func (g *registry) getOrAdd(name string) *resource {
	now := g.engine.clock.Now()
	g.sweepSome(now)
	for {
		patterns := g.overflow.patterns.Load()
		r, hasSpace := g.lookUp(name)
		switch {
		case r != nil:
			return r
		case !hasSpace:
			return g.overflowResourceFor(name)
		}
		// Not under the lock, for it takes as long as rules match the name.
		made := g.newResourceFor(name, patterns)
		states := made.states // guarded by swapMu from now on
		if r = g.add(made, patterns, now); r == made {
			g.applyForcedStates(states)
		}
		if r != nil {
			return r
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
	r = g.newResourceFor(name, patterns)
	g.inherit(r, patterns, g.engine.clock.Now())
	return r
}

// lookUp returns the resource of a name, nil if there is none, and then whether there
// is space for one.
func (g *registry) lookUp(name string) (r *resource, hasSpace bool) {
	if r = g.table.get(name); r != nil && !r.evicted.Load() {
		return r, true
	}
	if g.full.Load() || g.mustOverflow(name) {
		return nil, false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.present(name), g.hasSpace()
}

// present returns the resource of a name unless it was forgotten. The caller holds
// g.mu.
func (g *registry) present(name string) *resource {
	if r := g.table.get(name); r != nil && !r.evicted.Load() {
		return r
	}
	return nil
}

// hasSpace says whether there is space for one more name. The caller holds g.mu.
func (g *registry) hasSpace() bool {
	isFull := g.count-g.attachedCount >= g.max
	if isFull {
		g.full.Store(true)
	}
	return !isFull
}

// mustOverflow says whether a name never gets a resource of its own: it is too long, or
// that of the overflow.
func (g *registry) mustOverflow(name string) bool {
	return len(name) > rule.MaxNameLength || name == Overflow
}

// add adds a new resource that was made with a set of patterns. It returns the
// resource, or the one of the same name that another goroutine has added meanwhile; nil
// if that is the set no longer or there is no space.
func (g *registry) add(r *resource, patterns *patternSet, now clock.Instant) *resource {
	g.mu.Lock()
	defer g.mu.Unlock()
	if present := g.present(r.name); present != nil {
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
func (g *registry) put(r *resource, patterns *patternSet, now clock.Instant) {
	g.adding.Store(true)
	g.inherit(r, patterns, now)
	g.table.put(r)
	g.adding.Store(false)
	g.count++
	if g.swapping {
		g.addedDuringSwap = append(g.addedDuringSwap, r)
	}
}

// all returns the resources, those of the last minute and those that rules
// name, and the one for overflow.
func (g *registry) all(now clock.Instant) []*resource {
	g.sweepAll(now)
	return append(g.table.all(), g.overflowResource)
}
