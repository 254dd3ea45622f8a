package core

import (
	"context"
	"slices"
	"time"

	"github.com/penstock-go/penstock/flow"
)

// heldPlace is the place of a call in one of several queues.
type heldPlace struct {
	rule  *queueRule
	place flow.Place
}

// takeJointTurn is takeTurns for a call that several queues apply to, or did when it
// began to wait: it takes all turns for one instant, or none.
func (v *visit) takeJointTurn(ctx context.Context, s *steps) (ok bool, err error) {
	if v.hasAllTurns(s) {
		return true, nil
	}
	if v.keepPlacesOf(s); len(v.held) == 0 {
		ok, err := v.takeAllTurns(ctx, s)
		if ok {
			v.stopWaiting()
		}
		if ok || err != nil || !v.wait.joins {
			return ok, err
		}
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return v.joinQueues(ctx, s)
}

// hasAllTurns says whether the call has a turn of every queue. If it lacks one, it
// has none: turns count for one instant only.
func (v *visit) hasAllTurns(s *steps) bool {
	has := v.turns.count > 0
	for i := range s.queues {
		has = has && v.hasTurn(&s.queues[i])
	}
	if !has {
		v.turns.giveBack(v.now)
		v.turns.count = 0
	}
	return has
}

// takeAllTurns takes the turns if they can be had now. If they cannot, v.wait.joins
// says whether the call is to join the queues.
func (v *visit) takeAllTurns(ctx context.Context, s *steps) (ok bool, err error) {
	v.wait.joins = false
	var few [len(v.turns.few)]flow.Ticket
	tickets := few[:]
	if len(s.asks) > len(tickets) {
		tickets = make([]flow.Ticket, len(s.asks))
	}
	patience := v.jointPatience(ctx, s)
	full := s.fullWindow(v.now, v.tokens)
	var which int
	var ticket flow.Ticket
	var decision flow.Decision
	if full == nil {
		which, ticket, decision = flow.TakeAll(s.asks, v.now, v.tokens, patience, tickets)
	} else {
		which, ticket, decision = flow.ExpectAll(s.asks, v.now, v.tokens, patience)
	}
	switch decision {
	case flow.Outdated:
		return false, nil
	case flow.Refused:
		a := v.asking(ctx)
		a.patience = patience
		return false, v.block(s.queues[which].refuse(s, ticket, a))
	case flow.Passed:
		if full == nil {
			for i := range s.queues {
				v.turns.add(turn{s.queues[i].queue, tickets[i], s.queues[i].terms, false})
			}
			return true, nil
		}
	}
	if full := s.fullAt(v.now, ticket.Turn(), v.tokens); full != nil {
		return false, v.block(full.refuse(s, v.asking(ctx)))
	}
	v.wait.joins = true
	return false, nil
}

// joinQueues joins the queues in their order, until the call has to wait in one. In
// those before it keeps its place. Once it is the first in all of them it takes the
// turns, if they have come.
func (v *visit) joinQueues(ctx context.Context, s *steps) (ok bool, err error) {
	if !v.wait.begun {
		v.beginWait(s)
	}
	for i := len(v.held); i < len(s.queues); i++ {
		rule := &s.queues[i]
		patience := v.jointPatience(ctx, s)
		place, ticket, decision := rule.queue.Hold(rule.terms, v.now, v.wait.since, v.tokens, patience, v.newWaiter())
		switch decision {
		case flow.Refused:
			a := v.asking(ctx)
			a.patience = patience
			return false, v.block(rule.refuse(s, ticket, a))
		case flow.Outdated:
			return false, nil
		}
		v.held = append(v.held, heldPlace{rule, place})
		if decision == flow.Queued {
			for _, h := range v.held[:i] {
				h.place.Expect(ticket.Turn())
			}
			return false, nil
		}
	}
	places, tickets := make([]flow.Place, len(v.held)), make([]flow.Ticket, len(v.held))
	for i, h := range v.held {
		places[i] = h.place
	}
	if flow.PassAll(s.asks, places, v.wait.freed, v.now, tickets) != flow.Passed {
		return false, nil
	}
	v.held = v.held[:0]
	v.stopWaiting()
	for i := range s.queues {
		v.turns.add(turn{s.queues[i].queue, tickets[i], s.queues[i].terms, true})
	}
	return true, nil
}

// keepPlaces tells whether a call that has places in queues still has to wait, and
// how long at the most before it looks again. A call that is refused by one of them
// has places in none; the place in one whose rule is gone is given up.
func (v *visit) keepPlaces() (after time.Duration, waits bool) {
	for i, h := range v.held {
		left, decision := h.place.Ready(v.now)
		switch decision {
		case flow.Refused:
			v.refusedBy = h.rule
			v.stopWaiting()
			return 0, false
		case flow.Outdated: // what becomes of the others depends on the rules that are there now
			h.place.Leave(v.now)
			v.held = slices.Delete(v.held, i, i+1)
			v.wait.freed = v.now
			return 0, false
		case flow.Queued:
			if !waits || left < after {
				after = left
			}
			waits = true
		}
	}
	return after, waits
}

// keepPlacesOf gives up the places in queues that do not apply any more, and those
// behind one that applies now and did not before.
func (v *visit) keepPlacesOf(s *steps) {
	kept := v.held[:0]
	for _, h := range v.held {
		if s.hasQueue(h.rule.queue) {
			kept = append(kept, h)
		} else {
			h.place.Leave(v.now)
		}
	}
	v.held = kept
	for i := range v.held {
		if v.held[i].rule.queue != s.queues[i].queue {
			v.leavePlaces(i)
			return
		}
		v.held[i].rule = &s.queues[i]
	}
}

// leavePlaces gives up all places but the first so many.
func (v *visit) leavePlaces(keep int) {
	for _, h := range v.held[min(keep, len(v.held)):] {
		h.place.Leave(v.now)
	}
	v.held = v.held[:min(keep, len(v.held))]
}

// jointPatience is how long the call can go on waiting: none of its queues lets it
// wait for longer than the rule's MaxWait altogether.
func (v *visit) jointPatience(ctx context.Context, s *steps) time.Duration {
	patience := v.patience(ctx)
	if v.wait.begun {
		waited := v.now.Sub(v.wait.since)
		return min(patience, s.patience(endless)-waited)
	}
	return s.patience(patience)
}

// patience is how long a call that can wait for so long may wait for its queues.
func (s *steps) patience(patience time.Duration) time.Duration {
	for i := range s.asks {
		patience = min(patience, s.asks[i].Terms.Rule().MaxWait)
	}
	return patience
}
