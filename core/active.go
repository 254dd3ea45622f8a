package core

import (
	"cmp"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rule"
)

// activeRule is a rule in force. It stays the same object while the rule keeps its name
// and counts the same calls, whatever else of it changes. What it counts for each
// resource by itself is in the ruleStates of the resources.
type activeRule struct {
	key      rule.Key
	pattern  *match.Pattern // of a rule that has one
	resource string         // that it guards; "" of a rule with a pattern
	related  string         // the resource whose passes it counts, if not its own
	matched  atomic.Bool    // a call, as far as anybody has looked
	called   atomic.Bool    // a resource that it guards was called, before it was in force perhaps
	evidence atomic.Pointer[evidence]

	forced        forcedState  // on this rule
	forcedOnKind  *forcedState // on all rules of the kind
	transitions   *transitions // of the shared limiter, of a kind that has states; else nil
	sharesLimiter bool         // it has one limiter for all of its resources

	// ruleStore.mu guards what follows.
	removed    bool
	lookedBack bool              // the names called before it came into force were looked at
	counted    bool              // the resource whose passes it counts was called, as far as the engine remembers
	rule       rule.Rule         // the version in force, or about to be
	excepts    func(string) bool // names that the pattern matches and the rule is not for; nil if there are none
	exempt     func(string) bool // names that no rule with a pattern is for, see Config.Exempt; nil if there are none

	// registry.swapMu guards what follows.
	shared versionedLimiter // for all resources together; none when each has its own
}

// versionedLimiter is the limiter of one version of a rule. Versions that go on from
// each other have the same first one, by which a call recognizes the tickets that it
// has of any of them.
type versionedLimiter struct {
	rule.Limiter
	first   rule.Limiter
	pending *pendingCalls // of a limiter that several resources share; else nil
}

// ruleState is what one rule keeps for one resource: its limiter, which may be shared
// by many resources, and what it has refused there.
type ruleState struct {
	rule     *activeRule
	version  rule.Rule // that the limiter was made for
	limiter  versionedLimiter
	refusals *refusals    // of the version
	tally    *tally       // where they are counted
	promised atomic.Int64 // tokens that calls of the resource will take which wait for other rules

	transitions *transitions // of the limiter, of a kind that has states; else nil
	before      uint64       // calls of the resource when the rule began to guard it
}

// newActiveRule returns a rule that comes into force.
func newActiveRule(r rule.Rule, forcedOnKind *forcedState, exempt func(string) bool) *activeRule {
	a := &activeRule{key: r.Key(), forcedOnKind: forcedOnKind}
	if r.Type().Reason() != rule.Denied { // who may not call may not call these either
		a.exempt = exempt
	}
	target := r.Target()
	a.setVersion(r, &target)
	a.resource, a.related = target.Resource, target.Related
	a.evidence.Store(newEvidence(r))
	if target.Match != "" {
		// Validated when it was loaded: there is no error.
		pattern, _ := match.Compile(target.Match)
		a.pattern = &pattern
	}
	a.sharesLimiter = a.pattern == nil || target.Shared || a.related != ""
	if a.sharesLimiter {
		a.transitions = newTransitions(r)
	}
	return a
}

// setVersion notes which version of the rule is in force, or about to be, and its target.
func (a *activeRule) setVersion(r rule.Rule, target *rule.Target) {
	a.rule = r
	a.excepts = eitherOf(target.Excepts(), a.exempt)
}

// target returns the target of the version in force, or about to be.
func (a *activeRule) target() rule.Target { return a.rule.Target() }

// forcedState returns the state that an operator has forced; "" for none.
func (a *activeRule) forcedState() string {
	return a.forcedBy().stateOf()
}

// forcedBy returns what is forced on the rule; nil if nothing is.
func (a *activeRule) forcedBy() *Forced { return cmp.Or(a.forced.Load(), a.forcedOnKind.Load()) }

// applyForced brings limiters of the rule to the state that is forced. No lock is held.
func (a *activeRule) applyForced(limiters []rule.Controllable, now func() clock.Instant) {
	for state := a.forcedState(); ; {
		each(limiters, func(limiter rule.Controllable) { limiter.Control(now(), state) })
		latest := a.forcedState() // another goroutine may have forced it meanwhile
		if latest == state {
			return
		}
		state = latest
	}
}

func (a *activeRule) hasPattern() bool { return a.pattern != nil }

func (a *activeRule) isRemoved() bool { return a.removed }

// sharedName is the resource that changes of the shared limiter's state are reported
// for: the one resource, or the pattern.
func (a *activeRule) sharedName() string {
	if a.pattern == nil {
		return a.resource
	}
	return a.target().Match
}

// resourceOf returns what a limiter gets to know of the resource that it is for, given the
// one that its changes of state are reported for; "" if several share it.
func (a *activeRule) resourceOf(name string) string {
	if a.sharesLimiter && a.hasPattern() {
		return ""
	}
	return name
}

// isOwn says whether the limiter is the resource's own.
func (s *ruleState) isOwn() bool { return !s.rule.sharesLimiter }

// byKey orders rules by kind and name.
func byKey(a, b *activeRule) int {
	return cmp.Or(cmp.Compare(a.key.Kind, b.key.Kind), cmp.Compare(a.key.Name, b.key.Name))
}

// update notes which version of the rule is in force, with its limiter. Calls that have
// come before refuse by what they have found.
func (s *ruleState) update(version rule.Rule, limiter versionedLimiter) {
	if version.Answer() != s.version.Answer() || version.Forbids() != s.version.Forbids() {
		s.refusals = newRefusals(s.refusals.resource, version, s.tally)
	}
	s.version, s.limiter = version, limiter
}

// forcedState is a state that an operator has forced; nil for none.
type forcedState struct{ atomic.Pointer[Forced] }

// set forces a state and returns the one before; that of "" releases it.
func (f *forcedState) set(state *Forced) (before *Forced) {
	if state.State == "" {
		return f.Swap(nil)
	}
	return f.Swap(state)
}

// evidenceFor returns the evidence of the rule if it is about this version; else nil.
func (s *ruleState) evidenceFor(version rule.Rule) *evidence {
	if s.rule == nil {
		return nil
	}
	if e := s.rule.evidence.Load(); e.isOf(version) {
		return e
	}
	return nil
}
