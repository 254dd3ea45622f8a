package core

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/names"
	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// registry finds the resources by their names.
type registry struct {
	env              *callEnv
	limiters         *limiterMaker
	kinds            []rule.Definition // that the engine knows
	table            names.Table[resource]
	full             atomic.Bool // there is no space for more names
	overflowResource *resource
	overflow         overflow
	max              int // resources that no rule names

	forcings atomic.Uint64 // how often a state was forced or released; changed under ruleStore.mu

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
	forgotten       forgotten
	past            names.Past // for rules that come into force later: whether their names were ever called
}

// overflowNames is how many of the names in the overflow are remembered with their
// rules, so that a call of one need not be matched against the patterns again.
const overflowNames = 1024

// overflow stands for the names for which the registry has no space. They share one set
// of statistics and, under each rule with a pattern, one limiter.
type overflow struct {
	seed      maphash.Seed
	patterns  atomic.Pointer[inforce.Patterns]
	names     [overflowNames]atomic.Pointer[resource] // by the hash of the name
	unmatched *resource                               // stands for all names while there are no patterns
	warned    atomic.Bool                             // the log has been told that there are such names
}

// sweepInterval is how often, at the most, idle resources are looked for.
const sweepInterval = 10 * time.Second

// sweep is a search for idle resources. It goes over the whole table in small slices: a
// call of a new name does one slice when a sweep is due. registry.swapMu guards it.
type sweep struct {
	due     atomic.Int64 // the instant from which a slice is due
	started clock.Instant
	round   names.Round[resource]
	found   bool           // that one of the part was idle
	retired []rule.Retirer // limiters of what was forgotten, to be retired without a lock
}

func (g *registry) init(limiters *limiterMaker, kinds []rule.Definition, limit int) {
	g.env, g.limiters, g.kinds, g.max = limiters.callEnv, limiters, kinds, limit
	g.env.names = g
	g.table.Init()
	g.overflow.seed = maphash.MakeSeed()
	g.overflow.patterns.Store(&inforce.Patterns{Index: new(match.Index)})
	g.overflowResource = g.newResource(Overflow, new(resourceStats))
	g.overflow.unmatched = g.newResource(Overflow, g.overflowResource.resourceStats)
	g.env.overflow = g.overflowResource.resourceStats
	g.sweep.due.Store(int64(g.env.clock.Now().Add(sweepInterval)))
}

func (g *registry) newResource(name string, stats *resourceStats) *resource {
	r := &resource{Entry: names.Entry{Name: name}, env: g.env, resourceStats: stats}
	stats.numbers.CompareAndSwap(0, firstNumber(name))
	r.plan.Store(&g.env.noRules)
	return r
}

// present returns the resource of a name unless it was forgotten. The caller holds
// g.mu.
func (g *registry) present(name string) *resource {
	if r := g.table.Get(name); r != nil && !r.Evicted.Load() {
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

// forgotten sums up what was counted on resources that were evicted. registry.mu guards it.
type forgotten struct {
	resources uint64      // how many there were
	totals    stat.Totals // without ResponseTimes: calls that forget resources would take twice as long
}

// add adds sums of a resource.
func (f *forgotten) add(t *stat.Totals) {
	countsOf(t).addTo(&f.totals)
}
