package core

import (
	"cmp"
	"slices"
	"sync"

	"github.com/penstock-go/penstock/rule"
)

// planner makes the plan of one resource from the rules that apply to it.
type planner struct {
	limiters *limiterMaker
	resource string
	switches *switchTable   // what is switched
	states   []*ruleState   // of all rules
	active   []plannedEntry // in the order in which they are asked
	shadows  []plannedEntry // and those that are switched off
	unasked  []plannedEntry // that are switched off, and for the whole fleet

	counters []rule.PassCounter // of other resources' rules, that count this one's passes
}

// plannedEntry is a planned rule with what decides its place in the order.
type plannedEntry struct {
	planned
	limiter versionedLimiter
	target  rule.Target
	phase   rule.Phase
	waiting waitOrder
	breadth breadth
}

// breadth says how many calls a rule applies to. Narrower rules are asked first.
type breadth uint8

const (
	oneOrigin breadth = iota
	oneResource
	manyResources
)

func breadthOf(t *rule.Target) breadth {
	switch {
	case t.Shared || t.Related != "":
		return manyResources
	case t.Origin == "":
		return oneResource
	}
	return oneOrigin
}

// reset begins another plan, and reuses memory of the last one.
func (p *planner) reset() {
	*p = planner{states: p.states[:0], active: p.active[:0], shadows: p.shadows[:0], unasked: p.unasked[:0]}
}

// add adds a version of a rule that applies to the resource, with its state there and its limiter, for the
// calls of the target.
func (p *planner) add(version rule.Rule, state *ruleState, limiter versionedLimiter, target rule.Target) {
	p.states = append(p.states, state)
	of := planned{rule: version, state: state, limiter: limiter.Limiter}
	of.off = p.switches.off(version.Key(), p.resource) != nil
	entry := plannedEntry{
		planned: of, limiter: limiter, target: target, phase: version.Phase(),
		waiting: waitOrderOf(&of), breadth: breadthOf(&target),
	}
	switch {
	case of.off && of.rule.Fleet() && p.limiters.fleet != nil:
		p.unasked = append(p.unasked, entry) // or it would take tokens of the fleet
	case of.off, target.Shadow:
		p.shadows = append(p.shadows, entry)
	default:
		p.active = append(p.active, entry)
	}
}

// count adds a rule that guards another resource and counts the passes of this one.
func (p *planner) count(counter rule.PassCounter) { p.counters = append(p.counters, counter) }

// compare orders the rules of a call: by phase; then as waitOrder says; then narrower
// rules before broader ones. So when a broader rule refuses, the tokens that the call held
// for a moment were missing only for calls that the broader rule applies to as well. A
// longer pattern counts as narrower.
func (p *plannedEntry) compare(q *plannedEntry) int {
	return cmp.Or(
		cmp.Compare(p.phase, q.phase),
		cmp.Compare(p.waiting, q.waiting),
		cmp.Compare(p.breadth, q.breadth),
		cmp.Compare(len(q.target.Match), len(p.target.Match)),
		cmp.Compare(p.rule.Type().Kind(), q.rule.Type().Kind()),
		cmp.Compare(p.target.Name, q.target.Name),
	)
}

// plan returns the plan, which is in force from a generation on.
func (p *planner) plan(since uint64) *plan {
	for _, entries := range [][]plannedEntry{p.active, p.shadows, p.unasked} {
		slices.SortFunc(entries, func(a, b plannedEntry) int { return a.compare(&b) })
	}
	next := newPlan(since, len(p.states))
	for _, entries := range [][]plannedEntry{p.active, p.shadows, p.unasked} {
		for i := range entries {
			next.rules = append(next.rules, entries[i].planned)
			if origin := entries[i].target.Origin; origin != "" && origin != rule.OtherOrigins {
				if next.origins == nil {
					next.origins = make(map[string]*chain)
				}
				next.origins[origin] = nil
			}
		}
	}
	for origin := range next.origins {
		c := new(chain)
		p.chain(c, origin)
		next.origins[origin] = c
	}
	p.chain(&next.others, rule.OtherOrigins)
	next.prefetching = next.others.prefetching()
	return next
}

// newPlan returns a plan with space for so many rules. Most resources have one: it is made with all that
// belongs to it, since ten thousand plans may be made at once.
func newPlan(since uint64, rules int) *plan {
	if rules != 1 {
		return &plan{since: since, rules: make([]planned, 0, rules)}
	}
	of := new(planOfOne)
	of.since, of.rules = since, of.rule[:0]
	of.others.steps, of.others.rules = of.step[:0], of.passed[:0]
	return &of.plan
}

// planOfOne is a plan of one rule.
type planOfOne struct {
	plan
	rule   [1]planned
	step   [1]step
	passed [1]passedRule
}

// evidenceFrom returns the evidence of the rules for the calls of one origin.
func (p *planner) evidenceFrom(origin string) (of []*evidence) {
	for _, entries := range [][]plannedEntry{p.active, p.shadows} {
		for i := range entries {
			if entry := &entries[i]; entry.target.Origin == origin {
				of = append(of, entry.state.evidenceFor(entry.rule))
			}
		}
	}
	return of
}

// chain fills in the chain for the calls of one origin.
func (p *planner) chain(c *chain, origin string) {
	c.counters = p.counters
	if origin != rule.OtherOrigins {
		c.named = &namedOrigin{evidence: p.evidenceFrom(origin)}
	}
	for i := range p.active {
		if entry := &p.active[i]; isFor(entry.target, origin) {
			c.steps = append(c.steps, newStep(entry))
		}
	}
	for i := range p.shadows {
		if entry := &p.shadows[i]; isFor(entry.target, origin) {
			c.shadows = append(c.shadows, newStep(entry))
		}
	}
	c.finish(p.limiters.observesPasses())
}

func newStep(entry *plannedEntry) step {
	limiter, reason := entry.limiter.Limiter, entry.rule.Type().Reason()
	if shared, ok := limiter.(rule.Divided); ok && entry.state.rule.sharesLimiter {
		limiter = shared.For(entry.state.refusals.resource)
	}
	s := step{
		limiter: limiter, first: entry.limiter.first, keyed: newKeyedStep(entry, limiter),
		denies: reason == rule.Denied, injects: reason == rule.Injected, refusals: entry.state.refusals,
	}
	s.demotes, s.counts = entry.rule.Demotes(), countedCallsOf(entry.rule.Counts())
	if !s.demotes { // else no call waits for it
		s.queue, _ = limiter.(rule.Queue)
	}
	if decider, ok := limiter.(rule.Decider); ok && s.queue != nil {
		s.decides = decider.DecidesWithin()
	}
	if s.demotes { // it is asked before those that know of later calls
		return s
	}
	if s.forecaster, _ = limiter.(rule.Forecaster); s.forecaster != nil { // which need not know the attribute
		s.pending = entry.limiter.pending
		if s.pending == nil && s.queue == nil && entry.target.Related == "" {
			s.promised = &entry.state.promised
		}
	}
	return s
}

func newKeyedStep(entry *plannedEntry, limiter rule.Limiter) *keyedStep {
	keys := entry.rule.Attributes()
	if len(keys) == 0 {
		return nil
	}
	s := &keyedStep{keys: keys, evidence: entry.state.evidenceFor(entry.rule)}
	if len(keys) > 1 {
		s.composites = &sync.Pool{New: func() any { return new([rule.MaxKeys]rule.Attribute) }}
	}
	s.late, _ = limiter.(rule.LateReader)
	s.sources, _ = limiter.(rule.SourceReader)
	if p, ok := limiter.(rule.Prefetcher); ok && len(keys) == 1 && p.Prefetches() {
		s.prefetcher = p
	}
	return s
}

// waitOrder is the order of rules of one phase: those that know nothing of later calls, and of the
// others those for which calls can wait before those that decide at once.
type waitOrder uint8

func waitOrderOf(of *planned) waitOrder {
	_, forecasts := of.limiter.(rule.Forecaster)
	_, waits := of.limiter.(rule.Queue)
	switch {
	case !forecasts, of.rule.Demotes():
		return asksFirst
	case waits:
		return canWait
	}
	return decidesLast
}

const (
	asksFirst waitOrder = iota
	canWait
	decidesLast
)
