package core

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core/internal/call"
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
	limiter call.VersionedLimiter
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
func (p *planner) add(version rule.Rule, state *ruleState, limiter call.VersionedLimiter, target rule.Target) {
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
					next.origins = make(map[string]*call.Chain)
				}
				next.origins[origin] = nil
			}
		}
	}
	for origin := range next.origins {
		c := new(call.Chain)
		p.chain(c, origin)
		next.origins[origin] = c
	}
	p.chain(&next.others, rule.OtherOrigins)
	next.prefetching = next.others.Prefetching()
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
	of.others.Steps, of.others.Rules = of.step[:0], of.passed[:0]
	return &of.plan
}

// planOfOne is a plan of one rule.
type planOfOne struct {
	plan
	rule   [1]planned
	step   [1]call.Step
	passed [1]call.PassedRule
}

// evidenceFrom returns the evidence of the rules for the calls of one origin.
func (p *planner) evidenceFrom(origin string) (of []*call.Evidence) {
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
func (p *planner) chain(c *call.Chain, origin string) {
	c.Counters = p.counters
	if origin != rule.OtherOrigins {
		c.Named = &call.NamedOrigin{Evidence: p.evidenceFrom(origin)}
	}
	for i := range p.active {
		if entry := &p.active[i]; isFor(entry.target, origin) {
			c.Steps = append(c.Steps, entry.step())
		}
	}
	for i := range p.shadows {
		if entry := &p.shadows[i]; isFor(entry.target, origin) {
			c.Shadows = append(c.Shadows, entry.step())
		}
	}
	c.Finish(p.limiters.observesPasses())
}

// step returns the rule as a step of a chain.
func (p *plannedEntry) step() call.Step {
	of := call.StepRule{
		Version: p.rule, Limiter: p.limiter, IsShared: p.state.rule.sharesLimiter, IsRelated: p.target.Related != "",
		Refusals: p.state.refusals, Evidence: p.state.evidenceFor(p.rule), Promised: &p.state.promised,
	}
	return of.Step()
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
