// Package registry finds resources by their names, bounds how many there are, and forgets those that are idle. It knows a
// clock and what makes their plans.
package registry

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/counts"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/names"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// Registry finds the resources by their names. E is what calls need of their engine, to which each resource leads.
type Registry[E any] struct {
	config   Config[E]
	Table    names.Table[Resource[E]]
	full     atomic.Bool  // there is no space for more names
	Overflow *Resource[E] // counts the calls of names for which there is no space
	overflow overflow[E]

	Forcings atomic.Uint64 // how often a state was forced or released

	adding atomic.Bool // a name is being added, and inherits from the overflow

	// SwapMu is held while rules are swapped and while idle resources are looked for,
	// however long that takes: calls do not wait for it.
	SwapMu sync.Mutex
	sweep  sweep[E]

	// mu guards what follows, and changes of the table. It is held for as long as it
	// takes to add a name, or to copy a part of the table.
	mu              sync.Mutex
	count           int // resources in the table
	attachedCount   int // of them, those that have attachments
	swapping        bool
	addedDuringSwap []*Resource[E] // that were added while rules are swapped
	forgotten       forgotten
	past            names.Past // for rules that come into force later: whether their names were ever called
}

// Config is what a registry needs of its engine.
type Config[E any] struct {
	Env      *E
	Clock    clock.Clock
	Most     int           // resources that no rule names
	Overflow string        // the name of what counts the calls of names beyond that
	NoRules  *inforce.Plan // of resources without rules
	Plans    Plans

	// Full is told of the first name that found no space.
	Full func(name string)
}

// Plans makes what a new resource has of the rules that are for it.
type Plans interface {
	// Planner returns what makes the plan of a resource.
	Planner(resource string, switches *inforce.Switches) inforce.Planner

	// NewState returns the state of a version of a rule for a resource that the rule did not apply to before,
	// whose calls the node counts.
	NewState(of *inforce.Rule, version rule.Rule, resource string, node *leap.Node, since uint64, now clock.Instant) *inforce.State
}

// overflowNames is how many of the names in the overflow are remembered with their
// rules, so that a call of one need not be matched against the patterns again.
const overflowNames = 1024

// overflow stands for the names for which the registry has no space. They share one set
// of statistics and, under each rule with a pattern, one limiter.
type overflow[E any] struct {
	seed      maphash.Seed
	patterns  atomic.Pointer[inforce.Patterns]
	names     [overflowNames]atomic.Pointer[Resource[E]] // by the hash of the name
	unmatched *Resource[E]                               // stands for all names while there are no patterns
	warned    atomic.Bool                                // the log has been told that there are such names
}

// sweepInterval is how often, at the most, idle resources are looked for.
const sweepInterval = 10 * time.Second

// sweep is a search for idle resources. It goes over the whole table in small slices: a
// call of a new name does one slice when a sweep is due. Registry.SwapMu guards it.
type sweep[E any] struct {
	due     atomic.Int64 // the instant from which a slice is due
	started clock.Instant
	round   names.Round[Resource[E]]
	found   bool           // that one of the part was idle
	retired []rule.Retirer // limiters of what was forgotten, to be retired without a lock
}

// Init makes the registry ready to use.
func (g *Registry[E]) Init(config Config[E]) {
	g.config = config
	g.Table.Init()
	g.overflow.seed = maphash.MakeSeed()
	g.overflow.patterns.Store(&inforce.Patterns{Index: new(match.Index)})
	g.Overflow = g.newResource(config.Overflow, new(Stats))
	g.overflow.unmatched = g.newResource(config.Overflow, g.Overflow.Stats)
	g.sweep.due.Store(int64(config.Clock.Now().Add(sweepInterval)))
}

func (g *Registry[E]) newResource(name string, stats *Stats) *Resource[E] {
	r := &Resource[E]{Entry: names.Entry{Name: name}, Env: g.config.Env, Stats: stats}
	stats.numbers.CompareAndSwap(0, firstNumber(name))
	r.Plan.Store(g.config.NoRules)
	return r
}

// present returns the resource of a name unless it was forgotten. The caller holds
// g.mu.
func (g *Registry[E]) present(name string) *Resource[E] {
	if r := g.Table.Get(name); r != nil && !r.Evicted.Load() {
		return r
	}
	return nil
}

// hasSpace says whether there is space for one more name. The caller holds g.mu.
func (g *Registry[E]) hasSpace() bool {
	isFull := g.count-g.attachedCount >= g.config.Most
	if isFull {
		g.full.Store(true)
	}
	return !isFull
}

// mustOverflow says whether a name never gets a resource of its own: it is too long, or
// that of the overflow.
func (g *Registry[E]) mustOverflow(name string) bool {
	return len(name) > rule.MaxNameLength || name == g.config.Overflow
}

// forgotten sums up what was counted on resources that were evicted. Registry.mu guards it.
type forgotten struct {
	resources uint64      // how many there were
	totals    stat.Totals // without ResponseTimes: calls that forget resources would take twice as long
}

// add adds sums of a resource.
func (f *forgotten) add(t *stat.Totals) {
	counts.Of(t).AddTo(&f.totals)
}
