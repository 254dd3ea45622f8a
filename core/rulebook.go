package core

import (
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// ruleBook is the rules in force and what they have counted.
type ruleBook struct {
	mu        sync.Mutex // guards every change of rules, also those of sources
	flow      map[string]*flowRule
	count     int
	revision  uint64
	appliedAt clock.Instant
	code      rules.Set // what Load was given
}

func (b *ruleBook) init() { b.flow = make(map[string]*flowRule) }

// flowRule is a flow rule in force. A changed rule is a new one that shares the
// limiter, which holds what was counted, with the one it replaces.
type flowRule struct {
	terms    *flow.Terms
	window   *flow.Window // of control "reject", else nil
	queue    *flow.Queue  // of control "throttle", else nil
	refusals *refusals
}

// change is what one set of rules changes of another.
type change struct {
	resources                map[string]struct{} // whose plans change
	adopting                 []*flowRule         // new terms, same state
	retired                  []*flowRule         // gone, or replaced by one with a state of its own
	added, replaced, removed int
}

// compile makes the book hold the rules of the set and tells what changed. Of
// rules that stayed the same it touches nothing.
func (b *ruleBook) compile(set rules.Set, generation uint64, now clock.Instant) change {
	c := change{resources: make(map[string]struct{})}
	names := make(map[string]struct{}, len(set.Flow))
	for _, rule := range set.Flow {
		names[rule.Name] = struct{}{}
		present := b.flow[rule.Name]
		if present != nil && present.terms.Rule() == rule {
			continue
		}
		terms := flow.Compile(rule, generation)
		next := present.successor(terms)
		switch {
		case present == nil:
			next = newFlowRule(terms, now)
			c.added++
		case next == nil:
			next = newFlowRule(terms, now)
			c.replaced++
			c.retired = append(c.retired, present)
			c.resources[present.terms.Rule().Resource] = struct{}{}
		default:
			c.adopting = append(c.adopting, next)
		}
		c.resources[rule.Resource] = struct{}{}
		b.flow[rule.Name] = next
	}
	if len(b.flow) == len(names) {
		return c
	}
	for name, rule := range b.flow {
		if _, stays := names[name]; !stays {
			delete(b.flow, name)
			c.removed++
			c.retired = append(c.retired, rule)
			c.resources[rule.terms.Rule().Resource] = struct{}{}
		}
	}
	return c
}

func newFlowRule(t *flow.Terms, now clock.Instant) *flowRule {
	rule := t.Rule()
	r := &flowRule{terms: t, refusals: new(refusals)}
	r.refusals.about(rule.Resource, rules.KindFlow, rule.Name)
	if rule.Control == flow.Throttle {
		r.queue = flow.NewQueue(t, now)
	} else {
		r.window = flow.NewWindow(t, now)
	}
	return r
}

// successor returns the rule with other terms and the same state, nil when
// there is none or the state cannot serve them.
func (r *flowRule) successor(t *flow.Terms) *flowRule {
	if r == nil || r.terms.Rule().Resource != t.Rule().Resource || r.terms.Rule().Control != t.Rule().Control {
		return nil
	}
	next := *r
	next.terms = t
	return &next
}

func (r *flowRule) adopt(now clock.Instant) {
	if r.queue != nil {
		r.queue.Adopt(r.terms, now)
	} else {
		r.window.Adopt(r.terms, now)
	}
}

// retire lets go of those who wait under a rule that is gone.
func (r *flowRule) retire() {
	if r.queue != nil {
		r.queue.Retire()
	}
}
