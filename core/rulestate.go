package core

import "github.com/penstock-go/penstock/rule"

// versionedLimiter is the limiter of one version of a rule. Versions that go on from
// each other have the same first one, by which a call recognizes the tickets that it
// has of any of them.
type versionedLimiter struct {
	rule.Limiter
	first rule.Limiter
}

// ruleState is what one rule keeps for one resource: its limiter, which may be shared
// by many resources, and what it has refused there.
type ruleState struct {
	rule     *activeRule
	version  rule.Rule // that the limiter was made for
	limiter  versionedLimiter
	refusals refusals

	transitions *transitions // of the limiter, of a kind that has states; else nil
	before      uint64       // calls of the resource when the rule began to guard it
}

// isOwn says whether the limiter is the resource's own.
func (s *ruleState) isOwn() bool { return !s.rule.sharesLimiter }

// newState returns the state of a version of a rule for a resource that the rule did
// not apply to before. shared is the limiter of a rule that has one for all.
func (l limiterEnv) newState(a *activeRule, version rule.Rule, shared versionedLimiter, r *resource) *ruleState {
	s := &ruleState{rule: a, version: version, limiter: shared, transitions: a.transitions, before: r.node.Calls()}
	if s.isOwn() {
		s.transitions = newTransitions(version)
		s.limiter = l.newLimiter(a, version, r.name, s.transitions)
	}
	s.refusals.init(r.name, version, newTally(&r.node))
	return s
}
