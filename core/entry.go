package core

import (
	"context"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/inforce"
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
func (e *Engine) enter(ctx context.Context, r *resource, name string, opts []Option) (guard Guard, err error) {
	if ctx != nil {
		if err = ctx.Err(); err != nil {
			return Guard{}, err // nobody wants the call any more: it takes nothing
		}
	}
	if r == nil { // callEnv.get, written out
		if r = (*resource)(e.resources.Table.Get(name)); r == nil {
			r = (*resource)(e.resources.GetOrAdd(name))
		}
	}
	if s := r.Plan.Load().Others.Prefetching(); s != nil {
		s.Prefetch(opts)
	}
	now := e.clock.Now()
	generation, plan := e.generation.Load(), r.Plan.Load()
	if !plan.IsInForce(generation) { // planNow, written out
		if plan = r.planBefore(); plan == nil {
			return Guard{}, ErrClosed
		}
	}
	if !call.AreAttributes(opts) {
		return r.enterWith(ctx, name, now, opts, plan)
	}
	c := plan.ChainFor("")
	if r.mayTakeStep(c) {
		var decided bool
		if guard, decided, err = r.enterStep(ctx, rule.Call{Now: now, Tokens: 1}, c); decided {
			return
		}
	}
	var q call.Request
	q.Init(name, now)
	return r.enterChain(ctx, &q, opts, c)
}

// enterWith is enter for a call with other options than attributes.
func (r *resource) enterWith(ctx context.Context, name string, now clock.Instant, opts []Option, p *inforce.Plan) (guard Guard, err error) {
	var q call.Request
	if err = q.Read(ctx, name, now, opts); err != nil {
		return
	}
	c := p.ChainFor(q.Origin)
	if r.mayTakeStep(c) && !q.LongLived() {
		var decided bool
		if guard, decided, err = r.enterStep(ctx, q.Call, c); decided {
			return
		}
	}
	return r.enterChain(ctx, &q, opts, c)
}

// mayTakeStep says whether calls that are not long-lived are for enterStep.
func (r *resource) mayTakeStep(c *call.Chain) bool {
	return (c.IsOneStep || c.IsEmpty) && r.Env.recorder.Load() == nil
}

// enterStep is enterChain for a call that is not recorded, and for no rule or one that looks at no
// attribute, as most resources have: calls pass 3 to 6 ns sooner, and are refused at least 10 ns sooner. It leaves
// calls undecided that may have to wait, or to ask again.
func (r *resource) enterStep(ctx context.Context, asked rule.Call, c *call.Chain) (guard Guard, decided bool, err error) {
	var ticket rule.Ticket
	if !c.IsEmpty {
		s := &c.Steps[0]
		if s.Keyed != nil {
			return
		}
		var decision rule.Decision
		switch ticket, decision = s.Limiter.Acquire(asked); {
		case decision == rule.Pass:
		case decision == rule.Block && s.Pending == nil && ticket != 0 && !s.Denies:
			return Guard{}, true, r.refuse(ctx, asked.Now, asked.Tokens, s.Refusals, ticket.RetryTime())
		case decision == rule.Block && s.Pending == nil:
			q := call.Request{Call: asked}
			return Guard{}, true, r.refuseAtOnce(ctx, &q, nil, c, call.Answer{Ticket: ticket, Decision: decision})
		default:
			return
		}
	}
	r.Node.Pass(asked.Now, asked.Tokens) // resource.pass, written out
	if r.Evicted.Load() && !r.staysPassed(asked.Now, asked.Tokens) {
		c.GiveBack(0, len(c.Steps), &call.Request{Call: asked}, []rule.Ticket{ticket})
		return
	}
	if !c.Tickets {
		return newGuard(r, asked.Now, &c.Extras, 0, uint32(asked.Tokens)), true, nil
	}
	return r.stepGuard(c, asked, ticket), true, nil
}

// enterChain decides on a call.
func (r *resource) enterChain(ctx context.Context, q *call.Request, opts []Option, c *call.Chain) (Guard, error) {
	if len(c.Steps) > call.InlineSlots {
		return r.enterLongChain(ctx, q, opts, c)
	}
	var tickets [call.InlineSlots]rule.Ticket
	return r.decide(ctx, q, opts, c, tickets[:len(c.Steps)])
}

// enterLongChain is enterChain for a chain of many rules.
func (r *resource) enterLongChain(ctx context.Context, q *call.Request, opts []Option, c *call.Chain) (Guard, error) {
	tickets := r.Env.pools.NewTicketList(len(c.Steps))
	defer r.Env.pools.DropTicketList(tickets)
	return r.decide(ctx, q, opts, c, (*tickets)[:len(c.Steps)])
}

// decide asks all rules of a chain at once. Only if one says Wait or Stale does the call get an admission, for it may be
// able to wait, or has to try again.
func (r *resource) decide(ctx context.Context, q *call.Request, opts []Option, c *call.Chain, tickets []rule.Ticket) (Guard, error) {
	if c.Injects {
		q.SetNumber(r.DrawNumber())
	}
	var said call.Answer
	switch {
	case c.IsOneStep:
		said = c.AcquireOne(q, opts, tickets)
	case c.Forecasts() == 0 && len(c.Steps) > 1:
		said = c.AcquireLast(q, opts, tickets)
	default:
		said = c.Acquire(q, opts, tickets)
	}
	switch said.Decision {
	case rule.Pass:
		if r.pass(q.Now, q.Tokens) {
			return r.passed(ctx, q, opts, c, tickets), nil
		}
		c.GiveBack(0, len(c.Steps), q, tickets)
	case rule.Block:
		return Guard{}, r.refuseAtOnce(ctx, q, opts, c, said)
	case rule.Wait:
		if by, refuses := c.RefusesToWait(said, q); refuses {
			return Guard{}, r.refuseAtOnce(ctx, q, opts, c, by)
		}
	}
	return r.admit(ctx, q, opts)
}

// passed returns the guard of a call that has passed a chain.
func (r *resource) passed(ctx context.Context, q *call.Request, opts []Option, c *call.Chain, tickets []rule.Ticket) Guard {
	if c.IsFollowed || c.HasRecordedKeys() && r.Env.recorder.Load() != nil {
		return r.passFollowed(ctx, q, opts, c, tickets)
	}
	return r.guard(ctx, c, q, opts, tickets)
}

// passFollowed returns the guard of a call that has passed a chain of which rules are asked once it has, or an
// observer, or attributes for a recording: if one of them panics, the call gives back what it has taken.
func (r *resource) passFollowed(ctx context.Context, q *call.Request, opts []Option, c *call.Chain, tickets []rule.Ticket) (g Guard) {
	handed := false
	defer func() {
		if !handed {
			r.Node.TakeBack(q.Now, q.Tokens)
			c.GiveBack(0, len(c.Steps), q, tickets)
		}
	}()
	r.Env.reportPass(ctx, q)
	g = r.guard(ctx, c, q, opts, tickets)
	handed = true
	return
}
