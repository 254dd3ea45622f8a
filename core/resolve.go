package core

import (
	"slices"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
)

// ruleChange is what becomes of the rules in force in one swap.
type ruleChange struct {
	version  uint64 // the coming generation
	now      clock.Instant
	entering []*inforce.Rule
	restored []forcedRule // that go on from removed ones, whose state may have been forced since
	updated  []*inforce.Rule
	leaving  []*inforce.Rule
	patterns []match.Pattern // of all of these

	switches *inforce.Switches // what is switched from now on; nil if that stays
	switched []inforce.Scope   // of these

	unknownFleet []rule.Key // of rules that are for the whole fleet, which the engine does not know

	added, changed, removed int
}

// hasPatterns says whether names that no rule names find other rules, or find them switched.
func (c *ruleChange) hasPatterns() bool { return len(c.patterns) > 0 || c.switches != nil }

// notePattern notes the pattern of a rule that changes.
func (c *ruleChange) notePattern(a *inforce.Rule) {
	if a.HasPattern() {
		c.patterns = append(c.patterns, a.Pattern.Pattern)
	}
}

// resolve turns changes of rules into changes of the rules in force. The caller holds
// rules.mu.
func (e *Engine) resolve(changes []ruleset.Change, now clock.Instant) *ruleChange {
	c := &ruleChange{version: e.generation.Load() + 1, now: now, updated: make([]*inforce.Rule, 0, len(changes))}
	defer e.signals.Watch()
	defer e.fleet.Watch(now, e.running.Go)
	for i := range changes {
		change := &changes[i]
		present, _ := change.Note().(*inforce.Rule)
		var target rule.Target
		if change.To != nil {
			target = change.To.Target()
		}
		switch {
		case change.From == nil:
			c.added++
			change.SetNote(e.addRule(c, change.To, e.rules.removed.Take(change.Key(), target)))
		case change.To == nil:
			c.removed++
			e.dropRule(c, present)
		case present.CountsLike(&target):
			c.changed++
			before, hadNeeds := present.Version, present.Needs
			if !present.Evidence.Load().IsOf(change.To, &target) {
				present.Evidence.Store(call.NewEvidence(change.To))
			}
			present.SetVersion(change.To.Uncompiled(), &target, e.exempt)
			if hadNeeds || present.Needs {
				e.noteNeeds(c, before, change.To)
			}
			c.updated = append(c.updated, present)
			c.notePattern(present)
		default:
			c.changed++
			before := e.rules.removed.Take(change.Key(), target) // it may come back
			e.dropRule(c, present)
			next := e.addRule(c, change.To, before)
			change.SetNote(next)
			if next.SharedName() == present.SharedName() && next.HasPattern() == present.HasPattern() {
				next.Matched.Store(present.Matched.Load())
				next.Called.Store(present.Called.Load())
			}
		}
	}
	if c.hasPatterns() {
		e.rules.patterns = slices.DeleteFunc(e.rules.patterns, (*inforce.Rule).IsRemoved)
		slices.SortFunc(e.rules.patterns, inforce.ByKey)
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
func (e *Engine) addRule(c *ruleChange, r rule.Rule, before *inforce.RemovedRule) *inforce.Rule {
	r = r.Uncompiled() // what is compiled of it is of this version
	a := inforce.NewRule(r, e.rules.forcedKind(r.Key().Kind), e.exempt)
	if a.SharesLimiter {
		env := limiterEnv{&e.limiters, c.version, c.now}
		if before == nil || !env.restore(a, before) {
			a.Shared = env.newLimiter(a, r, a.SharedName(), a.Transitions)
		} else if limiter, ok := a.Shared.Limiter.(rule.Controllable); ok {
			c.restored = append(c.restored, forcedRule{a, []rule.Controllable{limiter}})
			e.keepForcedTime(a.Forced.Load())
		}
	}
	e.noteNeeds(c, nil, r)
	if a.HasPattern() {
		e.rules.patterns = append(e.rules.patterns, a)
	}
	c.entering = append(c.entering, a)
	c.notePattern(a)
	return a
}

func (e *Engine) dropRule(c *ruleChange, a *inforce.Rule) {
	a.Removed = true
	e.noteNeeds(c, a.Version, nil)
	e.rules.removed.Keep(a)
	c.leaving = append(c.leaving, a)
	c.notePattern(a)
}
