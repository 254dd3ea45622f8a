package inforce

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/each"
	"github.com/penstock-go/penstock/core/internal/names"
	"github.com/penstock-go/penstock/internal/match"
	"github.com/penstock-go/penstock/rule"
)

// Rule is a rule in force. It stays the same object while the rule keeps its name
// and counts the same calls, whatever else of it changes. What it counts for each
// resource by itself is in the States of the resources.
type Rule struct {
	Key      rule.Key
	Pattern  *Pattern    // of a rule that has one
	Resource string      // that it guards; "" of a rule with a pattern
	Matched  atomic.Bool // a call, as far as anybody has looked
	Called   atomic.Bool // a resource that it guards was called, before it was in force perhaps
	Evidence atomic.Pointer[call.Evidence]

	Forced        ForcedState  // on this rule
	forcedOnKind  *ForcedState // on all rules of the kind
	Transitions   *Transitions // of the shared limiter, of a kind that has states; else nil
	SharesLimiter bool         // it has one limiter for all of its resources
	isRelated     bool         // it counts the passes of another resource

	// core.ruleStore.mu guards what follows.
	Removed    bool
	LookedBack bool      // the names called before it came into force were looked at
	Needs      bool      // the version reads signals, or is for the whole fleet
	isForAll   bool      // the version is for all calls of one resource, and no shadow
	Counted    bool      // the resource whose passes it counts was called, as far as the engine remembers
	Version    rule.Rule // that is in force, or about to be

	// registry.Registry.SwapMu guards what follows.
	Named  *names.Entry          // the resource that it guards; nil of a rule with a pattern
	Shared call.VersionedLimiter // for all resources together; none when each has its own
}

// State is what one rule keeps for one resource: what it has refused there, and its limiter, unless all of its
// resources share that of the rule.
type State struct {
	Rule     *Rule
	Own      *OwnLimiter    // nil if they share it
	Refusals *call.Refusals // of the version in force
	Before   uint64         // calls of the resource when the rule began to guard it
}

// OwnLimiter is the limiter that a rule has for one resource.
type OwnLimiter struct {
	Version     rule.Rule // that it was made for
	Limiter     call.VersionedLimiter
	Transitions *Transitions // of a kind that has states; else nil
}

// NewState returns the state of a rule for a resource, without refusals. Both it and its own limiter, if it has one, are one object.
func NewState(a *Rule, before uint64) *State {
	if a.SharesLimiter {
		return &State{Rule: a, Before: before}
	}
	made := new(struct {
		state State
		own   OwnLimiter
	})
	made.state = State{Rule: a, Own: &made.own, Before: before}
	return &made.state
}

// Limiter returns the limiter of the resource. registry.Registry.SwapMu is held.
func (s *State) Limiter() call.VersionedLimiter {
	if s.Own == nil {
		return s.Rule.Shared
	}
	return s.Own.Limiter
}

// Transitions returns the changes of state of the limiter; nil for a kind that has no states.
func (s *State) Transitions() *Transitions {
	if s.Own == nil {
		return s.Rule.Transitions
	}
	return s.Own.Transitions
}

// NewRule returns a rule that comes into force.
func NewRule(r rule.Rule, forcedOnKind *ForcedState, exempt func(string) bool) *Rule {
	a := &Rule{Key: r.Key(), forcedOnKind: forcedOnKind}
	target := r.Target()
	a.Resource, a.isRelated = target.Resource, target.Related != ""
	a.Evidence.Store(call.NewEvidence(r))
	if target.Match != "" {
		// Validated when it was loaded: there is no error.
		pattern, _ := match.Compile(target.Match)
		a.Pattern = &Pattern{Pattern: pattern}
	}
	a.SetVersion(r, &target, exempt)
	a.SharesLimiter = a.Pattern == nil || target.Shared || a.isRelated
	if a.SharesLimiter {
		a.Transitions = NewTransitions(r)
	}
	return a
}

// SetVersion notes which version of the rule is in force, or about to be, its target, and the names that no rule
// with a pattern is for, see Config.Exempt; nil if there are none.
func (a *Rule) SetVersion(r rule.Rule, target *rule.Target, exempt func(string) bool) {
	a.Version = r
	a.isForAll = target.Match == "" && target.Origin == "" && target.Related == "" && !target.Shadow && !target.Shared
	a.Needs = r.Fleet() || len(r.Signals()) > 0 || len(r.Hints()) > 0
	if a.Pattern == nil {
		return
	}
	if r.Type().Reason() == rule.Denied { // who may not call may not call these either
		exempt = nil
	}
	a.Pattern.Exceptions = nil
	if include := eitherOf(exceptionsOf(target), exempt); include != nil {
		a.Pattern.Exceptions = &Exceptions{include: include, Unseen: slices.Collect(target.Except.All())}
	}
}

// exceptionsOf returns a function that says whether a name is one of the exceptions; nil if there are none.
func exceptionsOf(target *rule.Target) func(name string) bool {
	var patterns []match.Pattern
	for item := range target.Except.All() {
		pattern, _ := match.Compile(item) // no error, as it is valid
		patterns = append(patterns, pattern)
	}
	if patterns == nil {
		return nil
	}
	return func(name string) bool {
		return slices.ContainsFunc(patterns, func(p match.Pattern) bool { return p.Matches(name) })
	}
}

// Pattern is that of a rule, and the names that it matches and the rule is not for, which core.ruleStore.mu
// guards; nil if there are none.
type Pattern struct {
	match.Pattern
	Exceptions *Exceptions
}

// Exceptions are the names that a rule with a pattern is not for though they match; nil if there are none.
type Exceptions struct {
	include func(name string) bool
	Unseen  []string // those of the rule of which no call was seen, as far as anybody has looked
}

// Include says whether a name is an exception.
func (x *Exceptions) Include(name string) bool { return x != nil && x.include(name) }

// Unexcepted returns the exceptions of the rule of which no call was seen, as far as anybody has looked.
func (a *Rule) Unexcepted() []string {
	if a.Pattern == nil || a.Pattern.Exceptions == nil {
		return nil
	}
	return a.Pattern.Exceptions.Unseen
}

// CountLike says whether a rule with one target counts the same calls as one with the other, so that
// its limiters can go on from what those have counted. Origins and whether it is a shadow rule are nothing to it.
func CountLike(t, other rule.Target) bool {
	return t.Resource == other.Resource && t.Match == other.Match && t.Shared == other.Shared && t.Related == other.Related
}

// CountsLike is [CountLike] of a target and that of the rule. Of a rule without a pattern the version in
// force is not read, as ten thousand rules are far apart in memory.
func (a *Rule) CountsLike(target *rule.Target) bool {
	if a.Pattern != nil {
		return CountLike(*target, a.Target())
	}
	return target.Match == "" && !target.Shared && a.Resource == target.Resource && a.Related() == target.Related
}

// Target returns the target of the version in force, or about to be.
func (a *Rule) Target() rule.Target { return a.Version.Target() }

// Calls returns which calls the version in force is for: what its target says beside its name and its resource.
func (a *Rule) Calls() rule.Target {
	if a.isForAll { // the version is far away in memory
		return rule.Target{}
	}
	return a.Target()
}

// Related returns the resource whose passes the rule counts, if not its own; else "".
func (a *Rule) Related() string {
	if !a.isRelated { // the version is far away in memory
		return ""
	}
	return a.Target().Related
}

// ForcedState returns the state that an operator has forced; "" for none.
func (a *Rule) ForcedState() string {
	return a.ForcedBy().StateOf()
}

// ForcedBy returns what is forced on the rule; nil if nothing is.
func (a *Rule) ForcedBy() *Forced { return cmp.Or(a.Forced.Load(), a.forcedOnKind.Load()) }

// ApplyForced brings limiters of the rule to the state that is forced. No lock is held.
func (a *Rule) ApplyForced(limiters []rule.Controllable, now func() clock.Instant) {
	for state := a.ForcedState(); ; {
		each.Of(limiters, func(limiter rule.Controllable) { limiter.Control(now(), state) })
		latest := a.ForcedState() // another goroutine may have forced it meanwhile
		if latest == state {
			return
		}
		state = latest
	}
}

// HasPattern says whether the rule guards the resources that a pattern matches.
func (a *Rule) HasPattern() bool { return a.Pattern != nil }

// IsRemoved says whether the rule is in force no longer.
func (a *Rule) IsRemoved() bool { return a.Removed }

// SharedName is the resource that changes of the shared limiter's state are reported
// for: the one resource, or the pattern.
func (a *Rule) SharedName() string {
	if a.Pattern == nil {
		return a.Resource
	}
	return a.Target().Match
}

// ResourceOf returns what a limiter gets to know of the resource that it is for, given the
// one that its changes of state are reported for; "" if several share it.
func (a *Rule) ResourceOf(name string) string {
	if a.SharesLimiter && a.HasPattern() {
		return ""
	}
	return name
}

// ByKey orders rules by kind and name.
func ByKey(a, b *Rule) int {
	return cmp.Or(cmp.Compare(a.Key.Kind, b.Key.Kind), cmp.Compare(a.Key.Name, b.Key.Name))
}

// Update notes which version of the rule is in force. Calls that have come before refuse by what they have found.
func (s *State) Update(version rule.Rule) {
	if !s.Refusals.AreOf(version) {
		s.Refusals = call.NewRefusals(s.Refusals.Resource, s.Refusals.Key, version, s.Refusals.Tally)
	}
}

// ForcedState is a state that an operator has forced; nil for none.
type ForcedState struct{ atomic.Pointer[Forced] }

// Set forces a state and returns the one before; that of "" releases it.
func (f *ForcedState) Set(state *Forced) (before *Forced) {
	if state.State == "" {
		return f.Swap(nil)
	}
	return f.Swap(state)
}

// evidenceFor returns the evidence of the rule if it is about this version; else nil.
func (s *State) evidenceFor(version rule.Rule) *call.Evidence {
	if s.Rule == nil {
		return nil
	}
	e := s.Rule.Evidence.Load()
	if e == nil {
		return nil
	}
	if target := version.Target(); e.IsOf(version, &target) {
		return e
	}
	return nil
}

// eitherOf returns a function that says whether one of two functions does; each may be nil.
func eitherOf(one, other func(string) bool) func(string) bool {
	switch {
	case one == nil:
		return other
	case other == nil:
		return one
	}
	return func(name string) bool { return one(name) || other(name) }
}
