package core

import (
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
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
	now = g.resource.Env.clock.Now()
}

// cancel is Cancel at an instant.
func (g *Guard) cancel(now clock.Instant) {
	tokens := g.tokens()
	word := atomic.SwapUint32(&g.state.word, call.Exited)
	record, passed := g.extras.Record, g.extras.Passed
	switch {
	case word&call.StateMask == call.Exited:
		return
	case word&call.WhereMask != call.InRecord:
		record = nil
	case !record.Claim(word >> call.GenerationShift):
		return // a copy of the guard has ended
	}
	if record != nil {
		g.recordCancel(now, record.RecordedAt)
	} else {
		g.recordCancel(now, g.recordedAt(word))
	}
	q := call.Request{Call: rule.Call{Now: now, Tokens: tokens}}
	if ended := g.resource.Env.observer.Ended; ended != nil {
		defer ended(End{Resource: g.resource.Name, At: now, Duration: max(0, now.Sub(g.start)), Cancelled: true})
	}
	g.resource.Node.TakeBack(g.start, tokens)
	if passed == nil {
		return
	}
	outer := g.extras.Outer
	if record != nil {
		record.Outer = nil
	}
	if record != nil {
		defer g.dropRecord(record)
		defer record.LeaveShadows(&q, len(passed.Rules)-passed.Asked())
	}
	defer g.cancelSteps(&q, word) // also if a limiter panics
	outer.End(now)
}

// cancelSteps gives back the tickets of the steps.
func (g *Guard) cancelSteps(q *call.Request, word uint32) {
	passed, record, from := g.extras.Passed, g.extras.Record, 0
	if word&call.WhereMask == 0 {
		from = passed.Forecasts() // only their tickets are known
	}
	var few [call.InlineSlots]rule.Ticket
	tickets := few[:]
	if passed.Asked() > len(few) {
		list := g.resource.Env.pools.NewTicketList(passed.Asked())
		defer g.resource.Env.pools.DropTicketList(list)
		tickets = *list
	}
	for i := from; i < passed.Asked(); i++ {
		if word&call.WhereMask == call.InRecord {
			tickets[i] = record.Ticket(i)
		} else {
			tickets[i] = passed.TicketIn(word, g.state.rest, i, g.start)
		}
	}
	passed.GiveBack(from, passed.Asked(), q, tickets)
}
