package core

import (
	"cmp"
	"slices"

	"github.com/penstock-go/penstock/rule"
)

// planner makes the plan of one resource of the rules that apply to it.
type planner struct {
	states   []*ruleState   // of all of them
	active   []plannedEntry // in the order in which they are asked
	shadows  []plannedEntry
	overflow bool // it is one of those whose rules with patterns have one limit for all

	counters []rule.PassCounter // of other resources' rules, that count this one's passes
}

// plannedEntry is a planned rule with what its place depends on.
type plannedEntry struct {
	planned
	target  rule.Target
	phase   rule.Phase
	waiting waitOrder
	breadth breadth
}

// breadth says for how many calls a rule is.
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

// reset begins another plan. What was planned stays as it is.
func (p *planner) reset(overflow bool) {
	*p = planner{overflow: overflow, states: p.states[:0], active: p.active[:0], shadows: p.shadows[:0]}
}

// add adds a rule that applies to the resource, and says which calls it is for.
func (p *planner) add(of planned, target rule.Target) {
	p.states = append(p.states, of.state)
	entry := plannedEntry{
		planned: of, target: target, phase: of.rule.Type().Phase(),
		waiting: waitOrderOf(of.limiter), breadth: breadthOf(&target),
	}
	if target.Shadow {
		p.shadows = append(p.shadows, entry)
	} else {
		p.active = append(p.active, entry)
	}
}

// count adds a rule on other resources that counts the passes of this one.
func (p *planner) count(counter rule.PassCounter) { p.counters = append(p.counters, counter) }

// compare orders the rules of a call: by phase; then those that calls can wait for,
// before those that decide at the instant of passing; then those for fewer calls. What
// a call takes and has to give back, because a broader rule refuses, is missed by none
// but calls that the broader rule is for, too. Of several patterns the longer one is
// taken to be for fewer calls.
//
// Rules have the same order in all calls, and keep it while calls wait: a call that
// waits for one keeps its place in those before it, so two calls that met queues in
// different orders could wait for each other.
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

// plan returns the plan, in force since a generation.
func (p *planner) plan(since uint64) *plan {
	for _, entries := range [][]plannedEntry{p.active, p.shadows} {
		slices.SortFunc(entries, func(a, b plannedEntry) int { return a.compare(&b) })
	}
	next := &plan{since: since, rules: make([]planned, 0, len(p.active)+len(p.shadows))}
	for _, entries := range [][]plannedEntry{p.active, p.shadows} {
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
	return next
}

// chain makes a chain that of the calls of one origin.
func (p *planner) chain(c *chain, origin string) {
	c.counters = p.counters
	var members []rateMember
	for i := range p.active {
		if entry := &p.active[i]; isFor(entry.target, origin) {
			members = c.add(members, entry, p.isWide(entry))
		}
	}
	for i := range p.shadows {
		if entry := &p.shadows[i]; isFor(entry.target, origin) {
			c.shadows = append(c.shadows, newStep(entry))
		}
	}
	c.finish(members)
}

// isWide says whether a rule has one limit for several names.
func (p *planner) isWide(entry *plannedEntry) bool {
	t := &entry.target
	return t.Match != "" && (p.overflow || t.Shared || t.Related != "")
}
