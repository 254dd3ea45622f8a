package core

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/match"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// ruleBook is the rules in force and what they have counted.
type ruleBook struct {
	mu        sync.Mutex                        // guards every change of rules, also those of sources
	flow      map[string]*flowRule              // in force
	waiting   map[string]map[*flowRule]struct{} // not in force: rules of other parts have their names
	patterns  []*flowRule                       // those that have one, in their order
	code      part                              // what Load was given
	former    formerRules                       // taken out
	revision  uint64
	appliedAt clock.Instant
}

func (b *ruleBook) init() {
	b.flow = make(map[string]*flowRule)
	b.waiting = make(map[string]map[*flowRule]struct{})
}

// count returns how many rules are in force, of all kinds.
func (b *ruleBook) count() int { return len(b.flow) }

// find returns the part that has the rule of that key in force, and the place in
// there; nil if none has.
func (b *ruleBook) find(key rules.Key) (p *part, index int) {
	if rule := b.flow[key.Name]; rule != nil && key.Kind == rules.KindFlow {
		return rule.part, rule.index
	}
	return nil, 0
}

// flowRule is a flow rule of a part, in force or waiting for its name. What it
// counts for each resource by itself is in the holds of the resources.
type flowRule struct {
	pattern *match.Pattern // of a rule that has one
	related string         // the resource whose passes it counts, if not its own
	common  *flow.Limiter  // for all resources together; nil when each has its own
	matched atomic.Bool    // a call, as far as anybody has looked

	// ruleBook.mu guards what follows.
	part    *part // where it stands
	index   int   // in the part
	inForce bool
	next    *flow.Terms // while a change is made: those that it is given

	before *flowRule // from which it takes over, while it comes into force

	terms *flow.Terms

	// registry.upkeep guards what follows.
	guarded, busy *resource // that it names, as the guarded and as the related one
	present       *hold     // while a plan is drawn up: what it holds of that resource already
	asRule        rule.Rule // the terms asRuleOf as a rule of whatever kind
	asRuleOf      *flow.Terms
}

// anyKind returns the rule as one of whatever kind. The caller holds registry.upkeep.
func (r *flowRule) anyKind(e *Engine) rule.Rule {
	if r.asRuleOf != r.terms {
		r.asRule, r.asRuleOf = e.flowKind.Of(r.terms.Rule()), r.terms
	}
	return r.asRule
}

func (r *flowRule) hasPattern() bool { return r.pattern != nil }

func (r *flowRule) isGone() bool { return !r.inForce }

// start makes a rule that was not in force before ready to count.
func (r *flowRule) start(now clock.Instant) {
	rule := r.terms.Rule()
	r.related = rule.Related
	if rule.Match != "" {
		// Validated when it was loaded: there is no error.
		pattern, _ := match.Compile(rule.Match)
		r.pattern = &pattern
	}
	if r.pattern == nil || rule.Shared || r.related != "" {
		r.common = flow.NewLimiter(r.terms, now)
		if r.before != nil && r.before.common != nil {
			r.common.Follow(r.before.common)
		}
	}
}

// byPlace orders rules as they stand: those of the code before those of sources.
func byPlace(a, b *flowRule) int {
	if a.part == b.part {
		return cmp.Compare(a.index, b.index)
	}
	return a.part.compare(b.part)
}
