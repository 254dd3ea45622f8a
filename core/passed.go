package core

import (
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// passedRules is what guards need of the chain that their calls have passed: the rules that learn how a
// call ends or what it cost, and those that get its tickets back. It never changes.
type passedRules struct {
	rules []passedRule // those of the steps, then shadow rules
	asked int          // so many of them are steps

	finisher  int  // the first step that learns how calls end, or counts calls by that
	forecasts int  // the index of the first step that is a rule.Forecaster
	finishes  bool // there is such a step
	tickets   bool // steps need their tickets when the call ends, or by Guard.Settle
	suspends  bool // a rule has to know that a call waits within the call

	extras guardExtras // of guards that need no others
}

// passedRule is a rule that a call has passed, or a shadow rule. The interfaces that its limiter has are
// looked up once, when the chain is made.
type passedRule struct {
	limiter   rule.Limiter
	finisher  rule.Finisher  // nil if it need not learn how calls end
	settler   rule.Settler   // nil if it counts no tokens
	suspends  rule.Suspender // nil if it need not know that the call waits for another rule
	forecasts bool           // it is a rule.Forecaster, whose tickets are instants
	counts    countedCalls   // that keep the tokens which they took
	demotes   bool           // it demotes calls: what it has left says nothing of which calls pass
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
	return [...]rule.Counts{rule.CountsCalls, rule.CountsFailures, rule.CountsSuccesses}[c].Includes(exit)
}

// add adds the rule of a step, or a shadow rule once all steps were added.
func (p *passedRules) add(s *step) {
	limiter := s.limiter
	of := passedRule{limiter: limiter, demotes: s.demotes}
	_, of.forecasts = limiter.(rule.Forecaster)
	of.finisher, _ = limiter.(rule.Finisher)
	of.settler, _ = limiter.(rule.Settler)
	if of.settler != nil {
		of.counts = s.counts
	}
	of.suspends, _ = limiter.(rule.Suspender)
	p.rules = append(p.rules, of)
	p.suspends = p.suspends || of.suspends != nil && of.finisher != nil
}

// isFinished says whether the rule takes part in the end of a call.
func (of *passedRule) isFinished() bool { return of.finisher != nil || of.counts != countsAll }

// finish tells the rule how a call ended that has tokens of it. If the rule does not count calls that
// end so, these are given back, as of the instant at which the call took them.
func (of *passedRule) finish(t rule.Ticket, tokens int32, exit *rule.Exit) {
	if of.counts != countsAll && !of.counts.includes(exit) && tokens > 0 {
		if of.finisher != nil {
			defer of.finisher.Done(t, *exit)
		}
		of.settler.Settle(exit.Now, exit.Start, t, -tokens)
		return
	}
	if of.finisher != nil {
		of.finisher.Done(t, *exit)
	}
}

// done tells the rules of the steps up to the one with an index how a call ended, the last first, also
// those before one that panics. One of them takes part in ends.
func (p *passedRules) done(i int, word, rest uint32, exit *rule.Exit) {
	for !p.rules[i].isFinished() {
		i--
	}
	if i > p.finisher {
		defer p.done(i-1, word, rest, exit)
	}
	p.rules[i].finish(p.ticketIn(word, rest, i, exit.Start), tokensIn(word, rest), exit)
}

// tokensIn returns what a call is charged with, of a guard that carries its tickets.
func tokensIn(word, rest uint32) int32 {
	if word&whereMask == wide || rest&remembers != 0 {
		return int32(rest & tokenMask)
	}
	return int32(rest)
}

// carry packs the tickets and the tokens of a call that passes at an instant into a guard. It returns
// false if more than one ticket has to be carried, or if that one or the tokens are too large.
func (p *passedRules) carry(tickets []rule.Ticket, start clock.Instant, tokens int32) (word, rest uint32, ok bool) {
	index, ticket := 0, rule.Ticket(0)
	for i, t := range tickets {
		switch {
		case t == 0 || p.isStart(i, t, start):
		case ticket != 0:
			return 0, 0, false
		default:
			index, ticket = i, t
		}
	}
	if index > indexMask {
		return 0, 0, false
	}
	return carryOne(index, ticket, tokens)
}

// isStart says whether the ticket of a step need not be carried: it is the instant at which the call
// passes.
func (p *passedRules) isStart(i int, ticket rule.Ticket, start clock.Instant) bool {
	return ticket == rule.Ticket(start) && p.rules[i].forecasts
}

// carryOne is carry for the ticket of the step with an index.
func carryOne(index int, ticket rule.Ticket, tokens int32) (word, rest uint32, ok bool) {
	word = uint32(ticket)<<ticketShift | uint32(index)<<indexShift
	switch {
	case ticket>>ticketBits == 0:
		return word | carried, uint32(tokens), true
	case ticket>>wideBits == 0 && tokens <= tokenMask:
		return word | wide, uint32(ticket>>ticketBits)<<tokenBits | uint32(tokens), true
	}
	return 0, 0, false
}

// ticketIn returns the ticket of the step with an index, of a guard that carries them.
func ticketIn(word, rest uint32, index int) rule.Ticket {
	if word>>indexShift&indexMask != uint32(index) {
		return 0
	}
	ticket := rule.Ticket(word >> ticketShift)
	if word&whereMask == wide {
		ticket |= rule.Ticket(rest>>tokenBits) << ticketBits
	}
	return ticket
}

// ticketIn is the function of that name for a call that passed at an instant.
func (p *passedRules) ticketIn(word, rest uint32, index int, start clock.Instant) rule.Ticket {
	if ticket := ticketIn(word, rest, index); ticket != 0 || !p.rules[index].forecasts {
		return ticket
	}
	return rule.Ticket(start)
}

// giveBack returns the tickets of the steps from one on and before another, the last first, also
// those behind one that panics.
func (p *passedRules) giveBack(from, to int, q *request, tickets []rule.Ticket) {
	if from >= to {
		return
	}
	if from+1 < to {
		defer p.giveBack(from, to-1, q, tickets)
	}
	if of := &p.rules[to-1]; !of.isDemoted(tickets[to-1]) {
		of.limiter.GiveBack(q.Now, tickets[to-1], q.Tokens)
	}
}

// isDemoted says whether the ticket of a rule is none of its limiter.
func (of *passedRule) isDemoted(t rule.Ticket) bool { return of.demotes && t == demotedTicket }

// guardExtras is what guards need beside their four words. Guards of calls that passed the
// same chain share one; a guard that has a record has its own.
type guardExtras struct {
	passed     *passedRules // nil for a call of no rules that has ended
	wouldBlock *BlockError  // with which a shadow rule would have refused the call
	record     *guardRecord // that the extras are of; nil for guards without one
	outer      *outerCall   // of a call to which those within it are linked, see Guard.Context; else nil
	longLived  bool         // only of guards with a record
	decided    bool         // likewise: the outcome is, whatever is marked later
}
