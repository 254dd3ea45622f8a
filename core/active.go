package core

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/ruleset"
	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rule"
)

// activeRule is a rule in force. It stays the same object while the rule keeps its name
// and counts the same calls, whatever else of it changes. What it counts for each
// resource by itself is in the ruleStates of the resources.
type activeRule struct {
	key           rule.Key
	pattern       *match.Pattern // of a rule that has one
	related       string         // the resource whose passes it counts, if not its own
	sharesLimiter bool           // it has one limiter for all of its resources
	matched       atomic.Bool    // a call, as far as anybody has looked

	forced      atomic.Pointer[string] // the state that an operator has forced; nil for none
	transitions *transitions           // of the shared limiter, of a kind that has states; else nil

	// ruleStore.mu guards what follows.
	rule    rule.Rule   // the version in force, or about to be
	target  rule.Target // of it
	removed bool

	// registry.swapMu guards what follows.
	shared                           versionedLimiter // for all resources together; none when each has its own
	guardedResource, relatedResource *resource        // that it names, as the guarded and as the related one
	present                          *ruleState       // while a plan is made: its state for that resource
}

// newActiveRule returns a rule that comes into force.
func newActiveRule(r rule.Rule) *activeRule {
	a := &activeRule{key: r.Key(), rule: r, target: r.Target()}
	a.related = a.target.Related
	if a.target.Match != "" {
		// Validated when it was loaded: there is no error.
		pattern, _ := match.Compile(a.target.Match)
		a.pattern = &pattern
	}
	a.sharesLimiter = a.pattern == nil || a.target.Shared || a.related != ""
	if a.sharesLimiter {
		a.transitions = newTransitions(r)
	}
	return a
}

// newTransitions returns a count for the limiter of a rule; nil if its kind has no
// states.
func newTransitions(r rule.Rule) *transitions {
	if len(r.Type().States()) == 0 {
		return nil
	}
	return new(transitions)
}

func (a *activeRule) hasPattern() bool { return a.pattern != nil }

func (a *activeRule) isRemoved() bool { return a.removed }

// sharedName is the resource that changes of the shared limiter's state are reported
// for: the one resource, or the pattern.
func (a *activeRule) sharedName() string { return cmp.Or(a.target.Resource, a.target.Match) }

// limiterEnv is what limiters are made with.
type limiterEnv struct {
	engine     *Engine
	generation uint64
	now        clock.Instant
}

// newLimiter returns a limiter for a version of a rule on a resource.
func (l limiterEnv) newLimiter(a *activeRule, version rule.Rule, resource string, counts *transitions) versionedLimiter {
	limiter := version.NewLimiter(l.env(a, resource, counts))
	return versionedLimiter{limiter, limiter}
}

// adopt returns a limiter for a version of a rule that goes on from the present one;
// false if that cannot be.
func (l limiterEnv) adopt(
	a *activeRule, version rule.Rule, resource string, counts *transitions, present versionedLimiter,
) (next versionedLimiter, ok bool) {
	limiter := version.Adopt(present.Limiter, l.env(a, resource, counts))
	return versionedLimiter{limiter, present.first}, limiter != nil
}

// restore has a rule that comes into force go on from one that was removed; false if
// that cannot be.
func (l limiterEnv) restore(a *activeRule, before *removedRule) (ok bool) {
	a.forced.Store(before.forced)
	if a.shared, ok = l.adopt(a, a.rule, a.sharedName(), before.transitions, before.limiter); ok {
		a.transitions = before.transitions
	}
	return ok
}

func (l limiterEnv) env(a *activeRule, resource string, counts *transitions) rule.Env {
	env := rule.Env{Version: l.generation, Now: l.now, Changed: func(clock.Instant, string, string) {}}
	if forced := a.forced.Load(); forced != nil {
		env.Forced = *forced
	}
	if counts != nil {
		env.Changed = func(at clock.Instant, from, to string) {
			counts.add(from, to)
			l.engine.stateChanged(StateChange{At: at, Resource: resource, Kind: a.key.Kind, Rule: a.key.Name, From: from, To: to})
		}
	}
	return env
}

// byKey orders rules by kind and name.
func byKey(a, b *activeRule) int {
	return cmp.Or(cmp.Compare(a.key.Kind, b.key.Kind), cmp.Compare(a.key.Name, b.key.Name))
}

// maxRemoved is how many rules that were removed are remembered.
const maxRemoved = 1000

// removedRules are rules that were removed, or made to count other calls, and have
// counted something that would still count: one that comes back, under its name and
// for the same calls, goes on from there. Of each name only the last is remembered,
// and only if it has one limiter for all of its resources. The zero value is empty;
// ruleStore.mu guards it.
type removedRules struct {
	byKey  map[rule.Key]*removedRule
	oldest []*removedRule // in the order in which they were removed, some of them back by now
}

type removedRule struct {
	key         rule.Key
	target      rule.Target
	limiter     versionedLimiter
	transitions *transitions
	forced      *string
}

// keep remembers a rule that was removed, and forgets those that have nothing to tell
// any more, or are too many.
func (r *removedRules) keep(a *activeRule, now clock.Instant) {
	if !a.sharesLimiter || a.related != "" {
		return
	}
	if r.byKey == nil {
		r.byKey = make(map[rule.Key]*removedRule)
	}
	removed := &removedRule{a.key, a.target, a.shared, a.transitions, a.forced.Load()}
	r.byKey[a.key] = removed
	r.oldest = append(r.oldest, removed)
	for len(r.oldest) > maxRemoved || len(r.oldest) > 0 && r.oldest[0].limiter.Idle(now) {
		first := r.oldest[0]
		if r.byKey[first.key] == first {
			delete(r.byKey, first.key)
		}
		r.oldest[0] = nil
		r.oldest = r.oldest[1:]
	}
}

// take returns the rule from which one that comes into force goes on; nil if there is
// none.
func (r *removedRules) take(key rule.Key, target rule.Target) *removedRule {
	removed := r.byKey[key]
	if removed == nil || !target.CountsLike(removed.target) {
		return nil
	}
	delete(r.byKey, key)
	return removed
}

// ruleChange is what becomes of the rules in force in one swap.
type ruleChange struct {
	version  uint64 // the coming generation
	now      clock.Instant
	entering []*activeRule
	updated  []*activeRule
	leaving  []*activeRule
	patterns []match.Pattern // of all of these

	added, changed, removed int
}

func (c *ruleChange) hasPatterns() bool { return len(c.patterns) > 0 }

// resolve turns changes of rules into changes of the rules in force. The caller holds
// rules.mu.
func (e *Engine) resolve(changes []ruleset.Change, now clock.Instant) *ruleChange {
	c := &ruleChange{version: e.generation.Load() + 1, now: now}
	for _, change := range changes {
		present := e.rules.active[change.Key]
		switch {
		case change.From == nil:
			c.added++
			e.addRule(c, change.To, e.rules.removed.take(change.Key, change.To.Target()))
		case change.To == nil:
			c.removed++
			e.dropRule(c, present)
		case change.To.Target().CountsLike(present.target):
			c.changed++
			present.rule, present.target = change.To, change.To.Target()
			c.updated = append(c.updated, present)
			c.notePattern(present)
		default:
			c.changed++
			before := e.rules.removed.take(change.Key, change.To.Target()) // it may come back
			e.dropRule(c, present)
			next := e.addRule(c, change.To, before)
			next.matched.Store(next.target.Resource == present.target.Resource && next.target.Match == present.target.Match &&
				present.matched.Load())
		}
	}
	if c.hasPatterns() {
		e.rules.patterns = slices.DeleteFunc(e.rules.patterns, (*activeRule).isRemoved)
		slices.SortFunc(e.rules.patterns, byKey)
	}
	return c
}

// addRule puts a rule in force, which goes on from a removed one if there is one.
func (e *Engine) addRule(c *ruleChange, r rule.Rule, before *removedRule) *activeRule {
	a := newActiveRule(r)
	if a.sharesLimiter {
		env := limiterEnv{e, c.version, c.now}
		if before == nil || !env.restore(a, before) {
			a.shared = env.newLimiter(a, r, a.sharedName(), a.transitions)
		}
	}
	e.rules.active[a.key] = a
	if a.hasPattern() {
		e.rules.patterns = append(e.rules.patterns, a)
	}
	c.entering = append(c.entering, a)
	c.notePattern(a)
	return a
}

func (e *Engine) dropRule(c *ruleChange, a *activeRule) {
	a.removed = true
	if delete(e.rules.active, a.key); len(e.rules.active) == 0 {
		e.rules.active = make(map[rule.Key]*activeRule) // a map does not get smaller
	}
	e.rules.removed.keep(a, c.now)
	c.leaving = append(c.leaving, a)
	c.notePattern(a)
}

// notePattern notes the pattern of a rule that changes.
func (c *ruleChange) notePattern(a *activeRule) {
	if a.hasPattern() {
		c.patterns = append(c.patterns, *a.pattern)
	}
}
