package core

import (
	"sync"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rules"
)

// ruleBook is the rules in force and what they have counted.
type ruleBook struct {
	mu        sync.Mutex // guards every change of rules, also those of sources
	flow      map[string]*flowRule
	inForce   rules.Set
	revision  uint64
	appliedAt clock.Instant
	code      rules.Set // what Load was given
}

func (b *ruleBook) init() { b.flow = make(map[string]*flowRule) }

// flowRule is a flow rule in force. A changed rule is a new one that shares the
// state of the one it replaces.
type flowRule struct {
	terms *flow.Terms
	state *ruleState
}

// ruleState is what stays of a rule when it is changed. What a rule counts for
// each resource by itself is in the holds of the resources.
type ruleState struct {
	pattern *match.Pattern // of a rule that has one
	related bool
	common  *limiter // for all resources together; nil when each has its own
}

// change is what one set of rules changes of another.
type change struct {
	resources                map[string]struct{} // named by rules that change
	patterns                 []*match.Pattern    // of rules that change
	adopting                 []*flowRule         // new terms, same state
	retired                  []*flowRule         // gone, or replaced by one with a state of its own
	added, replaced, removed int
}

func (c *change) isEmpty() bool { return c.added+c.replaced+c.removed+len(c.adopting) == 0 }

// concerns notes whose plans change with a rule.
func (c *change) concerns(rule *flowRule) {
	r := rule.terms.Rule()
	if r.Resource != "" {
		c.resources[r.Resource] = struct{}{}
	}
	if r.Related != "" {
		c.resources[r.Related] = struct{}{}
	}
	if rule.state.pattern != nil {
		c.patterns = append(c.patterns, rule.state.pattern)
	}
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
		next := &flowRule{terms: flow.Compile(rule, generation)}
		switch {
		case present == nil:
			next.state = newRuleState(next.terms, now)
			c.added++
		case present.keepsState(rule):
			next.state = present.state
			c.adopting = append(c.adopting, next)
		default:
			next.state = newRuleState(next.terms, now)
			c.replaced++
			c.retired = append(c.retired, present)
			c.concerns(present)
		}
		c.concerns(next)
		b.flow[rule.Name] = next
	}
	b.inForce = set
	if len(b.flow) == len(names) {
		return c
	}
	for name, rule := range b.flow {
		if _, stays := names[name]; !stays {
			delete(b.flow, name)
			c.removed++
			c.retired = append(c.retired, rule)
			c.concerns(rule)
		}
	}
	return c
}

func newRuleState(t *flow.Terms, now clock.Instant) *ruleState {
	rule := t.Rule()
	s := &ruleState{related: rule.Related != ""}
	if rule.Match != "" {
		// Validated when it was loaded: there is no error.
		pattern, _ := match.Compile(rule.Match)
		s.pattern = &pattern
	}
	if s.pattern == nil || rule.Shared || s.related {
		common := newLimiter(t, now)
		s.common = &common
	}
	return s
}

// keepsState says whether the state of the rule can serve a changed one.
func (r *flowRule) keepsState(changed flow.Rule) bool {
	present := r.terms.Rule()
	return present.Resource == changed.Resource && present.Match == changed.Match &&
		present.Shared == changed.Shared && present.Related == changed.Related &&
		present.Limiter() == changed.Limiter()
}

// matches says whether the rule, which has a pattern, guards the resource of that
// name. The resource that it relates to is busy rather than guarded.
func (r *flowRule) matches(name string) bool {
	return r.state.pattern.Matches(name) && name != r.terms.Rule().Related
}
