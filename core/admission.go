package core

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
	"github.com/penstock-go/penstock/core/internal/sleep"
	"github.com/penstock-go/penstock/internal/leap"
	"github.com/penstock-go/penstock/rule"
)

// admission is one call on its way through rules that may make it wait. It never waits
// itself: proceed says when to go on. It records all that the call has taken, so that it
// can be given back.
//
// A call asks the rules of its chain in order (walk), until it passes all of them at one
// instant. Where a rule makes it wait, it gives back what it has taken, except for its
// tickets of queues before that rule, and of rules that demote calls. When it goes on, it asks
// the rules of the chain that is then in force, except for those whose tickets it holds. So no
// call passes by what a window or a circuit breaker said before it waited.
type admission struct {
	call.Request
	resource *resource
	held     call.HeldTickets

	waiter    rule.Waiter // in a queue; nil if it waits in none
	waitsAt   int         // the index of the step, of held.chain, that has this queue
	refusedBy uint64      // the series of the queue that ended its wait; 0 if none did
	refusedAs rule.Ticket // with this ticket
	wait      wait
	passesAt  clock.Instant // when it would pass the queue that it joined last, if that is an optional.Forecaster
	seen      clock.Instant // the latest instant that a step returned with Stale

	passed *call.Chain // nil until it has
	handed bool        // its guard was made: what it has taken is given back by that
}

// wait is the wait of a call, for one rule after the other.
type wait struct {
	node  *leap.Node // where it is counted; nil before the first wait
	since clock.Instant
	wake  func() // limiters call it when the call may go on

	sleeper *sleep.Sleeper // that wake wakes; nil if a core.Arrival has set wake

	within call.Within // the calls that wait with it
}

// admit decides on a call that arrived at q.Now, and waits if rules make it wait.
func (r *resource) admit(ctx context.Context, q *call.Request, opts []Option) (g Guard, err error) {
	ctx = call.OrBackground(ctx)
	var a admission
	a.begin(r, q)
	defer a.end()
	if err = a.run(ctx, opts); err != nil {
		a.recordGivenUp(ctx, opts, err)
		return Guard{}, err
	}
	g = a.hand(ctx, opts)
	return
}

// hand returns the guard of the call, which has passed, and reports it.
func (a *admission) hand(ctx context.Context, opts []Option) (g Guard) {
	a.resource.Env.reportPass(ctx, &a.Request)
	a.RecordedAt = a.record(ctx, opts, a.passed, nil) // before the guard is made: what an option reads may panic
	g = a.guard(opts)
	return
}

// run waits until the call has passed, or returns why it may not, and reports the wait.
func (a *admission) run(ctx context.Context, opts []Option) error {
	err := a.pass(ctx, opts)
	a.reportWait(ctx, err)
	return err
}

// pass is run without the report.
func (a *admission) pass(ctx context.Context, opts []Option) error {
	for {
		env := a.resource.Env
		version := env.sleepers.Version() // before the rules are looked at
		after, err := a.proceed(ctx, opts)
		if err != nil || a.passed != nil {
			return err
		}
		err = env.sleepers.Pause(ctx, a.Now, after, a.wait.sleeper, version)
		a.Now = env.clock.Now()
		if err == nil {
			err = ctx.Err() // it may have ended while the call was woken
		}
		if err != nil {
			return err
		}
	}
}

// reportWait reports the wait of a call to the observer, if it waited.
func (a *admission) reportWait(ctx context.Context, err error) {
	if report := a.resource.Env.observer.Waited; report != nil && a.wait.node != nil {
		report(ctx, Wait{Resource: a.Name, Duration: max(0, a.Now.Sub(a.wait.since)), Err: err})
	}
}

func (a *admission) begin(r *resource, q *call.Request) {
	a.resource, a.Request = r, *q
}

// proceed goes on with the call at a.Now until the call has passed, is refused, or has to
// wait. If it has to wait, call proceed again when the call is woken or, if after is not 0,
// when that time has passed.
func (a *admission) proceed(ctx context.Context, opts []Option) (after time.Duration, err error) {
	for {
		if after, waits := a.stillWaits(); waits {
			return after, nil
		}
		a.held.Resume(a.Now)
		a.resource = a.resource.lookUpAgain(a.Name)
		plan := a.resource.planNow()
		if plan == nil {
			return 0, ErrClosed
		}
		c := plan.ChainFor(a.Origin)
		a.held.Follow(&a.Request, opts, c)
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
				a.held.Keep()
				a.passed = c
				return 0, nil
			}
			a.held.GiveBack(&a.Request, 0)
		case rule.Stale: // a rule has seen a later instant, or is a newer one
			a.held.GiveBack(&a.Request, 0)
			a.Now = max(a.Now, a.seen, a.resource.Env.clock.Now())
		}
	}
}

// walk asks the rules of the chain one after the other. On Pass all of them let the call pass
// now. On Wait the call has joined a queue, and may have got its turn there at once: poll
// it. On Stale walk again. A call that is refused gets an error.
func (a *admission) walk(ctx context.Context, opts []Option, c *call.Chain) (rule.Decision, error) {
	if c.Injects && a.Number() == 0 {
		a.SetNumber(a.resource.DrawNumber())
	}
	said := a.askAll(opts, c)
	for tries := 0; said.Decision == rule.Block && tries < call.MaxTries && c.Steps[said.Which].MayGetBack(&a.Request); tries++ {
		a.held.GiveBack(&a.Request, c.Forecasts())
		runtime.Gosched()
		said = a.askAll(opts, c)
	}
	if said.Decision == rule.Pass {
		return said.Decision, nil
	}
	return a.stopAt(ctx, opts, c, said)
}

// askAll asks the steps whose tickets the call does not hold, until one does not let it pass.
func (a *admission) askAll(opts []Option, c *call.Chain) call.Answer {
	if a.DemotedBy != nil && !a.held.Demotion() {
		a.Promote()
	}
	for i := range c.Steps {
		if a.held.Has(i) {
			continue
		}
		if said := a.held.Ask(i, &a.Request, opts); said.Decision != rule.Pass {
			return said
		}
	}
	return call.Answer{Decision: rule.Pass}
}

// stopAt ends a walk at a step that did not let the call pass: the call joins the queue of
// that step, or is refused, or the walk has to be repeated.
func (a *admission) stopAt(ctx context.Context, opts []Option, c *call.Chain, said call.Answer) (rule.Decision, error) {
	if said.Decision == rule.Wait {
		if later, ok := c.RefusesLater(said, &a.Request); ok {
			said = later
		} else if c.Steps[said.Which].Waits(&a.Request) {
			if err := ctx.Err(); err != nil {
				return said.Decision, err
			}
			if c.Steps[said.Which].Forecaster != nil {
				a.passesAt = clock.Instant(said.Ticket)
			}
			if said = a.join(ctx, opts, c, said.Which); said.Decision == rule.Wait {
				return rule.Wait, nil
			}
		}
	}
	if said.Decision == rule.Stale {
		a.seen = max(a.seen, clock.Instant(said.Ticket))
		return said.Decision, nil
	}
	return rule.Block, a.refuse(ctx, opts, c, said)
}

// join has the call join the queue of a step. With Wait it has to be polled.
func (a *admission) join(ctx context.Context, opts []Option, c *call.Chain, i int) call.Answer {
	s := &c.Steps[i]
	a.held.GiveBackToWait(&a.Request, i)
	waiter, ticket, decision := s.Join(&a.Request, opts, a.patienceOf(ctx, s))
	switch decision {
	case rule.Pass:
		a.held.Add(i, ticket)
		decision = rule.Wait // it has its ticket already, and need not wait
	case rule.Wait:
		a.waiter, a.waitsAt = waiter, i
		a.promise(a.Tokens)
		a.beginWait(ctx)
	}
	return call.Answer{Which: i, Ticket: ticket, Decision: decision}
}

// promise notes that the call, which waits in a queue, will take n tokens of the rules behind it.
func (a *admission) promise(n int32) {
	if c := a.held.Chain; c.Steps[a.waitsAt].Forecaster != nil {
		c.Promise(a.waitsAt, n)
	}
}

// refuse returns the error of a call that a step refuses.
func (a *admission) refuse(ctx context.Context, opts []Option, c *call.Chain, said call.Answer) error {
	a.record(ctx, opts, c, c.Steps[said.Which].Refusals)
	return a.resource.refuseBy(ctx, &a.Request, opts, c, said, &a.held)
}

// refusedWaiting refuses the call if a queue has ended its wait without a ticket, and is
// still one of its rules.
func (a *admission) refusedWaiting(ctx context.Context, opts []Option, c *call.Chain) error {
	if by := a.refusedBy; by != 0 {
		a.refusedBy = 0
		if i := c.IndexOf(by); i >= 0 {
			return a.refuse(ctx, opts, c, call.Answer{Which: i, Ticket: a.refusedAs, Decision: rule.Block})
		}
	}
	return nil
}

// stillWaits polls the queue in which the call waits, and reports whether it has to go on
// waiting: until it is woken or, if after is not 0, for that time.
func (a *admission) stillWaits() (after time.Duration, waits bool) {
	if a.leavesOff() {
		return 0, false
	}
	if a.waiter == nil {
		return 0, false
	}
	ticket, after, decision := a.waiter.Poll(a.Now)
	if decision == rule.Wait {
		return after, true
	}
	a.waiter = nil
	a.promise(-a.Tokens)
	switch decision {
	case rule.Pass:
		a.held.Add(a.waitsAt, ticket)
	case rule.Block:
		a.refusedBy, a.refusedAs = a.held.Chain.Steps[a.waitsAt].Series, ticket
	}
	return 0, false
}

// guard returns the guard of the call, which has passed.
func (a *admission) guard(opts []Option) (g Guard) {
	tickets := make([]rule.Ticket, len(a.passed.Steps))
	for i := range tickets {
		tickets[i] = a.held.Ticket(i)
	}
	g = a.resource.guardOf(a.passed, &a.Request, opts, tickets)
	a.handed = true
	return
}

// end ends the wait. Unless the call has its guard, it gives back all that the call has taken: the
// call was refused, its context ended, or a limiter, the observer or a function of an option panicked
// or ended the goroutine.
func (a *admission) end() {
	if a.wait.node != nil {
		a.wait.node.EndWait(a.wait.since, a.Now)
		a.wait.node = nil
		defer a.wait.within.Resume()
	}
	if a.handed {
		return
	}
	a.CountDemotion()
	if a.passed != nil {
		a.resource.Node.TakeBack(a.Now, a.Tokens)
		a.passed = nil
	}
	defer a.held.LeaveAll(&a.Request) // also if a limiter panics
	if a.waiter != nil {
		waiter := a.waiter
		a.waiter = nil
		a.promise(-a.Tokens)
		waiter.Leave(a.Now)
	}
}

func (a *admission) beginWait(ctx context.Context) {
	a.held.Suspend(a.Now)
	if a.waiter == nil || !a.held.Chain.WaitsWithin(a.waitsAt) || !a.Inbound() { // else it is within no other, as a rule
		a.resource.Env.noteWait(a.Now)
	}
	if a.wait.node == nil {
		a.wait.node, a.wait.since = &a.resource.Node, a.Now
		a.wait.node.BeginWait()
		a.wait.within = call.CallsAround(ctx)
		a.wait.within.Suspend()
	}
}

// waker returns the function that wakes the call, which it makes at first use.
func (a *admission) waker() func() {
	if a.wait.wake == nil {
		a.wait.sleeper = sleep.New()
		a.wait.wake = a.wait.sleeper.Wake
	}
	return a.wait.wake
}

// patienceOf returns since when and how long the call can wait in the queue of a step.
func (a *admission) patienceOf(ctx context.Context, s *call.Step) rule.Patience {
	p := rule.Patience{Since: a.Now, Until: math.MaxInt64, Wake: a.waker()}
	if a.wait.node != nil {
		p.Since = a.wait.since
	}
	if patience := a.resource.Env.patience(ctx, !s.Waits(&a.Request)); patience < endless {
		p.Until = a.Now.Add(patience)
	}
	if within := s.DecidesWithin(); a.NoWait && within > 0 {
		p.Until = min(p.Until, a.Now.Add(within))
	}
	return p
}

// endless is the patience of a call whose context has no deadline.
const endless = time.Duration(math.MaxInt64)

// patience returns how long a call can wait: until the deadline of its context; 0 with
// NoWait.
func (e *callEnv) patience(ctx context.Context, noWait bool) time.Duration {
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

// waitError returns why the wait of a call has to end: the error of its context, or
// ErrClosed; nil if it can go on.
func (e *callEnv) waitError(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.isClosed() {
		return ErrClosed
	}
	return nil
}

// leavesOff ends the wait of a call for what is switched off now. It returns whether it waited for that.
func (a *admission) leavesOff() bool {
	switches := a.resource.Env.resources.Patterns().Switches
	if switches.Len() == 0 {
		return false
	}
	isOff := func(key rule.Key) bool { return switches.Off(key, a.Name) != nil }
	if a.waiter == nil || !isOff(*a.held.Chain.Steps[a.waitsAt].Refusals.Key) {
		return false
	}
	waiter := a.waiter
	a.waiter = nil
	a.promise(-a.Tokens)
	waiter.Leave(a.Now)
	return true
}

// reportPass reports a call that passes to the observer.
func (e *callEnv) reportPass(ctx context.Context, q *call.Request) {
	if e.observer.Passed != nil {
		e.observer.Passed(call.OrBackground(ctx), Pass{Resource: q.Name, Tokens: int(q.Tokens), At: q.Now})
	}
}
