package core

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/penstock-go/penstock/flow"
)

// planner draws up the plan of one resource, rule by rule, in the order of the
// set.
type planner struct {
	holds    []*hold   // what rules hold of the resource, old and new
	queues   []planned // in the order in which they are asked
	windows  []planned
	shadows  []planned
	overflow bool // it is one of those whose rules with patterns have one ceiling for all

	counted []countedRule // of other resources' rules, that count this one's passes
}

// startOver begins another plan. What was drawn up stays as it is.
func (p *planner) startOver() {
	*p = planner{overflow: p.overflow, holds: p.holds[:0], queues: p.queues[:0], windows: p.windows[:0], shadows: p.shadows[:0]}
}

// sort puts the rules in the order in which they are asked.
func (p *planner) sort() {
	slices.SortStableFunc(p.queues, func(a, b planned) int { return a.compareQueues(b) })
	slices.SortStableFunc(p.windows, func(a, b planned) int { return cmp.Compare(a.breadth(), b.breadth()) })
}

// breadth orders rules by how many calls they are for: those for the calls of one
// origin before those for all calls of the resource, and these before those that
// have one ceiling for several resources. What a call takes and has to give back,
// because a broader rule refuses, is missed by none but calls that the broader
// rule is for, too.
func (p planned) breadth() int {
	rule := p.terms.Rule()
	switch {
	case rule.Shared || rule.Related != "":
		return 2
	case rule.Origin == "":
		return 1
	}
	return 0
}

// compareQueues orders the queues of a call: a call that waits in one keeps its place
// in those before it, where it is in the way of others. So those for fewer calls come
// first; of several patterns the longer one is taken to be for fewer. Two queues have
// the same order in all calls, and keep it while calls wait in them: else two calls
// could wait for each other.
func (p planned) compareQueues(q planned) int {
	a, b := p.terms.Rule(), q.terms.Rule()
	return cmp.Or(
		cmp.Compare(p.breadth(), q.breadth()),
		cmp.Compare(len(b.Match), len(a.Match)),
		cmp.Compare(a.Name, b.Name),
	)
}

// add adds a rule that applies to the resource.
func (p *planner) add(terms *flow.Terms, h *hold) {
	p.holds = append(p.holds, h)
	entry := planned{terms, h}
	switch {
	case terms.Rule().Shadow:
		p.shadows = append(p.shadows, entry)
	case h.queue != nil:
		p.queues = append(p.queues, entry)
	default:
		p.windows = append(p.windows, entry)
	}
}

// count adds a rule on other resources that counts the passes of this one.
func (p *planner) count(rule *flowRule) {
	p.counted = append(p.counted, countedRule{rule.terms, rule.common.window})
}

// plan returns the plan, in force since a generation.
func (p *planner) plan(since uint64) *plan {
	p.sort()
	next := &plan{since: since, rules: slices.Concat(p.queues, p.windows, p.shadows)}
	for _, entry := range next.rules {
		if origin := entry.terms.Rule().Origin; origin != "" && origin != flow.OtherOrigins {
			if next.origins == nil {
				next.origins = make(map[string]*steps)
			}
			next.origins[origin] = nil
		}
	}
	for origin := range next.origins {
		s := p.steps(origin)
		next.origins[origin] = &s
	}
	next.others = p.steps(flow.OtherOrigins)
	return next
}

// steps returns the rules for the calls of one origin.
func (p *planner) steps(origin string) steps {
	s := steps{windows: make([]windowRule, 0, len(p.windows))}
	for _, entry := range p.queues {
		if entry.isFor(origin) {
			s.queues = append(s.queues, queueRule{entry.terms, entry.hold.queue, &entry.hold.refusals})
		}
	}
	for _, rule := range s.queues {
		s.asks = append(s.asks, flow.Ask{Queue: rule.queue, Terms: rule.terms})
	}
	for _, entry := range p.windows {
		if entry.isFor(origin) {
			h := entry.hold
			rule := windowRule{
				terms: entry.terms, window: h.window, refusals: &h.refusals, related: h.rule.related != "", wide: p.isWide(entry),
			}
			if !rule.wide && !rule.related {
				rule.promised = &h.promised
			}
			s.windows = append(s.windows, rule)
		}
	}
	if len(s.windows) > 1 {
		s.fullLast = new(atomic.Int32)
	}
	for i := range s.windows {
		if rule := &s.windows[i]; rule.wide && !rule.related && i+1 < len(s.windows) {
			rule.holds, s.anyHolds = true, true
		}
	}
	s.after = p.aftermath(origin)
	return s
}

// aftermath returns what follows on the passes of the calls of one origin; nil if
// nothing does.
func (p *planner) aftermath(origin string) *aftermath {
	if len(p.counted)+len(p.shadows) == 0 {
		return nil
	}
	after := &aftermath{counted: p.counted}
	for _, entry := range p.shadows {
		if entry.isFor(origin) {
			after.shadows = append(after.shadows, entry)
		}
	}
	return after
}

// isWide says whether a rule has one ceiling for several names.
func (p *planner) isWide(entry planned) bool {
	rule := entry.terms.Rule()
	return rule.Match != "" && (p.overflow || rule.Shared || rule.Related != "")
}

// isFor says whether the rule is for calls of an origin that a rule names, or
// for [flow.OtherOrigins].
func (p planned) isFor(origin string) bool {
	of := p.terms.Rule().Origin
	return of == "" || of == origin
}
