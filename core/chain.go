package core

import (
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/recorder"
	"github.com/penstock-go/penstock/rule"
)

// chain is the rules that one call has to pass, in the order in which they are asked, as
// steps, and once the call has passed, shadow rules.
//
// A chain never changes, except that it notes that it was used, and what refused last. The zero value
// lets all calls pass.
type chain struct {
	passedRules

	isEmpty     bool         // there are no rules, and no observer of calls
	isOneStep   bool         // there is nothing but one step, which has one key at the most and injects no faults
	isFollowed  bool         // shadow rules, rules with related or an observer are asked once the call has passed
	injects     bool         // a step or a shadow injects faults: calls get a number
	demotes     bool         // a step demotes calls; none from forecasts on does
	pends       bool         // a call may give back what it took of a limit that resources share
	decidesLast bool         // from forecasts on there are several, for none of which calls wait
	refusedLast atomic.Int32 // if decidesLast: the step, counted from 1, that refused last

	steps    []step
	shadows  []step
	counters []rule.PassCounter // of rules on other resources that count the passes
	recorded []*recorder.Key    // attributes of calls that are recorded
	named    *namedOrigin       // nil unless the chain is for one origin
}

// namedOrigin is the one origin that a chain is for.
type namedOrigin struct {
	evidence []*evidence // of the rules for it
	entered  atomic.Bool // a call of it was noted there
}

// noteOrigin takes note of a call of the one origin that the chain is for.
func (c *chain) noteOrigin() {
	c.named.entered.Store(true)
	for _, e := range c.named.evidence {
		if e != nil {
			e.fromOrigin.Store(true)
		}
	}
}

// finish completes the chain, once all rules have been added. observed says that an observer learns of
// the calls that pass: these go the way on which more than the rules is asked, so that the others need
// not look whether there is one.
func (c *chain) finish(observed bool) {
	c.asked, c.forecasts = len(c.steps), len(c.steps)
	c.rules = slices.Grow(c.rules, len(c.steps)+len(c.shadows))
	for i := range c.steps {
		c.add(&c.steps[i])
	}
	for i := range slices.Backward(c.steps) {
		s, of := &c.steps[i], &c.rules[i]
		c.demotes = c.demotes || s.demotes
		if of.isFinished() {
			c.finishes, c.finisher = true, i
		}
		isInstant := of.forecasts && s.queue == nil // its ticket is the instant at which the call passes
		c.tickets = c.tickets || of.isFinished() || of.settler != nil && !isInstant || s.demotes
		if s.forecaster != nil && !c.demotes {
			c.forecasts = i
		}
	}
	for i := range c.shadows {
		c.add(&c.shadows[i])
	}
	c.decidesLast = len(c.steps)-c.forecasts > 1
	for i := c.forecasts; i < len(c.steps); i++ {
		s := &c.steps[i]
		c.decidesLast = c.decidesLast && s.forecaster != nil && s.queue == nil
		s.mayGiveBack = s.pending != nil && i+1 < len(c.steps)
		c.pends = c.pends || s.mayGiveBack
	}
	for i := range len(c.steps) + len(c.shadows) {
		c.injects = c.injects || c.slotStep(i).injects
	}
	c.isFollowed = observed || len(c.shadows)+len(c.counters) > 0
	c.isEmpty = len(c.steps) == 0 && !c.isFollowed
	c.isOneStep = len(c.steps) == 1 && !c.isFollowed && !c.injects && !c.demotes && len(c.steps[0].keys()) <= 1
	c.extras.passed = &c.passedRules
	c.recorded = c.keysToRecord()
}

// refusesLater looks for a rule that would refuse the call, behind one for which it would wait, at the
// instant to which it would have to wait. It returns the answer of that.
func (c *chain) refusesLater(waits answer, q *request) (a answer, ok bool) {
	if c.steps[waits.which].forecaster == nil || waits.ticket == 0 { // nobody knows how long
		return waits, false
	}
	for i := max(waits.which+1, c.forecasts); i < len(c.steps); i++ {
		if c.steps[i].refuses(q, clock.Instant(waits.ticket)) {
			return answer{which: i, decision: rule.Block}, true
		}
	}
	return waits, false
}

// acquire asks the steps for a ticket each. If one does not let the call pass, acquire
// gives back the tickets of the steps before and returns the answer of that step.
func (c *chain) acquire(q *request, opts []Option, tickets []rule.Ticket) (a answer) {
	passed := 0
	defer func() {
		if passed < len(c.steps) { // also when a limiter panics
			c.giveBack(0, passed, q, tickets)
		}
	}()
	for passed < len(c.steps) {
		if passed == c.forecasts && passed+1 < len(c.steps) {
			if a = c.acquireLast(q, opts, tickets); a.decision == rule.Pass {
				passed = len(c.steps)
			}
			return a
		}
		s := &c.steps[passed]
		var ticket rule.Ticket
		var decision rule.Decision
		if s.demotes {
			ticket, decision = c.askDemoting(passed, q, opts, tickets)
		} else {
			ticket, decision = s.ask(q.Call, q, opts)
		}
		for tries := 0; decision == rule.Block && tries < maxTries && s.mayGetBack(q); tries++ {
			runtime.Gosched()
			ticket, decision = s.ask(q.Call, q, opts)
		}
		if decision != rule.Pass {
			return answer{passed, ticket, decision, true}
		}
		tickets[passed] = ticket
		passed++
	}
	return answer{decision: rule.Pass}
}

// acquireLast is acquire for the steps from the first Forecaster on. A call that finds one full asks
// again until it is sure that nothing remained but what another call gives back.
func (c *chain) acquireLast(q *request, opts []Option, tickets []rule.Ticket) (a answer) {
	if last := int(c.refusedLast.Load()); last > 0 && c.steps[last-1].refuses(q, q.Now) {
		return c.firstRefusal(last-1, q)
	}
	for range maxTries {
		a = c.tryLast(q, opts, tickets)
		if a.decision != rule.Block || !c.steps[a.which].mayGetBack(q) {
			break
		}
		runtime.Gosched()
	}
	if c.decidesLast && a.decision == rule.Block {
		c.refusedLast.Store(int32(a.which + 1))
	}
	return a
}

// firstRefusal returns the first step of those that decide at once which refuses the call; another one
// is known to.
func (c *chain) firstRefusal(known int, q *request) answer {
	for i := c.forecasts; i < known; i++ {
		if c.steps[i].refuses(q, q.Now) {
			known = i
		}
	}
	return answer{which: known, decision: rule.Block, isFirst: true}
}

// tryLast asks the steps from the first Forecaster on, one after the other.
func (c *chain) tryLast(q *request, opts []Option, tickets []rule.Ticket) (a answer) {
	passed, begun := c.forecasts, c.forecasts
	defer func() {
		if c.pends {
			defer c.endPending(begun)
		}
		if passed < len(c.steps) { // also when a limiter panics
			c.giveBack(c.forecasts, passed, q, tickets)
		}
	}()
	for ; passed < len(c.steps); passed++ {
		s := &c.steps[passed]
		if s.mayGiveBack {
			s.pending.begin()
		}
		begun = passed + 1
		ticket, decision := s.ask(q.Call, q, opts)
		if decision != rule.Pass {
			return answer{passed, ticket, decision, true}
		}
		tickets[passed] = ticket
	}
	return answer{decision: rule.Pass}
}

// endPending ends what tryLast has begun on the steps before the one with an index: the call has
// nothing of them that it may still give back.
func (c *chain) endPending(before int) {
	for i := c.forecasts; i < before; i++ {
		if s := &c.steps[i]; s.mayGiveBack {
			s.pending.end()
		}
	}
}

// promise notes that a call that waits at a step will take n tokens of the rules behind it, or, if n is
// negative, that it does not wait any longer.
func (c *chain) promise(from int, n int32) {
	for i := max(from+1, c.forecasts); i < len(c.steps); i++ {
		if s := &c.steps[i]; s.promised != nil {
			s.promised.Add(int64(n))
		}
	}
}

// prefetching returns that of the first step with a prefetcher; nil if there is none.
func (c *chain) prefetching() *keyedStep {
	for i := range c.steps {
		if k := c.steps[i].keyed; k != nil && k.prefetcher != nil {
			return k
		}
	}
	return nil
}

// indexOf returns the step of a limiter, by the first of its versions; -1 if there is
// none.
func (c *chain) indexOf(first rule.Limiter) int {
	for i := range c.steps {
		if c.steps[i].first == first {
			return i
		}
	}
	return -1
}

// slotStep returns the step whose ticket is in slot i of a guardRecord: those of the chain
// come first, then its shadow rules.
func (c *chain) slotStep(i int) *step {
	if i < len(c.steps) {
		return &c.steps[i]
	}
	return &c.shadows[i-len(c.steps)]
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
	q.demote(s.refusals.tally)
	return demotedTicket, rule.Pass
}
