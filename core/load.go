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

// Load puts the rules that come from code in force, in place of those of the
// last Load; rules of sources stay. All changes at once: a call acts by the
// whole set before or by the whole set after. A rule that keeps its name,
// resource and control keeps its state, see the fields of [flow.Rule].
//
// Load keeps no reference to the set and does not write to it. When the set has
// a mistake, or a name that a source's rule has too, the error is
// [rules.Problems] and nothing changes.
func (e *Engine) Load(set rules.Set) error {
	if err := set.Validate(); err != nil {
		return err
	}
	outcome, err := e.loadCode(set.WithDefaults())
	e.report(outcome)
	return err
}

func (e *Engine) loadCode(set rules.Set) (outcome, error) {
	e.rules.mu.Lock()
	defer e.rules.mu.Unlock()
	if e.isClosed() {
		return outcome{}, ErrClosed
	}
	if _, err := rules.Merge(append([]rules.Set{set}, e.sources.active()...)...); err != nil {
		return outcome{}, err
	}
	e.rules.code = set
	return e.reconcile(), nil
}

// swap puts a set in force that is sound and complete, and returns what that
// changed, the zero Swap if nothing. The caller holds rules.mu and has seen that
// the engine is open.
func (e *Engine) swap(set rules.Set) Swap {
	began := e.clock.Now()
	generation := e.generation.Load() + 1
	change := e.rules.compile(set, generation, began)
	if len(change.resources) == 0 {
		return Swap{}
	}
	staged := e.stage(change, set, generation)
	e.generation.Store(generation) // from here on every call acts by the new set

	for resource, next := range staged {
		// Who still acts by the set before does not find its plan any more and
		// asks for the generation again.
		resource.plan.Store(next)
	}
	now := e.clock.Now()
	for _, rule := range change.adopting {
		rule.adopt(now)
	}
	for _, rule := range change.retired {
		rule.retire()
	}
	e.rules.count, e.rules.revision, e.rules.appliedAt = set.Len(), generation, now
	return Swap{
		Revision: generation, At: now, Rules: set.Len(), Took: now.Sub(began),
		Added: change.added, Changed: len(change.adopting) + change.replaced, Removed: change.removed,
	}
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

// stage gives every resource that changes a plan for the coming generation and
// returns the plans that they keep when it has come.
func (e *Engine) stage(c change, set rules.Set, generation uint64) map[*resource]*plan {
	plans := make(map[string]*plan, len(c.resources))
	for name := range c.resources {
		plans[name] = &plan{since: generation}
	}
	for _, rule := range set.Flow {
		if p := plans[rule.Resource]; p != nil {
			p.add(e.rules.flow[rule.Name])
		}
	}
	e.resources.mu.Lock()
	defer e.resources.mu.Unlock()
	staged := make(map[*resource]*plan, len(plans))
	for name, p := range plans {
		r := e.resources.pin(name)
		if p.isEmpty() {
			e.resources.unpin(r)
		}
		staged[r] = p
		transition := *p
		transition.before = r.plan.Load()
		r.plan.Store(&transition)
	}
	e.resources.publish()
	return staged
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

func (p *plan) isEmpty() bool { return len(p.queues) == 0 && len(p.windows) == 0 }

func (p *plan) add(r *flowRule) {
	if r.queue != nil {
		p.queues = append(p.queues, queueRule{r.terms, r.queue, r.refusals})
	} else {
		p.windows = append(p.windows, windowRule{r.terms, r.window, r.refusals})
	}
}
