package core

import (
	"math"

	"github.com/penstock-go/penstock/rule"
)

// A rule that demotes calls, see [rule.Spec.Demotes], is a step like others, of a phase of its own.
// What its limiter refuses for now passes with the lowest priority, and with demotedTicket, which the
// limiter never sees. A call is either within all such rules, and has taken tokens of each, or over one
// of them, and has taken none: what it took of the rules before that one it gives back, and those after
// it are not asked. So the calls that one rule demotes do not use up what another grants.
//
// A call keeps what such a rule has decided when it waits, as it keeps its tickets of queues: else
// calls that wait would count for nothing, and a flood of them would wait before others. If the rule
// that has demoted it is gone meanwhile, it has the priority again with which it came.

// demotedTicket is what a call has of a rule that demotes, if it was demoted.
const demotedTicket = rule.Ticket(math.MaxUint64)

// demotesBy says whether an answer of the limiter demotes a call: the step is one that does, and the
// call is not one that may never be made.
func (s *step) demotesBy(ticket rule.Ticket, decision rule.Decision) bool {
	return s.demotes && decision == rule.Block && ticket != rule.Ticket(rule.Forbidden)
}

// demote gives the call the lowest priority, by the step.
func (q *request) demote(s *step) {
	q.priority, q.demotedBy = q.Priority(), s.refusals.tally
	q.SetCaller(rule.PrioritySheddable, q.Inbound())
}

// promote gives the call the priority that it came with.
func (q *request) promote() {
	if q.demotedBy != nil {
		q.SetCaller(q.priority, q.Inbound())
		q.demotedBy = nil
	}
}

// countDemotion counts the call as demoted, if it is, once it is decided.
func (q *request) countDemotion() {
	if q.demotedBy != nil {
		q.demotedBy.demoted.Add(1)
		q.demotedBy = nil
	}
}

// askDemoting asks the step with an index, which demotes calls.
func (c *chain) askDemoting(i int, q *request, opts []Option, tickets []rule.Ticket) (rule.Ticket, rule.Decision) {
	if q.demotedBy != nil {
		return demotedTicket, rule.Pass
	}
	s := &c.steps[i]
	ticket, decision := s.ask(q.Call, q, opts)
	if !s.demotesBy(ticket, decision) {
		return ticket, decision
	}
	for j := range i {
		if before := tickets[j]; c.steps[j].demotes {
			tickets[j] = demotedTicket
			c.steps[j].limiter.GiveBack(q.Now, before, q.Tokens)
		}
	}
	q.demote(s)
	return demotedTicket, rule.Pass
}

// askDemoting is the function of that name of the chain.
func (h *heldTickets) askDemoting(i int, q *request, opts []Option) (rule.Ticket, rule.Decision) {
	if q.demotedBy != nil {
		return demotedTicket, rule.Pass
	}
	s := &h.chain.steps[i]
	ticket, decision := s.ask(q.Call, q, opts)
	if !s.demotesBy(ticket, decision) {
		return ticket, decision
	}
	for j := range i {
		if slot := &h.slots[j]; slot.demotes {
			before := slot.ticket
			slot.ticket = demotedTicket
			slot.limiter.GiveBack(q.Now, before, q.Tokens)
		}
	}
	q.demote(s)
	return demotedTicket, rule.Pass
}

// demotion says whether one of the tickets is that of a rule which has demoted the call.
func (h *heldTickets) demotion() bool {
	for i := range h.slots {
		if h.slots[i].isDemoted() {
			return true
		}
	}
	return false
}

// isDemoted says whether the ticket is none of its limiter.
func (t *heldTicket) isDemoted() bool { return t.demotes && t.ticket == demotedTicket }

// isDemoted says whether the ticket of a rule is none of its limiter.
func (of *passedRule) isDemoted(t rule.Ticket) bool { return of.demotes && t == demotedTicket }

// Demoted says whether a rule has given the call the lowest priority, since it was over the rate of
// that rule: whoever does work for the call can do less of it, or hand the priority on. It must not run
// at the same time as Exit.
func (g *Guard) Demoted() bool {
	if g == nil || g.extras == nil || g.extras.record == nil {
		return false // a demoted call has a record
	}
	record := g.extras.record
	if record.generation.Load() != g.generation() {
		return false
	}
	for i := range record.passed.asked {
		if record.passed.rules[i].isDemoted(record.slot(i).ticket) {
			return true
		}
	}
	return false
}
