package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// hold is what one rule holds of one resource: the limiter, which may be common
// to many resources, and what it has refused there.
type hold struct {
	limiter  *flow.Limiter
	rule     *flowRule
	adopted  *flow.Terms // by the limiter, if it is the resource's own
	refusals refusals
	before   uint64 // calls of the resource when the rule began to hold of it
}

// isOwn says whether the limiter is the resource's own.
func (h *hold) isOwn() bool { return h.rule.common == nil }

// newHold returns what a rule, by these terms, holds of a resource that it did not
// apply to before.
func newHold(by *flowRule, of rule.Rule, terms *flow.Terms, r *resource, now clock.Instant) *hold {
	h := &hold{rule: by, adopted: terms, before: r.node.Calls()}
	if by.common != nil {
		h.limiter = by.common
	} else {
		h.limiter = flow.NewLimiter(terms, now)
	}
	h.refusals.about(r.name, of, newTally(&r.node))
	return h
}
