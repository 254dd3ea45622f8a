package call

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// PassedRules is what guards need of the chain that their calls have passed: the rules that learn how a
// call ends or what it cost, and those that get its tickets back. It never changes.
type PassedRules struct {
	Rules []PassedRule // those of the steps, then shadow rules
	asked int32        // so many of them are steps

	finisher  int32 // the first step that learns how calls end, or counts calls by that
	forecasts int32 // the index of the first step that is an optional.Forecaster
	Finishes  bool  // there is such a step
	several   bool  // there are several of them
	Tickets   bool  // steps need their tickets when the call ends, or by Guard.Settle
	Suspends  bool  // a rule has to know that a call waits within the call

	Extras Extras // of guards that need no others
}

// Asked returns how many of the rules are steps.
func (p *PassedRules) Asked() int { return int(p.asked) }

// Forecasts returns the index of the first step that is a [optional.Forecaster].
func (p *PassedRules) Forecasts() int { return int(p.forecasts) }

// PassedRule is a rule that a call has passed, or a shadow rule. The interfaces that its limiter has are
// looked up once, when the chain is made.
type PassedRule struct {
	Limiter   rule.Limiter
	finisher  rule.Finisher // nil if it need not learn how calls end
	settler   rule.Settler  // nil if it counts no tokens
	forecasts bool          // it is an optional.Forecaster, whose tickets are instants
	counts    countedCalls  // that keep the tokens which they took
	demotes   bool          // it demotes calls: what it has left says nothing of which calls pass
}

// countedCalls are which calls take tokens of a rule: a [rule.Counts] in a byte, as each resource with a
// rule has it.
type countedCalls uint8

const (
	countsAll countedCalls = iota
	countsFailures
	countsSuccesses
)

func countedCallsOf(of rule.Counts) countedCalls {
	switch of {
	case rule.CountsFailures:
		return countsFailures
	case rule.CountsSuccesses:
		return countsSuccesses
	}
	return countsAll
}

// includes says whether a call that has ended so is one of them.
func (c countedCalls) includes(exit *rule.Exit) bool {
	switch c {
	case countsFailures:
		return exit.Failed
	case countsSuccesses:
		return !exit.Failed && !exit.Ignored
	}
	return true
}

// add adds the rule of a step, or a shadow rule once all steps were added.
func (p *PassedRules) add(s *Step) {
	limiter := s.Limiter
	of := PassedRule{Limiter: limiter, demotes: s.demotes}
	_, of.forecasts = limiter.(optional.Forecaster)
	of.finisher, _ = limiter.(rule.Finisher)
	of.settler, _ = limiter.(rule.Settler)
	if of.settler != nil {
		of.counts = s.counts
	}
	p.Rules = append(p.Rules, of)
	p.Suspends = p.Suspends || of.suspender() != nil
}

// suspender returns the limiter if it has to know that a call which has passed waits within; else nil.
func (of *PassedRule) suspender() optional.Suspender {
	if of.finisher == nil {
		return nil
	}
	suspends, _ := of.Limiter.(optional.Suspender)
	return suspends
}

// isFinished says whether the rule takes part in the end of a call.
func (of *PassedRule) isFinished() bool { return of.finisher != nil || of.counts != countsAll }

// finish tells the rule how a call ended that has tokens of it.
func (of *PassedRule) finish(t rule.Ticket, tokens int32, exit *rule.Exit) {
	if of.counts != countsAll {
		of.finishCounted(t, tokens, exit)
	} else if of.finisher != nil {
		of.finisher.Done(t, byField(exit))
	}
}

// finishCounted is finish for a rule that counts some calls only, by how they end. The others get their tokens
// back, as of the instant at which they took them.
func (of *PassedRule) finishCounted(t rule.Ticket, tokens int32, exit *rule.Exit) {
	if of.finisher != nil {
		defer of.finisher.Done(t, *exit)
	}
	if !of.counts.includes(exit) && tokens > 0 {
		of.settler.Settle(exit.Now, exit.Start, t, -tokens)
	}
}

// byField copies an exit field by field, as it was just written: to read several fields at once waits until
// all have been written, which takes 5 ns.
func byField(e *rule.Exit) rule.Exit {
	return rule.Exit{Now: e.Now, Start: e.Start, Failed: e.Failed, Ignored: e.Ignored, LongLived: e.LongLived, Waited: e.Waited}
}

// Done tells the rules of the steps how a call ended, the last first. One of them takes part in ends.
func (p *PassedRules) Done(word, rest uint32, exit *rule.Exit) {
	if p.several {
		p.doneFrom(p.Asked()-1, word, rest, exit)
	} else {
		p.done(int(p.finisher), word, rest, exit)
	}
}

// doneFrom is Done for the steps up to the one with an index, also those before one that panics.
func (p *PassedRules) doneFrom(i int, word, rest uint32, exit *rule.Exit) {
	defer func() {
		if i >= int(p.finisher) { // the one with this index has panicked
			p.doneFrom(i-1, word, rest, exit)
		}
	}()
	for ; i >= int(p.finisher); i-- {
		if p.Rules[i].isFinished() {
			p.done(i, word, rest, exit)
		}
	}
}

// done tells the rule of the step with an index. For most it does what TicketIn and finish do, whose calls take
// 2 ns.
func (p *PassedRules) done(i int, word, rest uint32, exit *rule.Exit) {
	of, ticket := &p.Rules[i], ticketIn(word, rest, i)
	if ticket == 0 && of.forecasts {
		ticket = rule.Ticket(exit.Start)
	}
	if of.counts == countsAll {
		of.finisher.Done(ticket, byField(exit))
	} else {
		of.finishCounted(ticket, TokensIn(word, rest), exit)
	}
}

// Carry packs the tickets and the tokens of a call that passes at an instant into a guard. It returns
// false if more than two tickets have to be carried, or if these or the tokens are too large.
func (p *PassedRules) Carry(tickets []rule.Ticket, start clock.Instant, tokens int32) (word, rest uint32, ok bool) {
	first, second := -1, -1
	for i, t := range tickets {
		switch {
		case t == 0 || p.IsStart(i, t, start):
		case first < 0:
			first = i
		case second < 0:
			second = i
		default:
			return 0, 0, false
		}
	}
	switch {
	case first < 0:
		return CarryOne(0, 0, tokens)
	case first > indexMask:
		return 0, 0, false
	case second < 0:
		return CarryOne(first, tickets[first], tokens)
	}
	return carryTwo(first, tickets[first], second, tickets[second], tokens)
}

// IsStart says whether the ticket of a step need not be carried: it is the instant at which the call
// passes.
func (p *PassedRules) IsStart(i int, ticket rule.Ticket, start clock.Instant) bool {
	return ticket == rule.Ticket(start) && p.Rules[i].forecasts
}

// TicketIn is the function of that name for a call that passed at an instant.
func (p *PassedRules) TicketIn(word, rest uint32, index int, start clock.Instant) rule.Ticket {
	if ticket := ticketIn(word, rest, index); ticket != 0 || !p.Rules[index].forecasts {
		return ticket
	}
	return rule.Ticket(start)
}

// GiveBack returns the tickets of the steps from one on and before another, the last first, also
// those behind one that panics.
func (p *PassedRules) GiveBack(from, to int, q *Request, tickets []rule.Ticket) {
	if from >= to {
		return
	}
	if from+1 < to {
		defer p.GiveBack(from, to-1, q, tickets)
	}
	if of := &p.Rules[to-1]; !of.IsDemoted(tickets[to-1]) {
		of.Limiter.GiveBack(q.Now, tickets[to-1], q.Tokens)
	}
}

// IsDemoted says whether the ticket of a rule is none of its limiter.
func (of *PassedRule) IsDemoted(t rule.Ticket) bool { return of.demotes && t == demotedTicket }

// Extras is what guards need beside their four words. Guards of calls that passed the
// same chain share one; a guard that has a record has its own.
type Extras struct {
	Passed     *PassedRules // nil for a call of no rules that has ended
	WouldBlock *Blocked     // with which a shadow rule would have refused the call
	Record     *Record      // that the extras are of; nil for guards without one
	Outer      *Outer       // of a call to which those within it are linked, see Guard.Context; else nil
}
