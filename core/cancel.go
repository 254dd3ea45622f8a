package core

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Cancel ends a call that is not made after all, in place of Exit: what its rules counted is given
// back as of the instant at which the call passed, its places are free, no breaker hears of it, and
// the statistics of the resource do not have it. So a caller can take what a call needs now, and
// decide later whether to make it.
//
// A throttle gives its place back as long as it has granted no later one. Rules that relate the
// resource to others stay with what they counted; so does a kind of rule of the program that neither
// learns how calls end nor counts tokens. A call whose cost was settled has been made: end it by
// Exit. Only the first Exit or Cancel counts. It must not run at the same time as Exit.
func (g *Guard) Cancel() {
	if g == nil || g.resource == nil {
		return
	}
	now := g.start
	defer func() { g.cancel(now) }() // also if the clock panics
	now = g.resource.env.clock.Now()
}

// cancel is Cancel at an instant.
func (g *Guard) cancel(now clock.Instant) {
	tokens := g.tokens()
	word := atomic.SwapUint32(&g.state.word, exited)
	record, passed := g.extras.record, g.extras.passed
	switch {
	case word&stateMask == exited:
		return
	case word&whereMask != recorded:
		record = nil
	case !record.claim(word >> generationShift):
		return // a copy of the guard has ended
	}
	if record != nil {
		g.recordCancel(now, record.recordedAt)
	} else {
		g.recordCancel(now, g.recordedAt(word))
	}
	q := request{Call: rule.Call{Now: now, Tokens: tokens}}
	if ended := g.resource.env.observer.Ended; ended != nil {
		defer ended(End{Resource: g.resource.Name, At: now, Duration: max(0, now.Sub(g.start)), Cancelled: true})
	}
	g.resource.node.TakeBack(g.start, tokens)
	if passed == nil {
		return
	}
	outer := g.extras.outer
	if record != nil {
		record.outer = nil
	}
	if record != nil {
		defer g.dropRecord(record)
		defer record.leaveShadows(&q, len(passed.rules)-passed.asked)
	}
	defer g.cancelSteps(&q, word) // also if a limiter panics
	outer.end(now)
}

// cancelSteps gives back the tickets of the steps.
func (g *Guard) cancelSteps(q *request, word uint32) {
	passed, record, from := g.extras.passed, g.extras.record, 0
	if word&whereMask == 0 {
		from = passed.forecasts // only their tickets are known
	}
	var few [inlineSlots]rule.Ticket
	tickets := few[:]
	if passed.asked > len(few) {
		list := g.resource.env.newTicketList(passed.asked)
		defer g.resource.env.ticketLists.Put(list)
		tickets = *list
	}
	for i := from; i < passed.asked; i++ {
		if word&whereMask == recorded {
			tickets[i] = record.slot(i).ticket
		} else {
			tickets[i] = passed.ticketIn(word, g.state.rest, i, g.start)
		}
	}
	passed.giveBack(from, passed.asked, q, tickets)
}
