package core

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/stat"
)

// admission is one call on its way through rules that may make it wait. It never waits
// itself but says what for. All that the call has taken is in here, so that it can be
// given back.
//
// A call walks its chain from the start until it passes all rules at one instant. Where
// a rule has it wait, it gives back what it has, but for its tickets of queues before
// that rule: those places it keeps. When it goes on it walks the chain then in force
// anew, past the queues of which it holds a ticket. So a call never passes by what a
// window or a circuit breaker said before it waited.
type admission struct {
	request
	resource *resource
	held     heldTickets
	rates    rateAdmission

	waiter    rule.Waiter  // in the queue of waitsFor; nil if it waits in none
	waitsFor  *step        // in whose queue that is
	refusedBy rule.Limiter // the queue that ended its wait, by its first version
	wait      wait
	seen      clock.Instant // the latest instant that a step has seen and said Stale for

	passed *chain // nil until it has
}

// wait is how a call waits, whatever for.
type wait struct {
	node  *stat.Node // where it is counted; nil before the first wait
	since clock.Instant
	wake  func()        // called when the call may go on
	woken chan struct{} // receives then, if nobody has set wake
}

// admit decides on a call that arrived at a.Now, and waits if rules demand it.
func (r *resource) admit(ctx context.Context, q *request, opts []Option) (Guard, error) {
	ctx = orBackground(ctx)
	var a admission
	a.begin(r, q)
	defer a.end()
	err := a.run(ctx, opts)
	a.reportWait(ctx, err)
	if err != nil {
		return Guard{}, err
	}
	return a.guard(opts), nil
}

// run waits until the call has passed, or returns why it may not.
func (a *admission) run(ctx context.Context, opts []Option) error {
	for {
		after, err := a.proceed(ctx, opts)
		if err != nil || a.passed != nil {
			return err
		}
		engine := a.resource.engine
		err = engine.pause(ctx, a.Now, after, a.wait.woken)
		a.Now = engine.clock.Now()
		if err != nil {
			return err
		}
	}
}

// reportWait reports the wait of a call to the observer, if it waited.
func (a *admission) reportWait(ctx context.Context, err error) {
	if report := a.resource.engine.observer.Waited; report != nil && a.wait.node != nil {
		report(ctx, Wait{Resource: a.name, Duration: max(0, a.Now.Sub(a.wait.since)), Err: err})
	}
}

func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}

func (a *admission) begin(r *resource, q *request) {
	a.resource, a.request = r, *q
	a.rates = rateAdmission{Tokens: q.Tokens, Priority: q.Priority(), NoWait: q.noWait}
}

// proceed goes on with the call at q.now until it has passed, is refused, or has to
// wait: then it is to be called again when the time it returns has passed, if that is
// not 0, or when the call is woken.
func (a *admission) proceed(ctx context.Context, opts []Option) (after time.Duration, err error) {
	for {
		if after, waits := a.stillWaits(); waits {
			return after, nil
		}
		a.held.resume(a.Now)
		a.resource = a.resource.lookUpAgain(a.name)
		plan := a.resource.planNow()
		if plan == nil {
			return 0, ErrClosed
		}
		c := plan.chainFor(opts)
		if err := a.refusedWaiting(ctx, opts, c); err != nil {
			return 0, err
		}
		decision, err := a.walk(ctx, opts, c)
		if err != nil {
			return 0, err
		}
		switch decision {
		case rule.Pass:
			if a.resource.pass(a.Now, a.Tokens) {
				a.passed = c
				return 0, nil
			}
			a.rates.GiveBack()
			a.held.giveBack(&a.request, c, len(c.steps))
		case rule.Stale: // a rule has seen a later instant, or is a newer one
			a.held.giveBack(&a.request, c, len(c.steps))
			a.Now = c.rates.LaterThan(max(a.Now, a.seen, a.resource.engine.clock.Now()))
		}
	}
}

// walk asks the rules one after the other. Pass: all let the call pass now. Wait: it
// waits, or need not any more; else Stale, or an error.
func (a *admission) walk(ctx context.Context, opts []Option, c *chain) (rule.Decision, error) {
	a.held.keep(&a.request, c)
	if c.injects && a.Number() == 0 {
		a.SetNumber(a.resource.drawNumber())
	}
	for i := range c.steps {
		s := &c.steps[i]
		if a.held.indexOf(s.first) >= 0 {
			continue
		}
		ticket, decision := s.ask(&a.request, opts)
		if decision == rule.Stale {
			a.seen = max(a.seen, clock.Instant(ticket))
		}
		if decision != rule.Pass {
			return a.stopAt(ctx, opts, c, i, decision)
		}
		a.held.add(s, ticket)
	}
	patience := a.patience(ctx)
	which, wait, decision := a.rates.Acquire(&c.rates, a.Now, patience)
	if decision == rule.Wait {
		if err := ctx.Err(); err != nil {
			return decision, err
		}
		a.held.giveBack(&a.request, c, len(c.steps))
		which, wait, decision = a.rates.Join(&c.rates, a.Now, patience, a.waker())
		if decision == rule.Pass {
			return rule.Wait, nil // no more
		}
		if decision == rule.Wait {
			a.beginWait()
		}
	}
	if decision == rule.Block {
		return decision, a.block(ctx, c.refuseByRate(which, wait, &a.request, opts, &a.held))
	}
	return decision, nil
}

// stopAt ends a walk at a step that did not let the call pass.
func (a *admission) stopAt(ctx context.Context, opts []Option, c *chain, i int, decision rule.Decision) (rule.Decision, error) {
	s := &c.steps[i]
	if decision == rule.Wait && s.waits(&a.request) {
		if err := ctx.Err(); err != nil {
			return decision, err
		}
		a.held.giveBack(&a.request, c, i)
		var ticket rule.Ticket
		var waiter rule.Waiter
		waiter, ticket, decision = s.join(&a.request, opts, a.patienceOf(ctx, s))
		switch decision {
		case rule.Pass:
			a.held.add(s, ticket)
			return rule.Wait, nil // no more
		case rule.Wait:
			a.beginWait()
			a.waiter, a.waitsFor = waiter, s
			return rule.Wait, nil
		}
	}
	if decision == rule.Stale {
		return decision, nil
	}
	return rule.Block, a.refuse(ctx, opts, c, i)
}

// refuse refuses the call for a step.
func (a *admission) refuse(ctx context.Context, opts []Option, c *chain, i int) error {
	rateWait := a.rates.RetryAfter(&c.rates, a.Now, a.patience(ctx))
	return a.block(ctx, c.refuseByStep(i, rateWait, &a.request, opts, &a.held))
}

func (a *admission) block(ctx context.Context, err *BlockError) error {
	return a.resource.block(ctx, a.Now, a.Tokens, err)
}

// refusedWaiting refuses the call if a queue has ended its wait and still is one of its
// rules.
func (a *admission) refusedWaiting(ctx context.Context, opts []Option, c *chain) error {
	if by := a.refusedBy; by != nil {
		a.refusedBy = nil
		if i := c.indexOf(by); i >= 0 {
			return a.refuse(ctx, opts, c, i)
		}
	}
	if which, wait, refused := a.rates.Refused(&c.rates, a.Now, a.patience(ctx)); refused {
		return a.block(ctx, c.refuseByRate(which, wait, &a.request, opts, &a.held))
	}
	return nil
}

// stillWaits tells whether the call has to wait, and for how long if only time can end
// that.
func (a *admission) stillWaits() (after time.Duration, waits bool) {
	if a.waiter == nil {
		return a.rates.Poll(a.Now)
	}
	ticket, after, decision := a.waiter.Poll(a.Now)
	switch decision {
	case rule.Wait:
		return after, true
	case rule.Pass:
		a.held.add(a.waitsFor, ticket)
	case rule.Block:
		a.refusedBy = a.waitsFor.first
	}
	a.waiter, a.waitsFor = nil, nil
	return 0, false
}

// guard returns the guard of the call, which has passed.
func (a *admission) guard(opts []Option) (g Guard) {
	c := a.passed
	tickets := make([]rule.Ticket, len(c.steps))
	for i := range c.steps {
		tickets[i] = a.held.list[a.held.indexOf(c.steps[i].first)].ticket
	}
	g = c.guard(a.resource, &a.request, opts, tickets)
	queued := a.rates.Granted(a.Now)
	switch {
	case queued == a.Now:
	case g.extras.record != nil:
		g.extras.queued = queued
	default:
		g.extras = &guardExtras{chain: c, queued: queued}
	}
	return
}

// end ends the wait, and gives back all that the call has taken unless it has passed:
// it was refused, has given up, or a limiter panicked.
func (a *admission) end() {
	if a.wait.node != nil {
		a.wait.node.EndWait(a.wait.since, a.Now)
		a.wait.node = nil
	}
	if a.passed != nil {
		return
	}
	if a.waiter != nil {
		a.waiter.Leave(a.Now)
		a.waiter = nil
	}
	a.rates.Leave(a.Now)
	a.held.resume(a.Now)
	for _, h := range slices.Backward(a.held.list) {
		h.limiter.GiveBack(a.Now, h.ticket, a.Tokens)
	}
	a.held.list = nil
}

func (a *admission) beginWait() {
	a.held.suspend(a.Now)
	if a.wait.node == nil {
		a.wait.node, a.wait.since = &a.resource.node, a.Now
		a.wait.node.BeginWait()
	}
}

// waker returns the function that wakes the call.
func (a *admission) waker() func() {
	if a.wait.wake == nil {
		woken := make(chan struct{}, 1)
		a.wait.woken = woken
		a.wait.wake = func() {
			select {
			case woken <- struct{}{}:
			default: // it has been woken already
			}
		}
	}
	return a.wait.wake
}

// patienceOf returns how the call can wait in the queue of a step.
func (a *admission) patienceOf(ctx context.Context, s *step) rule.Patience {
	p := rule.Patience{Since: a.Now, Until: math.MaxInt64, Wake: a.waker()}
	if a.wait.node != nil {
		p.Since = a.wait.since
	}
	if patience := a.resource.engine.patience(ctx, !s.waits(&a.request)); patience < endless {
		p.Until = a.Now.Add(patience)
	}
	if a.noWait && s.decides > 0 {
		p.Until = min(p.Until, a.Now.Add(s.decides))
	}
	return p
}

func (a *admission) patience(ctx context.Context) time.Duration {
	return a.resource.engine.patience(ctx, a.noWait)
}

// heldTickets are the tickets of steps that a call holds while it goes through the
// chain.
type heldTickets struct{ list []heldTicket }

type heldTicket struct {
	limiter rule.Limiter
	first   rule.Limiter // of its versions
	ticket  rule.Ticket
	isQueue bool

	suspends    rule.Suspender // see step
	isSuspended bool
}

func (h *heldTickets) add(s *step, ticket rule.Ticket) {
	h.list = append(h.list, heldTicket{
		limiter: s.limiter, first: s.first, ticket: ticket, isQueue: s.queue != nil, suspends: s.suspends,
	})
}

// indexOf returns where the ticket of a limiter is, by the first of its versions; -1 if
// there is none.
func (h *heldTickets) indexOf(first rule.Limiter) int {
	return slices.IndexFunc(h.list, func(held heldTicket) bool { return held.first == first })
}

// suspend suspends the tickets of limiters that count what a call uses: it waits.
func (h *heldTickets) suspend(now clock.Instant) {
	for i := range h.list {
		if held := &h.list[i]; held.suspends != nil && !held.isSuspended {
			held.isSuspended = true
			held.suspends.Suspend(now, held.ticket)
		}
	}
}

// resume ends that: the call goes on.
func (h *heldTickets) resume(now clock.Instant) {
	for i := range h.list {
		if held := &h.list[i]; held.isSuspended {
			held.isSuspended = false
			held.suspends.Resume(now, held.ticket)
		}
	}
}

// keep gives back the tickets of limiters that are not of the chain: the rule is gone, or
// has begun anew. A ticket of an earlier version counts for a later one.
func (h *heldTickets) keep(q *request, c *chain) {
	h.giveBackIf(q, func(held *heldTicket) bool { return c.indexOf(held.first) < 0 })
}

// giveBack gives back the tickets of rules that are no queues and of queues that come
// after so many steps of the chain.
func (h *heldTickets) giveBack(q *request, c *chain, before int) {
	h.giveBackIf(q, func(held *heldTicket) bool { return !held.isQueue || c.indexOf(held.first) >= before })
}

// giveBackIf gives back some of the tickets, the last first.
func (h *heldTickets) giveBackIf(q *request, which func(*heldTicket) bool) {
	for i, held := range slices.Backward(h.list) {
		if which(&held) {
			h.list = slices.Delete(h.list, i, i+1)
			held.limiter.GiveBack(q.Now, held.ticket, q.Tokens)
		}
	}
}

// endless is the patience of a call whose context has no deadline.
const endless = time.Duration(math.MaxInt64)

// patience returns how long a call can wait: as long as its context lets it, unless it
// does not want to.
func (e *Engine) patience(ctx context.Context, noWait bool) time.Duration {
	if noWait {
		return 0
	}
	if ctx == nil {
		return endless
	}
	if deadline, ok := ctx.Deadline(); ok {
		return e.clock.Until(deadline)
	}
	return endless
}

// waitError returns why a call need not wait any longer: the error of its context, or
// ErrClosed; nil when it has to.
func (e *Engine) waitError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.isClosed() {
		return ErrClosed
	}
	return nil
}

// pause returns when it is woken, when d has passed since now, unless d is 0, or when
// the context or the engine ends, with their error.
func (e *Engine) pause(ctx context.Context, now clock.Instant, d time.Duration, wake <-chan struct{}) error {
	var over <-chan time.Time
	if d > 0 {
		timer := clock.TimerAt(e.clock, now.Add(d))
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-wake:
		return nil
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.closed:
		return ErrClosed
	}
}
