package core

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/each"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/names"
	"github.com/penstock-go/penstock/core/internal/registry"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// outcome is what came of new rules.
type outcome struct {
	swap     Swap // the zero Swap if nothing changed
	limiters limiterChanges
	ruleset.Outcome
}

// put puts a change of the rules in force. The caller holds rules.mu and has seen that
// the engine is open; the change began at an instant.
func (e *Engine) put(change ruleset.Outcome, since clock.Instant) outcome {
	result := outcome{Outcome: change}
	e.domains.Store(e.rules.book.Domains())
	if len(change.Changes) == 0 {
		return result
	}
	result.swap, result.limiters = e.swapRules(change.Changes, since)
	e.rules.removed.Prune(since)
	return result
}

// swapRules puts changes of rules in force and returns what that changed. A set of
// rules is swapped for all resources at once, see [plan]. The caller holds rules.mu;
// the change began at an instant.
func (e *Engine) swapRules(changes []ruleset.Change, since clock.Instant) (Swap, limiterChanges) {
	c := e.resolve(changes, since)
	limiters := e.apply(c)
	e.rules.revision, e.rules.appliedAt = c.version, since
	now := e.clock.Now()
	e.rules.appliedAt = now
	e.sources.Changed() // other lists may be awaited
	return Swap{
		Revision: c.version, At: now, Rules: e.rules.book.Len(), Took: now.Sub(since),
		Added: c.added, Changed: c.changed, Removed: c.removed,
	}, limiters
}

// apply moves the engine on to the generation of the change and gives every resource
// that it affects its plan for it.
func (e *Engine) apply(c *ruleChange) limiterChanges {
	g := &e.resources
	g.SwapMu.Lock()
	defer g.SwapMu.Unlock()
	s := swap{
		ruleChange: c, registry: g, maker: &e.limiters, matching: e.rules.patterns, planner: e.limiters.Planner("", cmp.Or(c.switches, g.Patterns().Switches)),
		affected: make([]*registry.Resource[callEnv], 0, len(c.leaving)+len(c.entering)+len(c.updated)),
	}
	s.activate = make([]rule.Activator, 0, len(c.entering)+len(c.updated))
	s.limiterChanges.restored, s.limiterChanges.unknownFleet = c.restored, c.unknownFleet
	s.run()
	return s.limiterChanges
}

// limiterChanges are the limiters that begin and end with a swap.
type limiterChanges struct {
	activate []rule.Activator
	retire   []rule.Retirer
	restored []forcedRule

	unknownFleet []rule.Key // see ruleChange
}

// finish activates and retires the limiters. It is called without a lock: they may
// report changes of state to the observer, which may call the engine.
func (c limiterChanges) finish(now clock.Instant) {
	defer each.Of(c.retire, func(limiter rule.Retirer) { limiter.Retire(now) }) // also if the observer panics
	defer each.Of(c.activate, func(limiter rule.Activator) { limiter.Activate(now) })
	each.Of(c.restored, func(forced forcedRule) {
		forced.rule.ApplyForced(forced.limiters, func() clock.Instant { return now })
	})
}

// swap is a change of rules on its way into force: the resources whose plans change,
// and the limiters that begin and end. registry.SwapMu guards it. Calls go on
// meanwhile, also first calls of new names.
type swap struct {
	*ruleChange
	registry *registry.Registry[callEnv]
	maker    *limiterMaker
	affected []*registry.Resource[callEnv]
	planned  int // so many of them have their next plan
	limiterChanges

	matching []*inforce.Rule // all rules with patterns, by kind and name
	index    *match.Index    // of them
	changing *match.Index    // of the patterns of rules that come, change or go

	planner inforce.Planner // making one plan after the other
	apply   []*inforce.Rule // to the resource whose plan that is
	places  []int           // of the patterns that match it
}

func (s *swap) run() {
	s.begin()
	s.changeRules()
	s.findAffected()
	s.makePlans()
	patterns := s.nextPatterns()
	for !s.finish(patterns) {
		s.makePlans()
	}
	for _, r := range s.affected {
		// Who still acts by the set before does not find its plan any more and
		// asks for the generation again.
		r.Plan.Load().Before.Store(nil)
	}
	if s.hasPatterns() {
		s.registry.ForgetOverflowNames()
	}
}

// begin has the registry note the names that are added from now on. They come with a
// plan for the present generation, like all others.
func (s *swap) begin() {
	g := s.registry
	if s.index = g.Patterns().Index; s.hasPatterns() {
		s.index = indexOf(s.matching)
	}
	s.changing = match.NewIndex(s.patterns)
	g.BeginSwap()
}

func indexOf(rules []*inforce.Rule) *match.Index {
	patterns := make([]match.Pattern, len(rules))
	for i, a := range rules {
		patterns[i] = a.Pattern.Pattern
	}
	return match.NewIndex(patterns)
}

// changeRules attaches the rules to the resources that they name, and makes the next
// versions of their shared limiters.
func (s *swap) changeRules() {
	for _, a := range s.leaving {
		s.markNamed(a)
		s.retireLimiter(a.Shared)
	}
	for _, r := range s.affected {
		s.registry.Detach(r)
	}
	for _, a := range s.entering {
		s.registry.Attach(a, s.now)
		s.markNamed(a)
		s.activateLimiter(a.Shared)
	}
	for _, a := range s.updated {
		s.markNamed(a)
		if a.SharesLimiter {
			a.Shared = s.nextLimiter(a, a.SharedName(), a.Transitions, a.Shared)
		}
	}
}

// nextLimiter returns the limiter of a rule's next version, which goes on from the
// present one if that can be.
func (s *swap) nextLimiter(a *inforce.Rule, resource string, counts *inforce.Transitions, present call.VersionedLimiter) call.VersionedLimiter {
	next, ok := s.env().adopt(a, a.Version, resource, counts, present)
	if !ok {
		next = s.env().newLimiter(a, a.Version, resource, counts)
		s.retireLimiter(present)
	}
	s.activateLimiter(next)
	return next
}

func (s *swap) env() limiterEnv { return limiterEnv{s.maker, s.version, s.now} }

func (s *swap) activateLimiter(limiter call.VersionedLimiter) {
	if l, ok := limiter.Limiter.(rule.Activator); ok {
		s.activate = append(s.activate, l)
	}
}

func (s *swap) retireLimiter(limiter call.VersionedLimiter) {
	if l, ok := limiter.Limiter.(rule.Retirer); ok {
		s.retire = append(s.retire, l)
	}
}

// markNamed marks the resources that a rule names. They are in the table as long as it is attached to them.
func (s *swap) markNamed(a *inforce.Rule) {
	if a.Named != nil {
		s.markAffected(names.Of[registry.Resource[callEnv]](a.Named))
	}
	if related := a.Related(); related != "" {
		s.markAffected(s.registry.Table.Get(related))
	}
}

// markAffected notes that the plan of a resource changes.
func (s *swap) markAffected(r *registry.Resource[callEnv]) {
	if r.AffectedIn != s.version {
		r.AffectedIn = s.version
		s.affected = append(s.affected, r)
	}
}

// findAffected marks the resources that a change of patterns affects. To overflow
// every pattern applies.
func (s *swap) findAffected() {
	if !s.hasPatterns() {
		return
	}
	s.markAffected(s.registry.Overflow)
	for _, r := range s.registry.Table.All() {
		if s.affects(r) {
			s.markAffected(r)
		}
	}
}

// affects says whether a pattern that changes matches the resource, or rules of it are switched.
func (s *swap) affects(r *registry.Resource[callEnv]) bool {
	s.places = s.changing.Append(s.places[:0], r.Name)
	return len(s.places) > 0 || slices.ContainsFunc(s.switched, func(of inforce.Scope) bool { return concerns(of, r) })
}

// makePlans makes the plans of the resources that were marked since the last time.
func (s *swap) makePlans() {
	for ; s.planned < len(s.affected); s.planned++ {
		r := s.affected[s.planned]
		next := s.plan(r)
		next.Before.Store(r.Plan.Load())
		r.Plan.Store(next)
	}
}

// nextPatterns returns the pattern set of the coming generation.
func (s *swap) nextPatterns() *inforce.Patterns {
	if !s.hasPatterns() {
		return s.registry.Patterns()
	}
	return inforce.NewPatterns(s.registry.Overflow.States, s.index, s.version, s.planner.Switches)
}

// finish moves the engine on to the coming generation, unless names were added that the
// change affects: then it marks them and returns false.
func (s *swap) finish(patterns *inforce.Patterns) bool {
	added := s.registry.FinishSwap(patterns, func() { s.maker.generation.Store(s.version) }) // from then on every call acts by the new set
	for _, r := range added {
		if s.affects(r) {
			s.markAffected(r)
		}
	}
	return len(added) == 0
}

// plan makes the plan of a resource and notes which limiters begin and end with it.
func (s *swap) plan(r *registry.Resource[callEnv]) *inforce.Plan {
	p := &s.planner
	p.Begin(r.Name)
	states := r.States
	for _, a := range s.rulesFor(r) {
		var state *inforce.State
		state, states = s.takeState(states, a)
		if state == nil {
			state = s.maker.NewState(a, a.Version, r.Name, &r.Node, s.version, s.now)
			if state.Own != nil {
				s.activateLimiter(state.Own.Limiter)
			}
		} else {
			state.Update(a.Version)
			if own := state.Own; own != nil && own.Version != a.Version {
				own.Version, own.Limiter = a.Version, s.nextLimiter(a, r.Name, own.Transitions, own.Limiter)
			}
		}
		target := a.Calls()
		p.Add(a.Version, state, state.Limiter(), &target)
	}
	for _, a := range r.Attached() {
		if a.Named != &r.Entry {
			p.Count(a.Shared.Limiter.(optional.PassCounter))
		}
	}
	s.retireStates(states)
	if !slices.Equal(r.States, p.States) {
		r.States = slices.Clone(p.States)
	}
	return p.Plan(s.version)
}

// takeState returns the state of a rule, nil if there is none, and the states behind it. Those before it
// are of rules that do not apply any more: both are by kind and name.
func (s *swap) takeState(states []*inforce.State, a *inforce.Rule) (state *inforce.State, rest []*inforce.State) {
	at := 0
	for at < len(states) && states[at].Rule != a && inforce.ByKey(states[at].Rule, a) < 0 {
		at++
	}
	end := at
	if at < len(states) && states[at].Rule == a {
		state, end = states[at], at+1
	}
	s.retireStates(states[:at])
	return state, states[end:]
}

// retireStates notes that the resource's own limiters of some states end.
func (s *swap) retireStates(states []*inforce.State) {
	for _, state := range states {
		if state.Own != nil {
			s.retireLimiter(state.Own.Limiter)
		}
	}
}

// rulesFor returns the rules that apply to the resource, by kind and name.
func (s *swap) rulesFor(r *registry.Resource[callEnv]) []*inforce.Rule {
	if r == s.registry.Overflow {
		return s.matching
	}
	s.apply = s.apply[:0]
	for _, a := range r.Attached() {
		if a.Named == &r.Entry {
			s.apply = append(s.apply, a)
		}
	}
	if s.places = s.places[:0]; len(s.matching) > 0 {
		s.places = s.index.Append(s.places, r.Name)
	}
	for _, place := range s.places {
		if a := s.matching[place]; r.Name != a.Related() && !a.Pattern.Exceptions.Include(r.Name) {
			s.apply = append(s.apply, a)
		}
	}
	slices.SortFunc(s.apply, inforce.ByKey)
	return s.apply
}

// concerns says whether a scope has a rule of the resource. registry.SwapMu is held.
func concerns(s inforce.Scope, r *registry.Resource[callEnv]) bool {
	if s.Resource != "" {
		return r.Name == s.Resource
	}
	return slices.ContainsFunc(r.States, func(of *inforce.State) bool {
		return s.Kind == "" || s.Kind == of.Rule.Key.Kind && (s.Rule == "" || s.Rule == of.Rule.Key.Name)
	})
}
