package core

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// LoadLevel says how loaded a service is, see [rule.LoadLevel].
type LoadLevel = rule.LoadLevel

// The levels, in ascending order.
const (
	LoadNone     = rule.LoadNone
	LoadLight    = rule.LoadLight
	LoadModerate = rule.LoadModerate
	LoadSevere   = rule.LoadSevere
	LoadShedding = rule.LoadShedding
)

// Load is how loaded a resource or a service is, over the last seconds.
type Load struct {
	Level LoadLevel

	// Utilization is what Level was made of: up to 1 the share of the places that are taken, more
	// where calls wait, and up to 2 where calls are refused.
	Utilization float64
}

// Load returns how loaded the resource of the call is, as far as the rules of the resource with places
// or a queue tell: those of the kinds isolation and adaptive, and throttles. It follows the load over
// some seconds, so that a handler does not change with every call. It reads one atomic word, but for
// one call in 100 ms, which measures; so it is as of when the latest of the calls passed that ask. The
// first call that asks on a resource allocates.
func (g *Guard) Load() LoadLevel {
	if g == nil || g.resource == nil {
		return LoadNone
	}
	return g.resource.loadMeter().at(g.resource, g.start)
}

// LoadFrom returns the present load of the resource of the call within which ctx was made, see
// [GuardFrom]; [LoadNone] if there is none.
func LoadFrom(ctx context.Context) LoadLevel {
	c := callOf(ctx)
	if c == nil {
		return LoadNone
	}
	defer c.mu.Unlock()
	r := c.guard.resource
	if r == nil {
		return LoadNone
	}
	return r.loadMeter().at(r, r.env.clock.Now())
}

// PresentLoad returns the highest load of the resources whose guards were asked for it in the last minute. So
// guards of calls to others, whose load is not that of this service, are not to be asked. It looks at the
// resources once in 100 ms at most. It returns false if no guard was asked.
func (e *Engine) PresentLoad() (Load, bool) {
	now := e.clock.Now()
	e.present.mu.Lock()
	defer e.present.mu.Unlock()
	if now >= e.present.until || now < e.present.until.Add(-loadEvery) {
		e.present.until = now.Add(loadEvery)
		e.present.highest, e.present.asked = e.resources.highestLoad(now)
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

func (g *registry) highestLoad(now clock.Instant) (highest Load, asked bool) {
	for _, r := range g.all(now) {
		m := r.load.Load()
		if m == nil || now.Sub(clock.Instant(m.asked.Load())) > time.Minute {
			continue
		}
		load := m.present(r, now)
		highest, asked = Load{max(highest.Level, load.Level), max(highest.Utilization, load.Utilization)}, true
	}
	return highest, asked
}

// Load returns how loaded the resource is, and whether its guards were asked for it.
func (v ResourceView) Load() (Load, bool) {
	m := v.resource.load.Load()
	if m == nil {
		return Load{}, false
	}
	return m.present(v.resource, v.now), true
}

// The load follows what is measured by these time constants: it is soon up, as overload is, and down
// later, so that a load that comes and goes does not have handlers change all the time.
const (
	loadEvery = 100 * time.Millisecond
	loadRises = time.Second
	loadFalls = 5 * time.Second

	loadWaits     = 1.25 // while calls wait
	loadRefuses   = 2    // while a share of the calls is refused of at least
	refusingShare = 0.01
)

// loadSteps are the loads at which the next level begins, and below which it ends. They are apart, so that
// a load near one of them keeps its level.
func loadSteps() [LoadShedding]struct{ begins, ends float64 } {
	return [...]struct{ begins, ends float64 }{{0.7, 0.6}, {0.9, 0.8}, {1.1, 1.05}, {1.5, 1.35}}
}

// loadMeter follows the load of a resource.
type loadMeter struct {
	word        atomic.Uint64 // the level in three bits, and above them the microsecond until which it is taken as it is
	utilization atomic.Uint64 // the bits of the load
	asked       atomic.Int64  // when a guard was last asked, or up to 100 ms before

	mu       sync.Mutex // guards what follows
	measured clock.Instant
	passed   uint64 // up to then
	refused  uint64
}

const (
	levelBits = 3
	levelMask = 1<<levelBits - 1
)

func microsecond(at clock.Instant) uint64 { return uint64(max(int64(at)/int64(time.Microsecond), 0)) }

// loadMeter returns the meter of the resource, which it makes at first use.
func (r *resource) loadMeter() *loadMeter {
	if m := r.load.Load(); m != nil {
		return m
	}
	m := &loadMeter{measured: r.env.clock.Now()}
	m.passed, m.refused = r.counted()
	if !r.load.CompareAndSwap(nil, m) {
		return r.load.Load()
	}
	return m
}

// present returns the load at an instant.
func (m *loadMeter) present(r *resource, now clock.Instant) Load {
	m.measure(r, now)
	return Load{m.level(), math.Float64frombits(m.utilization.Load())}
}

func (m *loadMeter) level() LoadLevel { return LoadLevel(m.word.Load() & levelMask) }

// at returns the level at an instant, for a guard that asks.
func (m *loadMeter) at(r *resource, now clock.Instant) LoadLevel {
	word := m.word.Load()
	if microsecond(now) < word>>levelBits {
		return LoadLevel(word & levelMask)
	}
	m.asked.Store(int64(now))
	m.measure(r, now)
	return m.level()
}

// measure brings the load up to date, unless it is or another goroutine does.
func (m *loadMeter) measure(r *resource, now clock.Instant) {
	if microsecond(now) < m.word.Load()>>levelBits || !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	elapsed := now.Sub(m.measured)
	if elapsed <= 0 {
		return
	}
	load := m.follow(r.presentLoad(m, now), elapsed)
	m.measured = now
	m.utilization.Store(math.Float64bits(load))
	m.word.Store(microsecond(now.Add(loadEvery))<<levelBits | uint64(levelOf(load, m.level())))
}

// follow returns the load once it was at a value for a time.
func (m *loadMeter) follow(value float64, elapsed time.Duration) float64 {
	load, constant := math.Float64frombits(m.utilization.Load()), loadFalls
	if value > load {
		constant = loadRises
	}
	return value + (load-value)*math.Exp(-elapsed.Seconds()/constant.Seconds())
}

// levelOf returns the level of a load that had a level before.
func levelOf(load float64, before LoadLevel) (level LoadLevel) {
	for i, step := range loadSteps() {
		if load >= step.begins || load >= step.ends && before > LoadLevel(i) {
			level = LoadLevel(i + 1)
		}
	}
	return level
}

// presentLoad returns the load at this instant. The caller holds m.mu.
func (r *resource) presentLoad(m *loadMeter, now clock.Instant) (load float64) {
	p := r.planNow()
	if p == nil {
		return 0
	}
	for i := range p.rules {
		reporter, ok := p.rules[i].limiter.(rule.LoadReporter)
		if !ok || !p.rules[i].refuses() {
			continue
		}
		present := reporter.Load(now)
		if present.Utilization > load { // no NaN, which it would never get rid of
			load = min(present.Utilization, 1)
		}
		if present.Waiting {
			load = max(load, loadWaits)
		}
	}
	passed, refused := r.counted()
	more := refused - min(m.refused, refused) // fewer if rules are gone
	if all := more + passed - min(m.passed, passed); more > 0 {
		share := min(float64(more)/float64(all)/refusingShare, 1)
		load = max(load, loadWaits+(loadRefuses-loadWaits)*share)
	}
	m.passed, m.refused = passed, refused
	return load
}

// counted returns how many calls have passed, and how many the rules have refused that report loads.
func (r *resource) counted() (passed, refused uint64) {
	if p := r.planNow(); p != nil {
		for i := range p.rules {
			if _, ok := p.rules[i].limiter.(rule.LoadReporter); ok {
				refused += p.rules[i].state.tally.refused.Total()
			}
		}
	}
	return r.node.Sums().Passed, refused
}
