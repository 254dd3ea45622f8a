package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// heldTickets are the tickets of steps that an admission holds, by the index of the step in
// the chain that it follows.
type heldTickets struct {
	chain *chain // nil before the first
	slots []heldTicket
}

// heldTicket is a ticket, with the version of the limiter that gave it. The zero value is that
// of a step whose ticket the call does not hold.
type heldTicket struct {
	limiter     rule.Limiter
	ticket      rule.Ticket
	suspends    rule.Suspender // the limiter, see passedRule
	isSuspended bool           // it was told that the call waits
	demotes     bool           // it is of a step that demotes calls
	pending     *pendingCalls  // that the call has begun, see step; else nil
}

// follow goes over to the chain that is in force. It gives back the tickets of rules that are
// not in it, because they are gone or have started anew. A ticket of an earlier version of a
// rule counts for a later one, unless that lets no call wait, or never lets this one pass.
func (h *heldTickets) follow(q *request, opts []Option, c *chain) {
	if h.chain == c {
		return
	}
	before := *h
	h.chain, h.slots = c, make([]heldTicket, len(c.steps))
	held := make(map[rule.Limiter]heldTicket, len(before.slots)) // by the first version
	for i, slot := range before.slots {
		if slot.limiter != nil {
			held[before.chain.steps[i].first] = slot
		}
	}
	for i := range c.steps {
		s := &c.steps[i]
		slot, isHeld := held[s.first]
		isHeld = isHeld && slot.demotes == s.demotes
		if isHeld && (s.demotes || s.queue != nil && (slot.limiter == s.limiter || s.retryAfter(q, opts) != Never)) {
			h.slots[i] = slot
			delete(held, s.first)
		}
	}
	for i := range before.slots {
		if _, isGone := held[before.chain.steps[i].first]; !isGone {
			before.slots[i] = heldTicket{}
		}
	}
	before.leave(q, len(before.slots))
}

// ask asks the step with an index for a ticket.
func (h *heldTickets) ask(i int, q *request, opts []Option) answer {
	s, slot := &h.chain.steps[i], &h.slots[i]
	if s.mayGiveBack {
		slot.pending = s.pending
		slot.pending.begin()
	}
	var ticket rule.Ticket
	var decision rule.Decision
	if s.demotes {
		ticket, decision = h.askDemoting(i, q, opts)
	} else {
		ticket, decision = s.ask(q.Call, q, opts)
	}
	if decision == rule.Pass {
		h.add(i, ticket)
	} else {
		slot.endPending()
	}
	return answer{which: i, ticket: ticket, decision: decision}
}

// add adds the ticket of the step with an index.
func (h *heldTickets) add(i int, ticket rule.Ticket) {
	s, slot := &h.chain.steps[i], &h.slots[i]
	slot.limiter, slot.ticket, slot.suspends, slot.demotes = s.limiter, ticket, h.chain.rules[i].suspends, s.demotes
}

// keep notes that the call has passed, and gives nothing back.
func (h *heldTickets) keep() {
	for i := range h.slots {
		h.slots[i].endPending()
	}
}

func (t *heldTicket) endPending() {
	t.pending.end()
	t.pending = nil
}

// has reports whether the call holds the ticket of the step with an index.
func (h *heldTickets) has(i int) bool { return i < len(h.slots) && h.slots[i].limiter != nil }

// suspend tells each rule.Suspender that gave the call a ticket that the call waits.
func (h *heldTickets) suspend(now clock.Instant) {
	for i := range h.slots {
		if slot := &h.slots[i]; slot.suspends != nil && !slot.isSuspended {
			slot.isSuspended = true
			slot.suspends.Suspend(now, slot.ticket)
		}
	}
}

// resume tells those that suspend has told that the call goes on.
func (h *heldTickets) resume(now clock.Instant) {
	for i := range h.slots {
		h.slots[i].resume(now)
	}
}

func (t *heldTicket) resume(now clock.Instant) {
	if t.isSuspended {
		t.isSuspended = false
		t.suspends.Resume(now, t.ticket)
	}
}

// giveBack gives back the tickets of the steps from one on, the last first, but those of queues, and of
// rules that demote calls, among the first so many steps. A ticket whose limiter panics is gone.
func (h *heldTickets) giveBack(q *request, from, before int) {
	for i := len(h.slots) - 1; i >= from; i-- {
		slot := h.slots[i]
		if slot.limiter == nil || i < before && (h.chain.steps[i].queue != nil || slot.demotes) {
			h.slots[i].endPending() // it keeps that for long
			continue
		}
		h.slots[i] = heldTicket{}
		if slot.isDemoted() {
			continue
		}
		func() {
			defer slot.endPending()
			slot.limiter.GiveBack(q.Now, slot.ticket, q.Tokens)
		}()
	}
}

// leave gives back the tickets of the first count steps, the last first, also those behind one
// whose limiter panics.
func (h *heldTickets) leave(q *request, count int) {
	for count > 0 && h.slots[count-1].limiter == nil {
		h.slots[count-1].endPending()
		count--
	}
	if count == 0 {
		return
	}
	slot := h.slots[count-1]
	h.slots[count-1] = heldTicket{}
	defer h.leave(q, count-1)
	if slot.isDemoted() {
		return
	}
	defer slot.endPending()
	slot.resume(q.Now)
	slot.limiter.GiveBack(q.Now, slot.ticket, q.Tokens)
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
	q.demote(s.refusals.tally)
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
