package core

import (
	"context"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Entry asks to make a call of the named resource. It returns a guard to be
// exited when the call has ended, or the reason why the call must not be made:
//
//   - a [*BlockError], which matches [ErrBlocked], when a rule refuses it;
//   - the error of ctx, when that has ended before, or while the call waited;
//   - [ErrClosed], or an error that matches [ErrInvalid].
//
// Entry waits only where a rule lets calls wait. A call that would have to wait beyond
// the deadline of ctx is refused at once; a delay that a rule injects ends with ctx. A
// call of a resource that no rule is for passes and is counted.
func (e *Engine) Entry(ctx context.Context, resource string, opts ...Option) (Guard, error) {
	return e.enter(ctx, nil, resource, opts)
}

// enter decides on one call. r is the resource if the caller has it, else nil: Entry does not
// look it up so that it is short enough to be inlined, which is 2 ns. The name is passed beside
// it, as names beyond the bound share a resource.
func (e *Engine) enter(ctx context.Context, r *resource, name string, opts []Option) (Guard, error) {
	if ctx != nil {
		if err := ctx.Err(); err != nil {
			return Guard{}, err // nobody wants the call any more: it takes nothing
		}
	}
	tokens, longLived := int32(1), false
	if !areAttributes(opts) {
		var err error
		if tokens, longLived, err = sizeOf(opts); err != nil {
			return Guard{}, err
		}
	}
	if r == nil { // registry.get written out, which is a call less
		if r = e.resources.table.Get(name); r == nil {
			r = e.resources.getOrAdd(name)
		}
	}
	if s := r.plan.Load().prefetching; s != nil {
		s.prefetch(opts)
	}
	now := e.clock.Now()
	generation, plan := e.generation.Load(), r.plan.Load()
	if !plan.isInForce(generation) { // as in planNow, whose call is 1 ns
		if plan = r.planBefore(); plan == nil {
			return Guard{}, ErrClosed
		}
	}
	c := plan.chainFor(opts)
	switch {
	case c.isOneStep:
		return r.enterStep(ctx, name, now, tokens, opts, c)
	case !c.isEmpty || !r.pass(now, tokens):
		return r.enterChain(ctx, name, now, tokens, opts, c)
	}
	record := uint32(0)
	if rec := r.env.recorder.Load(); rec != nil {
		record = r.recordAtOnce(ctx, rec, c, now, tokens, opts, nil)
	}
	if longLived {
		return c.longLivedGuard(r, now, tokens, record), nil
	}
	return newGuard(r, now, &c.extras, 0, remember(record, 0, uint32(tokens))), nil
}

// enterChain decides on a call. First it asks all rules at once. Only if one says Wait or Stale does
// the call get an admission.
func (r *resource) enterChain(
	ctx context.Context, name string, now clock.Instant, tokens int32, opts []Option, c *chain,
) (Guard, error) {
	var q request
	q.init(name, now, tokens)
	if !areAttributes(opts) {
		q.read(ctx, opts)
	}
	if c.injects {
		q.SetNumber(r.drawNumber())
	}
	if c.isFollowed || len(c.steps) > inlineSlots || c.readsToRecord(r) {
		return r.enterLongChain(ctx, &q, opts, c)
	}
	var tickets [inlineSlots]rule.Ticket
	switch said, decision := r.tryPass(&q, opts, c, tickets[:]); decision {
	case rule.Pass:
		if rec := r.env.recorder.Load(); rec != nil {
			q.recordedAt = r.recordAtOnce(ctx, rec, c, q.Now, tokens, opts, nil)
		}
		return c.guard(r, &q, opts, tickets[:len(c.steps)]), nil
	case rule.Block:
		if rec := r.env.recorder.Load(); rec != nil {
			r.recordAtOnce(ctx, rec, c, q.Now, tokens, opts, c.steps[said.which].refusals)
		}
		return Guard{}, r.refuseBy(ctx, &q, opts, c, said, nil)
	}
	return r.admit(ctx, &q, opts)
}

// readsToRecord says whether attributes of calls are read once more, for a recording.
func (c *chain) readsToRecord(r *resource) bool {
	return len(c.recorded) > 0 && r.env.recorder.Load() != nil
}

// enterLongChain is enterChain for a chain of many rules, or of which rules are asked once the
// call has passed, or an observer, or attributes for a recording: if one of them panics, the call gives
// back what it has taken.
func (r *resource) enterLongChain(ctx context.Context, q *request, opts []Option, c *chain) (g Guard, err error) {
	var few [inlineSlots]rule.Ticket
	tickets := few[:]
	if len(c.steps) > len(few) {
		list := r.env.newTicketList(len(c.steps))
		defer r.env.ticketLists.Put(list)
		tickets = *list
	}
	switch said, decision := r.tryPass(q, opts, c, tickets); decision {
	case rule.Pass:
		handed := false
		defer func() {
			if !handed {
				r.node.TakeBack(q.Now, q.Tokens)
				c.giveBack(0, len(c.steps), q, tickets)
			}
		}()
		r.env.reportPass(ctx, q)
		if rec := r.env.recorder.Load(); rec != nil {
			q.recordedAt = r.recordAtOnce(ctx, rec, c, q.Now, q.Tokens, opts, nil)
		}
		g = c.guard(r, q, opts, tickets[:len(c.steps)])
		handed = true
		return
	case rule.Block:
		if rec := r.env.recorder.Load(); rec != nil {
			r.recordAtOnce(ctx, rec, c, q.Now, q.Tokens, opts, c.steps[said.which].refusals)
		}
		return Guard{}, r.refuseBy(ctx, q, opts, c, said, nil)
	}
	return r.admit(ctx, q, opts)
}

// enterStep is enterChain for one rule and nothing else, as most resources have: calls pass
// 3 to 6 ns sooner, and are refused at least 10 ns sooner. The request is set only where it is needed:
// to copy it as soon as it was written costs 4 ns.
func (r *resource) enterStep(
	ctx context.Context, name string, now clock.Instant, tokens int32, opts []Option, c *chain,
) (Guard, error) {
	s := &c.steps[0]
	if s.keyed != nil || !areAttributes(opts) {
		return r.enterStepWith(ctx, name, now, tokens, opts, c)
	}
	switch ticket, decision := s.limiter.Acquire(rule.Call{Now: now, Tokens: tokens}); {
	case decision == rule.Pass && r.pass(now, tokens):
		record := uint32(0)
		if rec := r.env.recorder.Load(); rec != nil {
			record = r.recordAtOnce(ctx, rec, c, now, tokens, opts, nil)
		}
		return c.stepGuard(r, now, tokens, opts, ticket, record), nil
	case decision == rule.Block && ticket != 0 && !s.denies && s.pending == nil:
		if rec := r.env.recorder.Load(); rec != nil {
			r.recordAtOnce(ctx, rec, c, now, tokens, opts, s.refusals)
		}
		return Guard{}, r.refuse(ctx, now, tokens, s.refusals, ticket.RetryTime())
	default:
		var q request
		q.init(name, now, tokens)
		return r.stopAtStep(ctx, &q, opts, c, answer{ticket: ticket, decision: s.allowed(decision)})
	}
}

// enterStepWith is enterStep for a call whose options matter.
func (r *resource) enterStepWith(
	ctx context.Context, name string, now clock.Instant, tokens int32, opts []Option, c *chain,
) (Guard, error) {
	if c.readsToRecord(r) {
		return r.enterChain(ctx, name, now, tokens, opts, c)
	}
	var q request
	call := rule.Call{Now: now, Tokens: tokens}
	if !areAttributes(opts) {
		q.init(name, now, tokens)
		q.read(ctx, opts)
		call = q.Call
	}
	s := &c.steps[0]
	ticket, decision := s.ask(call, &q, opts)
	switch {
	case decision == rule.Pass && r.pass(now, tokens):
		if rec := r.env.recorder.Load(); rec != nil {
			q.recordedAt = r.recordAtOnce(ctx, rec, c, now, tokens, opts, nil)
		}
		if call.LongLived() {
			return c.recordedGuard(r, &q, opts, []rule.Ticket{ticket}), nil
		}
		return c.stepGuard(r, now, tokens, opts, ticket, q.recordedAt), nil
	case decision == rule.Block && ticket != 0 && !s.denies && s.pending == nil:
		if rec := r.env.recorder.Load(); rec != nil {
			r.recordAtOnce(ctx, rec, c, now, tokens, opts, s.refusals)
		}
		return Guard{}, r.refuse(ctx, now, tokens, s.refusals, ticket.RetryTime())
	}
	q.init(name, now, tokens)
	return r.stopAtStep(ctx, &q, opts, c, answer{ticket: ticket, decision: decision})
}

// stopAtStep goes on with a call that has not passed the one step, or has passed it in vain.
func (r *resource) stopAtStep(ctx context.Context, q *request, opts []Option, c *chain, said answer) (Guard, error) {
	s := &c.steps[0]
	switch {
	case said.decision == rule.Pass:
		s.limiter.GiveBack(q.Now, said.ticket, q.Tokens)
	case said.decision == rule.Block && s.mayGetBack(q): // ask again
	case said.decision == rule.Block, said.decision == rule.Wait && !s.waits(q):
		if rec := r.env.recorder.Load(); rec != nil {
			r.recordAtOnce(ctx, rec, c, q.Now, q.Tokens, opts, s.refusals)
		}
		return Guard{}, r.refuseBy(ctx, q, opts, c, said, nil)
	}
	return r.admit(ctx, q, opts)
}

// CallTokens returns how many tokens a call with these options takes; 0 if Entry would refuse it
// for that number.
func CallTokens(opts ...Option) int {
	tokens, _, err := sizeOf(opts)
	if err != nil {
		return 0
	}
	return int(tokens)
}

// tryPass asks all rules of a chain at one instant. On Pass all rules let the call pass, and
// it has been counted. On Block the answer is that of the rule which refuses it, which may be
// Wait of one for which the call does not wait. On any other decision the call may be able to wait, or
// has to try again: that is for an admission. Unless it passes, the call has given back what it took.
func (r *resource) tryPass(q *request, opts []Option, c *chain, tickets []rule.Ticket) (a answer, decision rule.Decision) {
	if c.forecasts == 0 && len(c.steps) > 1 {
		a = c.acquireLast(q, opts, tickets)
	} else {
		a = c.acquire(q, opts, tickets)
	}
	switch a.decision {
	case rule.Pass:
		if r.pass(q.Now, q.Tokens) {
			return a, rule.Pass
		}
		c.giveBack(0, len(c.steps), q, tickets)
		return a, rule.Stale
	case rule.Wait:
		if a, ok := c.refusesLater(a, q); ok {
			return a, rule.Block
		}
		if !c.steps[a.which].waits(q) {
			return a, rule.Block
		}
	}
	return a, a.decision
}
