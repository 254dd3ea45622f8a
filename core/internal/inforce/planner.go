package inforce

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// Planner makes the plan of one resource from the rules that apply to it.
type Planner struct {
	Resource string
	InFleet  bool      // the engine is in a fleet
	Observed bool      // an observer learns of calls that pass
	Switches *Switches // what is switched
	States   []*State  // of all rules
	active   []entry   // in the order in which they are asked
	shadows  []entry   // and those that are switched off
	unasked  []entry   // that are switched off, and for the whole fleet

	counters []optional.PassCounter // of other resources' rules, that count this one's passes
}

// entry is a planned rule with what decides its place in the order.
type entry struct {
	Planned
	limiter   call.VersionedLimiter
	origin    string // that the rule is for; "" for all
	pattern   int    // the length of its pattern
	isRelated bool   // it counts the passes of another resource
	phase     rule.Phase
	waiting   waitOrder
	breadth   breadth
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

// Begin begins the plan of another resource, and reuses memory of the last one.
func (p *Planner) Begin(resource string) {
	p.Resource, p.counters = resource, nil
	p.States, p.active, p.shadows, p.unasked = p.States[:0], p.active[:0], p.shadows[:0], p.unasked[:0]
}

// Add adds a version of a rule that applies to the resource, with its state there and its limiter, for the
// calls of the target.
func (p *Planner) Add(version rule.Rule, state *State, limiter call.VersionedLimiter, target *rule.Target) {
	p.States = append(p.States, state)
	isOff := p.Switches.Off(state.Rule.Key, p.Resource) != nil
	entries := &p.active
	switch {
	case isOff && version.Fleet() && p.InFleet:
		entries = &p.unasked // or it would take tokens of the fleet
	case isOff, target.Shadow:
		entries = &p.shadows
	}
	*entries = append(*entries, entry{
		Planned: Planned{Rule: version, State: state, Limiter: limiter.Limiter, Off: isOff},
		limiter: limiter, origin: target.Origin, pattern: len(target.Match), isRelated: target.Related != "",
		phase: version.Phase(), waiting: waitOrderOf(version, limiter.Limiter), breadth: breadthOf(target),
	})
}

// Count adds a rule that guards another resource and counts the passes of this one.
func (p *Planner) Count(counter optional.PassCounter) { p.counters = append(p.counters, counter) }

// compare orders the rules of a call: by phase; then as waitOrder says; then narrower
// rules before broader ones. So when a broader rule refuses, the tokens that the call held
// for a moment were missing only for calls that the broader rule applies to as well. A
// longer pattern counts as narrower.
func (p *entry) compare(q *entry) int {
	return cmp.Or(
		cmp.Compare(p.phase, q.phase),
		cmp.Compare(p.waiting, q.waiting),
		cmp.Compare(p.breadth, q.breadth),
		cmp.Compare(q.pattern, p.pattern),
		cmp.Compare(p.State.Rule.Key.Kind, q.State.Rule.Key.Kind),
		cmp.Compare(p.State.Rule.Key.Name, q.State.Rule.Key.Name),
	)
}

// Plan returns the plan, which is in force from a generation on.
func (p *Planner) Plan(since uint64) *Plan {
	for _, entries := range [][]entry{p.active, p.shadows, p.unasked} {
		slices.SortFunc(entries, func(a, b entry) int { return a.compare(&b) })
	}
	next := newPlan(since, len(p.States))
	var origins map[string]*call.Chain
	for _, entries := range [][]entry{p.active, p.shadows, p.unasked} {
		for i := range entries {
			next.Rules = append(next.Rules, entries[i].Planned)
			if origin := entries[i].origin; origin != "" && origin != rule.OtherOrigins {
				if origins == nil {
					origins = make(map[string]*call.Chain)
				}
				origins[origin] = new(call.Chain)
			}
		}
	}
	p.chain(&next.Others, rule.OtherOrigins)
	if origins != nil {
		for origin, c := range origins {
			p.chain(c, origin)
		}
		next.Others.SetOrigins(origins)
	}
	return next
}

// newPlan returns a plan with space for so many rules. Most resources have one: it is made with all that
// belongs to it, since ten thousand plans may be made at once.
func newPlan(since uint64, rules int) *Plan {
	if rules != 1 {
		return &Plan{Since: since, Rules: make([]Planned, 0, rules)}
	}
	of := new(PlanOfOne)
	of.Since, of.Rules = since, of.rule[:0]
	of.Others.Steps, of.Others.Rules = of.step[:0], of.passed[:0]
	return &of.Plan
}

// PlanOfOne is a plan of one rule.
type PlanOfOne struct {
	Plan
	rule   [1]Planned
	step   [1]call.Step
	passed [1]call.PassedRule
}

// evidenceFrom returns the evidence of the rules for the calls of one origin.
func (p *Planner) evidenceFrom(origin string) (of []*call.Evidence) {
	for _, entries := range [][]entry{p.active, p.shadows} {
		for i := range entries {
			if entry := &entries[i]; entry.origin == origin {
				of = append(of, entry.State.evidenceFor(entry.Rule))
			}
		}
	}
	return of
}

// chain fills in the chain for the calls of one origin.
func (p *Planner) chain(c *call.Chain, origin string) {
	c.CountBy(p.counters)
	if origin != rule.OtherOrigins {
		c.IsFor(p.evidenceFrom(origin))
	}
	for i := range p.active {
		if entry := &p.active[i]; isFor(entry.origin, origin) {
			c.Steps = append(c.Steps, call.Step{})
			entry.fill(&c.Steps[len(c.Steps)-1])
		}
	}
	for i := range p.shadows {
		if entry := &p.shadows[i]; isFor(entry.origin, origin) {
			entry.fill(c.AddShadow())
		}
	}
	c.Finish(p.Observed)
}

// fill makes a step of a chain that of the rule.
func (p *entry) fill(step *call.Step) {
	of := call.StepRule{
		Version: p.Rule, Limiter: p.limiter, IsShared: p.State.Rule.SharesLimiter, IsRelated: p.isRelated,
		Refusals: p.State.Refusals, Evidence: p.State.evidenceFor(p.Rule),
	}
	of.Fill(step)
}

// Try does with a limiter of a version of a rule what a plan does: it asks what kind of limiter it is.
func Try(a *Rule, version rule.Rule, limiter rule.Limiter) {
	of := entry{
		Planned: Planned{Rule: version, State: &State{Rule: a, Refusals: new(call.Refusals)}},
		limiter: call.VersionedLimiter{Limiter: limiter},
	}
	of.fill(new(call.Step))
}

// waitOrder is the order of rules of one phase: those that know nothing of later calls, and of the
// others those for which calls can wait before those that decide at once.
type waitOrder uint8

func waitOrderOf(version rule.Rule, limiter rule.Limiter) waitOrder {
	_, forecasts := limiter.(optional.Forecaster)
	_, waits := limiter.(rule.Queue)
	switch {
	case !forecasts, version.Demotes():
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
