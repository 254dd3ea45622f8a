package registry

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/each"
	"github.com/penstock-go/penstock/rule"
)

// sweepSize bounds how much one call looks at: so many parts of the table, resources,
// and rules that hold something of one.
const sweepSize = 512

func (g *Registry[E]) sweepDue(now clock.Instant) bool { return int64(now) >= g.sweep.due.Load() }

// sweepSome does one slice of a sweep if it is due and no other goroutine is at it.
func (g *Registry[E]) sweepSome(now clock.Instant) {
	if g.sweepDue(now) && g.SwapMu.TryLock() {
		g.sweepAndUnlock(now)
	}
}

// sweepAndUnlock does one slice of a sweep, releases SwapMu, and retires the limiters of what
// was forgotten, which may hold something elsewhere.
func (g *Registry[E]) sweepAndUnlock(now clock.Instant) {
	defer func() { // also if a limiter panics
		retired := g.sweep.retired
		g.sweep.retired = nil
		g.SwapMu.Unlock()
		each.Of(retired, func(limiter rule.Retirer) { limiter.Retire(now) })
	}()
	g.sweepSlice(now)
}

// sweepAll goes on until all is done that is due.
func (g *Registry[E]) sweepAll(now clock.Instant) {
	for g.sweepDue(now) {
		g.SwapMu.Lock()
		g.sweepAndUnlock(now)
	}
}

// sweepSlice forgets resources that no rule names, that were not called for a minute,
// and of which no rule with a pattern has counted anything that still counts. It
// returns how much it has looked at, which is not much more than sweepSize.
func (g *Registry[E]) sweepSlice(now clock.Instant) (looked int) {
	s := &g.sweep
	for looked < sweepSize {
		if s.round.AtStart() {
			s.started = now
		}
		if r := s.round.Next(&g.Table); r != nil {
			looked += 1 + len(r.States)
			s.found = g.evictIdle(r, now) || s.found
			continue
		}
		looked++
		if g.endPart(); s.round.AtStart() {
			s.due.Store(int64(s.started.Add(sweepInterval)))
			break
		}
	}
	return looked
}

// endPart goes on to the next part of the table.
func (g *Registry[E]) endPart() {
	s := &g.sweep
	part := s.round.EndPart()
	if s.found {
		s.found = false
		g.mu.Lock()
		g.Table.DropEvicted(part)
		g.mu.Unlock()
	}
}

// evictIdle forgets a resource if it is idle at now and again at a later reading of the
// clock.
func (g *Registry[E]) evictIdle(r *Resource[E], now clock.Instant) bool {
	return r.attached == nil && r.isIdle(now) && g.evict(r, g.config.Clock.Now())
}

// evict forgets a resource if it is idle. The resource is marked first. A call that
// passes it at the same time has either been counted, which is seen here, or it sees
// the mark, takes the pass back and looks the name up again; that has to wait for the
// lock, and so finds the result. A call that is refused at the same time counts itself among
// the forgotten when it sees the mark.
func (g *Registry[E]) evict(r *Resource[E], now clock.Instant) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.Evicted.Store(true)
	defer func() {
		if !r.Gone.Load() { // it is not idle, or a limiter has panicked
			r.Evicted.Store(false)
		}
	}()
	sums := r.Node.Sums()
	if sums.InFlight > 0 || !r.isIdle(now) {
		return false
	}
	g.forgotten.resources++
	g.forgotten.add(&sums)
	if r.Node.Calls() > 0 {
		g.past.Add(r.Name)
	}
	r.Gone.Store(true)
	r.NoteMatched()
	for _, s := range r.States {
		if s.Own == nil {
			continue
		}
		if limiter, ok := s.Own.Limiter.Limiter.(rule.Retirer); ok {
			g.sweep.retired = append(g.sweep.retired, limiter)
		}
	}
	g.count--
	g.full.Store(false)
	return true
}
