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
		if c.extended {
			if len(c.steps) > 0 {
				return r.enterSteps(ctx, name, now, tokens, opts, c)
			}
			return r.enterQueue(ctx, name, now, tokens, opts, c)
		}
		switch which, decision := c.rates.Take(now, tokens); decision {
		case rule.Pass:
			if r.pass(now) {
				return c.guard(r, now, tokens, opts), nil
			}
			c.rates.GiveBack(now, tokens)
		case rule.Block:
			return Guard{}, r.block(now, c.refuseByWindow(which, now, tokens))
		default: // a window has seen another goroutine's later instant, or newer rules
			now = c.rates.LaterThan(e.clock.Now())
		}
		r = r.lookUpAgain(name)
	}
}

// enterQueue decides on a call that can wait for a flow rule. Most such calls need no
// admission, which is for calls that wait: all rules let them pass at once, or one
// refuses them at once.
func (r *resource) enterQueue(
	ctx context.Context, name string, now clock.Instant, tokens int32, opts []Option, c *chain,
) (Guard, error) {
	if !c.rates.HasOneQueue() {
		return r.enterQueues(ctx, name, now, tokens, opts, c)
	}
	noWait := isNoWait(opts)
	ticket, which, decision := c.rates.TryTakeOne(now, tokens, noWait)
	switch decision {
	case rule.Pass:
		if r.pass(now) {
			return c.guard(r, now, tokens, opts), nil
		}
		c.rates.GiveBackAll(now, tokens, ticket, nil)
	case rule.Block:
		wait := c.rates.RetryAfterReservation(which, ticket, now, tokens, r.engine.patience(ctx, noWait))
		return Guard{}, r.block(now, c.refusals[which].refuse(wait))
	}
	return r.admit(ctx, name, now, tokens, opts)
}

// enterQueues is enterQueue for a chain with several queues.
func (r *resource) enterQueues(
	ctx context.Context, name string, now clock.Instant, tokens int32, opts []Option, c *chain,
) (Guard, error) {
	var reserved rateReservations
	ticket, which, decision := c.rates.TryTakeAll(now, tokens, isNoWait(opts), &reserved)
	switch decision {
	case rule.Pass:
		if r.pass(now) {
			return c.guard(r, now, tokens, opts), nil
		}
		c.rates.GiveBackAll(now, tokens, ticket, &reserved)
	case rule.Block:
		wait := c.rates.RetryAfterReservation(which, ticket, now, tokens, r.engine.patience(ctx, isNoWait(opts)))
		return Guard{}, r.block(now, c.refusals[which].refuse(wait))
	}
	return r.admit(ctx, name, now, tokens, opts)
}

// enterSteps decides on a call that rules of other kinds than flow apply to: those are
// asked first. Most such calls need no admission either.
func (r *resource) enterSteps(
	ctx context.Context, name string, now clock.Instant, tokens int32, opts []Option, c *chain,
) (Guard, error) {
	var few [inlineSlots]rule.Ticket
	tickets := few[:]
	if len(c.steps) > len(tickets) {
		tickets = make([]rule.Ticket, len(c.steps))
	}
	tickets = tickets[:len(c.steps)]
	var call rule.Call
	setCall(&call, now, tokens, opts)
	var which int
	var decision rule.Decision
	if s := &c.steps[0]; len(c.steps) == 1 && s.attribute == "" { // most are so, and this is quicker
		tickets[0], decision = s.limiter.Acquire(call)
		decision = s.understood(decision)
	} else {
		which, decision = c.acquire(&call, opts, tickets)
	}
	switch {
	case decision == rule.Block && c.rates.Len() == 0: // as stopAtStep does, but quicker
		return Guard{}, r.block(now, c.refuseByStep(which, 0, &call, opts, nil))
	case decision != rule.Pass:
		return r.stopAtStep(ctx, name, &call, opts, c, which, decision)
	case c.rates.Len() > 0:
		return r.enterRates(ctx, name, &call, opts, c, tickets)
	case r.pass(now):
		return c.guardOf(r, &call, opts, tickets), nil
	}
	c.giveBack(len(tickets), now, tokens, tickets)
	return r.admit(ctx, name, now, tokens, opts)
}

// stopAtStep refuses a call that a step did not let pass, or has it wait.
func (r *resource) stopAtStep(
	ctx context.Context, name string, call *rule.Call, opts []Option, c *chain, which int, decision rule.Decision,
) (Guard, error) {
	if decision == rule.Stale || decision == rule.Wait && !isNoWait(opts) {
		return r.admit(ctx, name, call.Now, call.Tokens, opts)
	}
	rateWait := time.Duration(0)
	if c.rates.Len() > 0 {
		rateWait = c.rates.RetryAfter(-1, call.Now, call.Tokens, r.engine.patience(ctx, isNoWait(opts)))
	}
	return Guard{}, r.block(call.Now, c.refuseByStep(which, rateWait, call, opts, nil))
}

// enterRates goes on with a call that all steps have let pass.
func (r *resource) enterRates(
	ctx context.Context, name string, call *rule.Call, opts []Option, c *chain, tickets []rule.Ticket,
) (Guard, error) {
	var ticket rateTicket
	var which int
	decision := rule.Wait
	switch {
	case !c.rates.CanWait():
		which, decision = c.rates.Take(call.Now, call.Tokens)
	case c.rates.HasOneQueue():
		ticket, which, decision = c.rates.TryTakeOne(call.Now, call.Tokens, isNoWait(opts))
	}
	if decision == rule.Pass {
		if r.pass(call.Now) {
			return c.guardOf(r, call, opts, tickets), nil
		}
		c.rates.GiveBackAll(call.Now, call.Tokens, ticket, nil)
		decision = rule.Stale
	}
	c.giveBack(len(tickets), call.Now, call.Tokens, tickets)
	if decision != rule.Block {
		return r.admit(ctx, name, call.Now, call.Tokens, opts)
	}
	var wait time.Duration
	if patience := r.engine.patience(ctx, isNoWait(opts)); c.rates.CanWait() {
		wait = c.rates.RetryAfterReservation(which, ticket, call.Now, call.Tokens, patience)
	} else {
		wait = c.rates.RetryAfter(which, call.Now, call.Tokens, patience)
	}
	return Guard{}, r.block(call.Now, c.refuseByRate(which, wait, call, opts, nil))
}

// guard returns the guard of a call that has passed at now a chain without steps.
func (c *chain) guard(r *resource, now clock.Instant, tokens int32, opts []Option) Guard {
	if !c.followed {
		return newGuard(r, now, tokens, &c.extras)
	}
	var call rule.Call
	setCall(&call, now, tokens, opts)
	return c.guardOf(r, &call, opts, nil)
}

// guardOf returns the guard of a call that has passed, with the tickets of the steps.
func (c *chain) guardOf(r *resource, call *rule.Call, opts []Option, tickets []rule.Ticket) (g Guard) {
	if c.followed {
		for _, counter := range c.counters {
			counter.CountPass(call.Now, call.Tokens)
		}
	}
	word := uint32(0)
	if c.tickets {
		word = carry(tickets)
	}
	if word == notCarried || len(c.shadows) > 0 {
		return c.recordedGuard(r, call, opts, tickets)
	}
	g = newGuard(r, call.Now, call.Tokens, &c.extras)
	g.state.word = word
	return
}

// recordedGuard returns the guard with a record of the tickets. It asks the shadow rules,
// each as if it were the only one, and notes the first that would have refused the call.
func (c *chain) recordedGuard(r *resource, call *rule.Call, opts []Option, tickets []rule.Ticket) (g Guard) {
	record := r.engine.newRecord(c)
	for i := range c.steps {
		*record.slot(i) = ticketSlot{tickets[i], true}
	}
	for i := range c.shadows {
		s := &c.shadows[i]
		ticket, decision := s.ask(call, opts)
		*record.slot(len(c.steps) + i) = ticketSlot{ticket, decision == rule.Pass}
		if decision == rule.Pass || decision == rule.Stale {
			continue
		}
		// Where the call would have to wait, nobody knows whether it would have passed:
		// it counts as refused, so that the shadow promises no more than the rule keeps.
		if would := s.refusals.wouldRefuse(s.retryAfter(call, opts)); record.refusal.Load() == nil {
			record.refusal.Store(would)
		}
	}
	record.queued = 0
	g = newGuard(r, call.Now, call.Tokens, &record.guardExtras)
	g.state.word = record.generation.Load()<<generationShift | hasRecord
	return
}

// pass counts a call that passes at now. It returns false, and counts nothing, when the
// resource has just been evicted, or when a name beyond the bound has just got a resource
// of its own.
func (r *resource) pass(now clock.Instant) bool {
	r.node.Pass(now)
	if r.evicted.Load() && !r.stillOverflows() {
		r.node.TakeBack(now)
		return false
	}
	return true
}

// block counts and reports a refused call.
func (r *resource) block(now clock.Instant, err *BlockError) error {
	r.node.Block(now)
	r.reportRefusal(now, err)
	return err
}
