package core

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// enter decides on one call. A name beyond the bound has a resource that it shares with
// others, so the name is passed beside the resource. If r is nil, it is looked up here
// rather than in Entry, which stays short enough to be inlined: 2 ns.
func (e *Engine) enter(ctx context.Context, r *resource, name string, opts []Option) (Guard, error) {
	tokens, err := tokensOf(opts)
	if err != nil {
		return Guard{}, err
	}
	if r == nil {
		r = e.resources.get(name)
	}
	now := e.clock.Now()
	for {
		plan := r.planNow()
		if plan == nil {
			return Guard{}, ErrClosed
		}
		c := plan.chainFor(opts)
		if !c.onlyWindows {
			return r.enterChain(ctx, name, now, tokens, opts, c)
		}
		switch which, decision := c.rates.Take(now, tokens); decision {
		case rule.Pass:
			if r.pass(now, tokens) {
				return newGuard(r, now, tokens, &c.extras), nil
			}
			c.rates.GiveBack(now, tokens)
		case rule.Block:
			return Guard{}, r.block(ctx, now, tokens, c.refuseByWindow(which, now, tokens))
		default: // a window has seen another goroutine's later instant, or newer rules
			now = c.rates.LaterThan(e.clock.Now())
		}
		r = r.lookUpAgain(name)
	}
}

// enterChain decides on a call by rules of whatever kinds. Most calls need no admission,
// which is for calls that wait: all rules let them pass at once, or one refuses them at
// once.
func (r *resource) enterChain(
	ctx context.Context, name string, now clock.Instant, tokens int32, opts []Option, c *chain,
) (Guard, error) {
	var q request
	q.init(ctx, name, now, tokens, opts)
	if c.injects {
		q.SetNumber(r.drawNumber())
	}
	if len(c.steps) == 0 {
		return r.enterRates(ctx, &q, opts, c, nil)
	}
	var few [inlineSlots]rule.Ticket
	tickets := few[:]
	if len(c.steps) > len(tickets) {
		tickets = make([]rule.Ticket, len(c.steps))
	}
	tickets = tickets[:len(c.steps)]
	var which int
	var decision rule.Decision
	switch s := &c.steps[0]; {
	case len(c.steps) > 1:
		which, decision = c.acquire(&q, opts, tickets)
	case len(s.keys) == 0: // most are so, and this is quicker
		tickets[0], decision = s.limiter.Acquire(q.Call)
		decision = s.allowed(decision)
	case s.late != nil: // as ask does, but quicker
		if tickets[0], decision = s.late.AcquireUnread(q.Call); decision == rule.NeedsAttribute {
			tickets[0], decision = s.askRead(&q, opts)
		}
		decision = s.allowed(decision)
	default:
		tickets[0], decision = s.ask(&q, opts)
	}
	if decision == rule.Block && c.rates.Len() == 0 { // as stopAtStep does, but quicker
		if len(c.steps) == 1 {
			return Guard{}, r.block(ctx, q.Now, q.Tokens, c.refuseAtOnce(tickets[0], &q, opts))
		}
		return Guard{}, r.block(ctx, q.Now, q.Tokens, c.refuseByStep(which, 0, &q, opts, nil))
	}
	if decision != rule.Pass {
		return r.stopAtStep(ctx, &q, opts, c, which, decision)
	}
	if c.rates.Len() > 0 {
		return r.enterRates(ctx, &q, opts, c, tickets)
	}
	if r.pass(q.Now, q.Tokens) {
		return c.guard(r, &q, opts, tickets), nil
	}
	c.giveBack(len(tickets), &q, tickets)
	return r.admit(ctx, &q, opts)
}

// stopAtStep refuses a call that a step did not let pass, or has it wait.
func (r *resource) stopAtStep(
	ctx context.Context, q *request, opts []Option, c *chain, which int, decision rule.Decision,
) (Guard, error) {
	if decision == rule.Stale || decision == rule.Wait && c.steps[which].waits(q) {
		return r.admit(ctx, q, opts)
	}
	rateWait := time.Duration(0)
	if c.rates.Len() > 0 {
		rateWait = c.rates.RetryAfter(-1, q.Now, q.Tokens, q.Priority(), r.engine.patience(ctx, q.noWait))
	}
	return Guard{}, r.block(ctx, q.Now, q.Tokens, c.refuseByStep(which, rateWait, q, opts, nil))
}

// enterRates goes on with a call that all steps have let pass.
func (r *resource) enterRates(
	ctx context.Context, q *request, opts []Option, c *chain, tickets []rule.Ticket,
) (Guard, error) {
	var reserved rateReservations
	ticket, which, decision := c.rates.TryTake(q.Now, q.Tokens, q.Priority(), q.noWait, &reserved)
	if decision == rule.Pass {
		if r.pass(q.Now, q.Tokens) {
			return c.guard(r, q, opts, tickets), nil
		}
		c.rates.GiveBackAll(q.Now, q.Tokens, ticket, &reserved)
		decision = rule.Stale
	}
	c.giveBack(len(tickets), q, tickets)
	if decision != rule.Block {
		return r.admit(ctx, q, opts)
	}
	wait := c.rates.RetryAfterReservation(which, ticket, q.Now, q.Tokens, q.Priority(), r.engine.patience(ctx, q.noWait))
	return Guard{}, r.block(ctx, q.Now, q.Tokens, c.refuseByRate(which, wait, q, opts, nil))
}

// guard returns the guard of a call that has passed, with the tickets of the steps.
func (c *chain) guard(r *resource, q *request, opts []Option, tickets []rule.Ticket) (g Guard) {
	for _, counter := range c.counters {
		counter.CountPass(q.Now, q.Tokens)
	}
	word := uint32(0)
	if c.tickets {
		word = carry(tickets)
	}
	if word == notCarried || len(c.shadows) > 0 {
		return c.recordedGuard(r, q, opts, tickets)
	}
	g = newGuard(r, q.Now, q.Tokens, &c.extras)
	g.state.word = word
	return
}

// recordedGuard returns the guard with a record of the tickets. It asks the shadow rules,
// each as if it were the only one, and notes the first that would have refused the call.
func (c *chain) recordedGuard(r *resource, q *request, opts []Option, tickets []rule.Ticket) (g Guard) {
	record := r.engine.newRecord(c)
	for i := range c.steps {
		*record.slot(i) = ticketSlot{tickets[i], true}
	}
	for i := range c.shadows {
		s := &c.shadows[i]
		ticket, decision := s.ask(q, opts)
		*record.slot(len(c.steps) + i) = ticketSlot{ticket, decision == rule.Pass}
		if decision == rule.Pass || decision == rule.Stale {
			continue
		}
		// Where the call would have to wait, nobody knows whether it would have passed:
		// it counts as refused, so that the shadow promises no more than the rule keeps.
		if would := s.refusals.wouldRefuse(s.retryAfter(q, opts)); record.refusal.Load() == nil {
			record.refusal.Store(would)
		}
	}
	record.queued = 0
	g = newGuard(r, q.Now, q.Tokens, &record.guardExtras)
	g.state.word = record.generation.Load()<<generationShift | hasRecord
	return
}

// pass counts a call that passes at now. It returns false, and counts nothing, when the
// resource has just been evicted, or when a name beyond the bound has just got a resource
// of its own.
func (r *resource) pass(now clock.Instant, tokens int32) bool {
	r.node.Pass(now, tokens)
	if r.evicted.Load() && !r.stillOverflows() {
		r.node.TakeBack(now, tokens)
		return false
	}
	return true
}

// block counts and reports a refused call.
func (r *resource) block(ctx context.Context, now clock.Instant, tokens int32, err *BlockError) error {
	r.node.Block(now, tokens)
	if r.evicted.Load() {
		r.engine.resources.countIfForgotten(r, tokens)
	}
	r.reportRefusal(ctx, now, err)
	return err
}
