package core

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
	"github.com/penstock-go/penstock/stat"
)

// sweepInterval is how often, at the most, idle resources are looked for.
const sweepInterval = 10 * time.Second

// Overflow is the name of the resource whose statistics the names beyond
// [Config.MaxResources] share.
const Overflow = flow.OtherResources

// resource is one name that was called or that a rule names.
type resource struct {
	*account
	engine  *Engine
	name    string
	plan    atomic.Pointer[plan] // never nil
	evicted atomic.Bool          // forgotten: look the name up again
	checked []refusals           // what each of the engine's checks refused

	patterns *patternBook // of a name that found no room: where its rules come from

	// registry.mu guards what follows.
	ties      *ties   // nil while no rule in force names it
	holds     []*hold // what the rules in force hold of it
	touchedIn uint64  // the generation in which its plan last changed
}

// account is what is known of the calls of a resource. It is 512 bytes large, so
// that the runtime lays it where a cache line begins, which is what its node wants.
type account struct {
	node   stat.Node
	logged atomic.Int64 // the second in which a refusal was last logged, plus one; 0 before the first
}

// registry knows the resources by their names. Looking up a name that was seen
// before is one look-up in a map that is never written to; new names gather in
// a second one until they are worth a copy of the first.
type registry struct {
	engine   *Engine
	known    atomic.Pointer[map[string]*resource] // immutable
	full     atomic.Bool                          // fresh is empty and there is no room for more
	sweptAt  atomic.Int64                         // an instant
	overflow *resource
	spill    overflow
	noRules  plan

	mu     sync.Mutex // guards what follows
	fresh  map[string]*resource
	misses int // look-ups of fresh names
	ruled  int // resources that have ties
	max    int // resources that are not
}

func (g *registry) init(e *Engine, limit int) {
	g.engine, g.max = e, limit
	g.fresh = make(map[string]*resource)
	g.spill.seed = maphash.MakeSeed()
	g.spill.patterns.Store(new(patternBook))
	g.overflow = g.newResource(Overflow, new(account))
	g.spill.unmatched = g.newResource(Overflow, g.overflow.account)
	g.known.Store(&map[string]*resource{})
	g.sweptAt.Store(int64(e.clock.Now()))
}

func (g *registry) newResource(name string, account *account) *resource {
	r := &resource{engine: g.engine, name: name, account: account}
	r.checked = make([]refusals, len(g.engine.checks))
	for i, check := range g.engine.checks {
		var counted *tally
		if g.overflow != nil && account == g.overflow.account {
			counted = g.overflow.checked[i].tally
		} else {
			counted = newTally(&account.node)
		}
		r.checked[i].about(name, KindCheck, check.Name(), counted)
	}
	r.plan.Store(&g.noRules)
	return r
}

// get returns the resource of a name, one that shares the account of the
// overflow when there are too many.
func (g *registry) get(name string) *resource {
	if r := (*g.known.Load())[name]; r != nil {
		return r
	}
	return g.find(name)
}

func (g *registry) find(name string) *resource {
	now := g.engine.clock.Now()
	if g.full.Load() && !g.sweepDue(now) || g.isOutside(name) {
		return g.overflowing(name)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.lookUp(name); r != nil {
		return r
	}
	if g.sweepDue(now) {
		g.sweep(now)
	}
	if g.count()-g.ruled >= g.max {
		g.publish()
		g.full.Store(true)
		return g.overflowing(name)
	}
	return g.add(name)
}

// peek returns the resource of a name without remembering a new one: that gets
// what a call would find.
func (g *registry) peek(name string) *resource {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := (*g.known.Load())[name]; r != nil {
		return r
	}
	if r := g.fresh[name]; r != nil {
		return r
	}
	if g.count()-g.ruled >= g.max || g.isOutside(name) {
		return g.overflowing(name)
	}
	r := g.newResource(name, new(account))
	g.matched(r)
	return r
}

// isOutside says whether a name that no rule names is never to be one of its own:
// it is too long, or that of the overflow.
func (g *registry) isOutside(name string) bool {
	return len(name) > rules.MaxNameLength || name == Overflow
}

// all returns the resources, those of the last minute and those that rules
// name, and the one for overflow.
func (g *registry) all(now clock.Instant) []*resource {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sweepDue(now) {
		g.sweep(now)
	}
	g.publish()
	return append(slices.Collect(maps.Values(*g.known.Load())), g.overflow)
}

func (g *registry) add(name string) *resource {
	name = strings.Clone(name) // which may be a part of something larger
	r := g.newResource(name, new(account))
	g.matched(r)
	g.fresh[name] = r
	return r
}

// count returns how many resources there are beside the one for overflow.
func (g *registry) count() int { return len(*g.known.Load()) + len(g.fresh) }

func (g *registry) lookUp(name string) *resource {
	if r := (*g.known.Load())[name]; r != nil {
		return r
	}
	r := g.fresh[name]
	if r != nil {
		// Copying everything is worth it when a good part of what is copied was
		// paid for by look-ups that had to come here.
		if g.misses++; g.misses > g.count()/4 {
			g.publish()
		}
	}
	return r
}

// publish makes the fresh names known.
func (g *registry) publish() {
	if len(g.fresh) == 0 {
		return
	}
	known := maps.Clone(*g.known.Load())
	maps.Copy(known, g.fresh)
	g.known.Store(&known)
	clear(g.fresh)
	g.misses = 0
}

func (g *registry) sweepDue(now clock.Instant) bool {
	return now.Sub(clock.Instant(g.sweptAt.Load())) >= sweepInterval
}

// sweep forgets the resources that no rule names, nobody called for a minute, and
// of which no rule with a pattern holds anything.
func (g *registry) sweep(now clock.Instant) {
	g.sweptAt.Store(int64(now))
	g.full.Store(false)
	g.publish()
	known := maps.Clone(*g.known.Load())
	maps.DeleteFunc(known, func(_ string, r *resource) bool { return r.ties == nil && r.evict(now) })
	g.known.Store(&known)
}

// evict forgets the resource if it is idle. Whoever enters it at the same time
// either is seen here as under way or sees that it was evicted: see enter.
func (r *resource) evict(now clock.Instant) bool {
	if !r.node.Idle(now) || slices.ContainsFunc(r.holds, func(h *hold) bool { return h.isOwn() && !h.idle(now) }) {
		return false
	}
	r.evicted.Store(true)
	if r.node.InFlight() > 0 {
		r.evicted.Store(false)
		return false
	}
	r.noteMatched()
	return true
}
