package core

import (
	"slices"

	"github.com/penstock-go/penstock/flow"
)

// planner draws up the plan of one resource, rule by rule, in the order of the
// set.
type planner struct {
	holds   []*hold   // what rules hold of the resource, old and new
	queues  []planned // in the order in which they are asked
	windows []planned
	shadows []planned
	counted []countedRule // of other resources' rules, that count this one's passes
}

// startOver begins another plan. What was drawn up stays as it is.
func (p *planner) startOver() {
	*p = planner{holds: p.holds[:0], queues: p.queues[:0], windows: p.windows[:0], shadows: p.shadows[:0]}
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
	for _, entry := range p.windows {
		if entry.isFor(origin) {
			h := entry.hold
			s.windows = append(s.windows, windowRule{entry.terms, h.window, &h.refusals, h.rule.related != ""})
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

// isFor says whether the rule is for calls of an origin that a rule names, or
// for [flow.OtherOrigins].
func (p planned) isFor(origin string) bool {
	of := p.terms.Rule().Origin
	return of == "" || of == origin
}
