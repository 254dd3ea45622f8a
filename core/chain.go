package core

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
)

// chain is the rules that one call has to pass, in the order in which they are
// asked: steps, which are rules of other kinds than flow; the flow rules, last, those
// with queues before those with windows; and once the call has passed, shadow rules.
// Flow rules are asked directly rather than through [rule.Limiter]; this is the one
// file that knows of that.
//
// A chain never changes. The zero value lets all calls pass.
type chain struct {
	onlyWindows bool // there is nothing but flow rules that calls cannot wait for

	rates    flow.Chain
	refusals []*refusals // of the flow rules, by their index
	steps    []step
	shadows  []step
	counters []rule.PassCounter // of rules on other resources that count the passes
	tickets  bool               // steps need their tickets when the call ends, or is settled
	injects  bool               // a step or a shadow injects faults: calls get a number
	ends     []end              // of steps that learn how calls end, the last first

	extras guardExtras // of guards that need no others
}

// step is a rule of a chain with what its limiter can do.
type step struct {
	limiter  rule.Limiter
	first    rule.Limiter    // of its versions, see versionedLimiter
	queue    rule.Queue      // nil if calls cannot wait
	finisher rule.Finisher   // nil if it need not learn how calls end
	settler  rule.Settler    // nil if it counts no tokens
	refuser  rule.Refuser    // nil if RetryAfter has to be asked
	late     rule.LateReader // nil if it has to know the attribute to decide
	suspends rule.Suspender  // nil if it need not know that a call waits for a later rule
	keys     []string        // of the attributes that the rule looks at
	parts    *sync.Pool      // of *[rule.MaxKeys]rule.Attribute, if there are several keys
	denies   bool            // what it refuses cannot pass later either
	injects  bool            // it injects faults: waits are delays, also of calls that do not want to wait
	decides  time.Duration   // how long calls that do not want to wait wait for its decision
	refusals *refusals
}

func newStep(entry *plannedEntry) step {
	limiter, reason := entry.limiter.Limiter, entry.rule.Type().Reason()
	s := step{
		limiter: limiter, first: entry.limiter.first, keys: entry.rule.Attributes(),
		denies: reason == rule.Denied, injects: reason == rule.Injected, refusals: entry.state.refusals,
	}
	if len(s.keys) > 1 {
		s.parts = &sync.Pool{New: func() any { return new([rule.MaxKeys]rule.Attribute) }}
	}
	s.queue, _ = limiter.(rule.Queue)
	s.finisher, _ = limiter.(rule.Finisher)
	s.settler, _ = limiter.(rule.Settler)
	s.refuser, _ = limiter.(rule.Refuser)
	s.late, _ = limiter.(rule.LateReader)
	s.suspends, _ = limiter.(rule.Suspender)
	if decider, ok := limiter.(rule.Decider); ok {
		s.decides = decider.DecidesWithin()
	}
	return s
}

// end is a step that learns how calls end.
type end struct {
	finisher rule.Finisher
	step     int // its index
}

// waitOrder says whether calls can wait for a rule.
type waitOrder uint8

const (
	asksFirst   waitOrder = iota // a step, before the flow rules of its phase
	canWait                      // a flow rule with a queue
	decidesLast                  // a flow rule with a window
)

func waitOrderOf(limiter versionedLimiter) waitOrder {
	switch l, isFlow := limiter.Limiter.(*flow.Limiter); {
	case !isFlow:
		return asksFirst
	case l.CanWait():
		return canWait
	}
	return decidesLast
}

// What the way of a call through flow rules is made of.
type (
	rateMember       = flow.Member
	rateReservations = flow.Reservations
	rateAdmission    = flow.Admission
)

// add adds a rule to the chain, a flow rule to its members.
func (c *chain) add(members []rateMember, entry *plannedEntry, wide bool) []rateMember {
	limiter, isFlow := entry.limiter.Limiter.(*flow.Limiter)
	if !isFlow {
		c.steps = append(c.steps, newStep(entry))
		return members
	}
	c.refusals = append(c.refusals, entry.state.refusals)
	return append(members, rateMember{Limiter: limiter, Shared: wide})
}

// finish completes the chain.
func (c *chain) finish(members []rateMember) {
	c.rates = flow.NewChain(members)
	c.onlyWindows = !c.rates.CanWait() && len(c.steps)+len(c.shadows)+len(c.counters) == 0
	for i := range slices.Backward(c.steps) {
		s := &c.steps[i]
		if s.finisher != nil {
			c.ends = append(c.ends, end{s.finisher, i})
		}
		c.tickets = c.tickets || s.finisher != nil || s.settler != nil
	}
	for i := range len(c.steps) + len(c.shadows) {
		c.injects = c.injects || c.slotStep(i).injects
	}
	c.extras.chain = c
}

// acquire asks the steps for a ticket each. If one does not let the call pass it
// returns which, and gives back the tickets of those before.
func (c *chain) acquire(q *request, opts []Option, tickets []rule.Ticket) (which int, decision rule.Decision) {
	passed := 0
	defer func() {
		if passed < len(c.steps) { // also when a limiter panics
			c.giveBack(passed, q, tickets)
		}
	}()
	for passed < len(c.steps) {
		ticket, decision := c.steps[passed].ask(q, opts)
		if decision != rule.Pass {
			return passed, decision
		}
		tickets[passed] = ticket
		passed++
	}
	return 0, rule.Pass
}

// ask asks the limiter for a ticket.
func (s *step) ask(q *request, opts []Option) (rule.Ticket, rule.Decision) {
	if s.late != nil {
		if ticket, decision := s.late.AcquireUnread(q.Call); decision != rule.NeedsAttribute {
			return ticket, s.allowed(decision)
		}
	}
	return s.askRead(q, opts)
}

// askRead asks the limiter for a ticket, with what the rule looks at.
func (s *step) askRead(q *request, opts []Option) (rule.Ticket, rule.Decision) {
	if len(s.keys) > 1 {
		return s.askComposite(q, opts)
	}
	call := q.Call
	if len(s.keys) == 1 && len(opts) > 0 { // without options there are no attributes
		call.Attribute = q.attribute(opts, s.keys[0])
	}
	ticket, decision := s.limiter.Acquire(call)
	return ticket, s.allowed(decision)
}

func (s *step) askComposite(q *request, opts []Option) (ticket rule.Ticket, decision rule.Decision) {
	s.withAttribute(q, opts, func(call rule.Call) { ticket, decision = s.limiter.Acquire(call) })
	return ticket, s.allowed(decision)
}

// waits says whether a call that the step says Wait to waits.
func (s *step) waits(q *request) bool { return !q.noWait || s.injects || s.decides > 0 }

// allowed returns the decision, or Block in place of one that the limiter may not give: one
// that is no queue cannot have the call wait.
func (s *step) allowed(decision rule.Decision) rule.Decision {
	if decision == rule.Wait && s.queue == nil || decision > rule.Stale {
		return rule.Block
	}
	return decision
}

// retryAfter returns how long the limiter has such a call wait.
func (s *step) retryAfter(q *request, opts []Option) (wait time.Duration) {
	if s.late != nil {
		return s.limiter.RetryAfter(q.Call)
	}
	s.withAttribute(q, opts, func(call rule.Call) { wait = s.limiter.RetryAfter(call) })
	return wait
}

// join has the call wait in the queue of the step.
func (s *step) join(q *request, opts []Option, patience rule.Patience) (
	waiter rule.Waiter, ticket rule.Ticket, decision rule.Decision,
) {
	s.withAttribute(q, opts, func(call rule.Call) { waiter, ticket, decision = s.queue.Join(call, patience) })
	return waiter, ticket, decision
}

// withAttribute calls fn with the call and what the rule looks at.
func (s *step) withAttribute(q *request, opts []Option, fn func(rule.Call)) {
	switch len(s.keys) {
	case 0:
		fn(q.Call)
	case 1:
		fn(q.with(q.attribute(opts, s.keys[0])))
	default:
		parts, _ := s.parts.Get().(*[rule.MaxKeys]rule.Attribute)
		for i, key := range s.keys {
			parts[i] = q.attribute(opts, key)
		}
		fn(q.with(rule.Composite(parts, len(s.keys))))
		*parts = [rule.MaxKeys]rule.Attribute{} // keeps nothing of the call alive
		s.parts.Put(parts)
	}
}

// giveBack returns the tickets of the first count steps, the last first.
func (c *chain) giveBack(count int, q *request, tickets []rule.Ticket) {
	for i := count - 1; i >= 0; i-- {
		c.steps[i].limiter.GiveBack(q.Now, tickets[i], q.Tokens)
	}
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

// refuseByWindow refuses a call for the flow rule of an index, in a chain of nothing
// but windows.
func (c *chain) refuseByWindow(which int, now clock.Instant, tokens int32) *BlockError {
	return c.refusals[which].refuse(c.rates.RetryAfter(which, now, tokens, rule.PriorityNormal, 0))
}

// refuseByRate refuses a call for the flow rule of an index. The error tells of the
// longest wait that any of the rules demands which would refuse the call now; of flow
// rules that is the given one.
func (c *chain) refuseByRate(which int, wait time.Duration, q *request, opts []Option, held *heldTickets) *BlockError {
	return c.refusals[which].refuse(c.longest(-1, wait, q, opts, held))
}

// refuseByStep refuses a call for the step of an index. rateWait is the wait that flow
// rules demand.
func (c *chain) refuseByStep(which int, rateWait time.Duration, q *request, opts []Option, held *heldTickets) *BlockError {
	s := &c.steps[which]
	if s.denies {
		return s.refusals.refuse(0)
	}
	wait := max(rateWait, s.retryAfter(q, opts))
	if len(c.steps) == 1 {
		return s.refusals.refuse(wait)
	}
	return s.refusals.refuse(c.longest(which, wait, q, opts, held))
}

// refuseAtOnce refuses a call for its only rule, which gave a ticket with the Block.
func (c *chain) refuseAtOnce(ticket rule.Ticket, q *request, opts []Option) *BlockError {
	if s := &c.steps[0]; s.refuser != nil && !s.denies {
		return s.refusals.refuse(s.refuser.RefusedFor(ticket))
	}
	return c.refuseByStep(0, 0, q, opts, nil)
}

// longest returns the longest of a wait and those that steps demand, other than the one
// of an index and those of which the call holds a ticket.
func (c *chain) longest(but int, wait time.Duration, q *request, opts []Option, held *heldTickets) time.Duration {
	for i := range c.steps {
		s := &c.steps[i]
		if i == but || s.denies || held != nil && held.indexOf(s.first) >= 0 {
			continue
		}
		wait = max(wait, s.retryAfter(q, opts))
	}
	return wait
}

// settle adds tokens to what a call took of every rule that counts them.
func (c *chain) settle(g *Guard, now clock.Instant, tokens int32) {
	queued := g.extras.queued
	if queued == 0 {
		queued = g.start
	}
	c.rates.Settle(now, g.start, queued, tokens)
	if record := g.extras.record; record != nil {
		record.settle(c, now, g.start, tokens)
		return
	}
	word := atomic.LoadUint32(&g.state.word)
	for i := range c.steps {
		if s := &c.steps[i]; s.settler != nil {
			s.settler.Settle(now, g.start, carriedTicket(word, i), tokens)
		}
	}
}

// slotStep returns the rule that a slot of a record is of: steps, then shadows.
func (c *chain) slotStep(i int) *step {
	if i < len(c.steps) {
		return &c.steps[i]
	}
	return &c.shadows[i-len(c.steps)]
}
