package core

import (
	"iter"

	"github.com/penstock-go/penstock/rule"
)

// RuleStates yields the states of the rules on all resources for which include returns
// true, each with the name of its resource, in no order. A rule that several resources
// share comes once, with its pattern in place of a name. Unlike [Engine.Snapshot] it
// reads no statistics, so that counts of calls and transitions are left out, and it never holds
// the states of all rules at once.
func (e *Engine) RuleStates(include func(rule.Rule) bool) iter.Seq2[string, RuleSnapshot] {
	return func(yield func(string, RuleSnapshot) bool) {
		now := e.clock.Now()
		shared := make(map[rule.Key]bool)
		for _, r := range e.resources.All(now) {
			p := (*resource)(r).planNow()
			if p == nil || r == e.resources.Overflow && r.Node.Calls() == 0 {
				continue
			}
			for i := range p.Rules {
				of, name := &p.Rules[i], r.Name
				if !include(of.Rule) {
					continue
				}
				if target := of.Rule.Target(); target.Shared {
					key := of.Rule.Key()
					if shared[key] {
						continue
					}
					shared[key], name = true, target.Match
				}
				state := namedSnapshot(of)
				state.Status = statusOf(of, now)
				if !yield(name, state) {
					return
				}
			}
		}
	}
}
