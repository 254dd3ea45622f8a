package call

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// HeldTickets are the tickets of steps that an admission holds, by the index of the step in
// the chain that it follows.
type HeldTickets struct {
	Chain *Chain // nil before the first
	slots []heldTicket
}

// heldTicket is a ticket, with the version of the limiter that gave it. The zero value is that
// of a step whose ticket the call does not hold.
type heldTicket struct {
	limiter   rule.Limiter
	ticket    rule.Ticket
	suspended optional.Suspender // the limiter if it was told that the call waits; else nil
	demotes   bool               // it is of a step that demotes calls
	pending   *PendingCalls      // in which the call counts while it may give the ticket back, see [Step]; else nil
}

// Follow goes over to the chain that is in force. It gives back the tickets of rules that are
// not in it, because they are gone or have started anew. A ticket of an earlier version of a
// rule counts for a later one, unless that lets no call wait, or never lets this one pass.
func (h *HeldTickets) Follow(q *Request, opts []Option, c *Chain) {
	if h.Chain == c {
		return
	}
	before := *h
	h.Chain, h.slots = c, make([]heldTicket, len(c.Steps))
	held := make(map[uint64]heldTicket, len(before.slots)) // by the series of the limiter
	for i, slot := range before.slots {
		if slot.limiter != nil {
			held[before.Chain.Steps[i].Series] = slot
		}
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		slot, isHeld := held[s.Series]
		isHeld = isHeld && slot.demotes == s.demotes
		if isHeld && (s.demotes || s.queue != nil && (slot.limiter == s.Limiter || s.retryAfter(q, opts) != rule.Never)) {
			h.slots[i] = slot
			delete(held, s.Series)
		}
	}
	for i := range before.slots {
		if _, isGone := held[before.Chain.Steps[i].Series]; !isGone {
			before.slots[i] = heldTicket{}
		}
	}
	before.leave(q, len(before.slots))
}

// Ask asks the step with an index for a ticket.
func (h *HeldTickets) Ask(i int, q *Request, opts []Option) Answer {
	s, slot := &h.Chain.Steps[i], &h.slots[i]
	if s.mayGiveBack {
		slot.pending = s.Pending
		slot.pending.begin()
	}
	var ticket rule.Ticket
	var decision rule.Decision
	if s.demotes {
		ticket, decision = h.askDemoting(i, q, opts)
	} else {
		ticket, decision = s.Ask(q, opts)
	}
	if decision == rule.Pass {
		h.Add(i, ticket)
	} else {
		slot.endPending()
	}
	return Answer{Which: i, Ticket: ticket, Decision: decision}
}

// Add adds the ticket of the step with an index.
func (h *HeldTickets) Add(i int, ticket rule.Ticket) {
	s, slot := &h.Chain.Steps[i], &h.slots[i]
	slot.limiter, slot.ticket, slot.demotes = s.Limiter, ticket, s.demotes
}

// Keep notes that the call has passed, and gives nothing back.
func (h *HeldTickets) Keep() {
	for i := range h.slots {
		h.slots[i].endPending()
	}
}

func (t *heldTicket) endPending() {
	t.pending.end()
	t.pending = nil
}

// Ticket returns the ticket of the step with an index.
func (h *HeldTickets) Ticket(i int) rule.Ticket { return h.slots[i].ticket }

// Has reports whether the call holds the ticket of the step with an index.
func (h *HeldTickets) Has(i int) bool { return i < len(h.slots) && h.slots[i].limiter != nil }

// Suspend tells each optional.Suspender that gave the call a ticket that the call waits.
func (h *HeldTickets) Suspend(now clock.Instant) {
	for i := range h.slots {
		slot := &h.slots[i]
		if limiter, ok := slot.limiter.(optional.Suspender); ok && slot.suspended == nil {
			slot.suspended = limiter
			limiter.Suspend(now, slot.ticket)
		}
	}
}

// Resume tells those that suspend has told that the call goes on.
func (h *HeldTickets) Resume(now clock.Instant) {
	for i := range h.slots {
		h.slots[i].resume(now)
	}
}

func (t *heldTicket) resume(now clock.Instant) {
	if limiter := t.suspended; limiter != nil {
		t.suspended = nil
		limiter.Resume(now, t.ticket)
	}
}

// GiveBack gives back the tickets of the steps from one on, the last first, but for those of queues, and of rules
// that demote calls. A ticket whose limiter panics is gone.
func (h *HeldTickets) GiveBack(q *Request, from int) { h.giveBack(q, from, len(h.slots)) }

// GiveBackToWait gives back what a call does not keep while it waits at a step: as GiveBack does, but behind that step
// the tickets of all rules.
func (h *HeldTickets) GiveBackToWait(q *Request, at int) { h.giveBack(q, 0, at) }

// giveBack keeps tickets of queues, and of rules that demote, of the first so many steps.
func (h *HeldTickets) giveBack(q *Request, from, before int) {
	for i := len(h.slots) - 1; i >= from; i-- {
		slot := h.slots[i]
		if slot.limiter == nil || i < before && (h.Chain.Steps[i].queue != nil || slot.demotes) {
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

// LeaveAll gives back all tickets, the last first, also those behind one whose limiter panics.
func (h *HeldTickets) LeaveAll(q *Request) { h.leave(q, len(h.slots)) }

// leave gives back the tickets of the first count steps, the last first, also those behind one
// whose limiter panics.
func (h *HeldTickets) leave(q *Request, count int) {
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

// askDemoting is [Chain.askDemoting] for a call that holds tickets: it asks a step that demotes calls in place of
// refusing them.
func (h *HeldTickets) askDemoting(i int, q *Request, opts []Option) (rule.Ticket, rule.Decision) {
	if q.DemotedBy != nil {
		return demotedTicket, rule.Pass
	}
	s := &h.Chain.Steps[i]
	ticket, decision := s.Ask(q, opts)
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
	q.demote(s.Refusals.Tally)
	return demotedTicket, rule.Pass
}

// Demotion says whether one of the tickets is that of a rule which has demoted the call.
func (h *HeldTickets) Demotion() bool {
	for i := range h.slots {
		if h.slots[i].isDemoted() {
			return true
		}
	}
	return false
}

// isDemoted says whether the ticket is none of its limiter.
func (t *heldTicket) isDemoted() bool { return t.demotes && t.ticket == demotedTicket }
