package core

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rule"
)

// ruleChange is what becomes of the rules in force in one swap.
type ruleChange struct {
	version  uint64 // the coming generation
	now      clock.Instant
	entering []*activeRule
	restored []forcedRule // that go on from removed ones, whose state may have been forced since
	updated  []*activeRule
	leaving  []*activeRule
	patterns []match.Pattern // of all of these

	switches *switchTable // what is switched from now on; nil if that stays
	switched []Scope      // of these

	unknownFleet []rule.Key // of rules that are for the whole fleet, which the engine does not know

	added, changed, removed int
}

// hasPatterns says whether names that no rule names find other rules, or find them switched.
func (c *ruleChange) hasPatterns() bool { return len(c.patterns) > 0 || c.switches != nil }

// notePattern notes the pattern of a rule that changes.
func (c *ruleChange) notePattern(a *activeRule) {
	if a.hasPattern() {
		c.patterns = append(c.patterns, *a.pattern)
	}
}

// resolve turns changes of rules into changes of the rules in force. The caller holds
// rules.mu.
func (e *Engine) resolve(changes []ruleset.Change, now clock.Instant) *ruleChange {
	c := &ruleChange{version: e.generation.Load() + 1, now: now, updated: make([]*activeRule, 0, len(changes))}
	defer e.signals.Watch()
	defer e.fleet.Watch(now, e.running.Go)
	for _, change := range changes {
		present := e.rules.active[change.Key]
		var target rule.Target
		if change.To != nil {
			target = change.To.Target()
		}
		switch {
		case change.From == nil:
			c.added++
			e.addRule(c, change.To, e.rules.removed.take(change.Key, target))
		case change.To == nil:
			c.removed++
			e.dropRule(c, present)
		case target.CountsLike(present.target()):
			c.changed++
			e.noteNeeds(c, present.rule, change.To)
			if !present.evidence.Load().IsOf(change.To) {
				present.evidence.Store(call.NewEvidence(change.To))
			}
			present.setVersion(change.To.Uncompiled(), &target)
			c.updated = append(c.updated, present)
			c.notePattern(present)
		default:
			c.changed++
			before := e.rules.removed.take(change.Key, target) // it may come back
			e.dropRule(c, present)
			next := e.addRule(c, change.To, before)
			if next.sharedName() == present.sharedName() && next.hasPattern() == present.hasPattern() {
				next.matched.Store(present.matched.Load())
				next.called.Store(present.called.Load())
			}
		}
	}
	if c.hasPatterns() {
		e.rules.patterns = slices.DeleteFunc(e.rules.patterns, (*activeRule).isRemoved)
		slices.SortFunc(e.rules.patterns, byKey)
	}
	return c
}

// noteNeeds notes what a rule needs of the engine that comes into force in place of another
// one, either of which may be nil: signals and the fleet.
func (e *Engine) noteNeeds(c *ruleChange, from, to rule.Rule) {
	e.signals.Replace(from, to, c.now)
	if e.fleet.Replace(from, to) {
		c.unknownFleet = append(c.unknownFleet, to.Key())
	}
}

// addRule puts a rule in force, which goes on from a removed one if there is one.
func (e *Engine) addRule(c *ruleChange, r rule.Rule, before *removedRule) *activeRule {
	r = r.Uncompiled() // what is compiled of it is of this version
	a := newActiveRule(r, e.rules.forcedKind(r.Key().Kind), e.exempt)
	if a.sharesLimiter {
		env := limiterEnv{&e.limiters, c.version, c.now}
		if before == nil || !env.restore(a, before) {
			a.shared = env.newLimiter(a, r, a.sharedName(), a.transitions)
		} else if limiter, ok := a.shared.Limiter.(rule.Controllable); ok {
			c.restored = append(c.restored, forcedRule{a, []rule.Controllable{limiter}})
			e.keepForcedTime(a.forced.Load())
		}
	}
	e.rules.active[a.key] = a
	e.noteNeeds(c, nil, r)
	if a.hasPattern() {
		e.rules.patterns = append(e.rules.patterns, a)
	}
	c.entering = append(c.entering, a)
	c.notePattern(a)
	return a
}

func (e *Engine) dropRule(c *ruleChange, a *activeRule) {
	a.removed = true
	e.noteNeeds(c, a.rule, nil)
	if delete(e.rules.active, a.key); len(e.rules.active) == 0 {
		e.rules.active = make(map[rule.Key]*activeRule) // a map does not get smaller
	}
	e.rules.removed.keep(a)
	c.leaving = append(c.leaving, a)
	c.notePattern(a)
}
