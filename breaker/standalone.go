package breaker

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/standalone"
	"github.com/penstock-go/penstock/rule"
)

// Breaker is the circuit breaker of one rule for whoever needs no engine. It is safe for concurrent
// use. A call that passes, and one that is refused, allocates nothing.
//
// What is refused has an error that matches [rule.ErrRefused].
type Breaker struct {
	tickets   standalone.Tickets
	limiter   *limiter
	clock     clock.Clock
	isFailure func(error) bool
}

// Options say how a [Breaker] works. The zero value has all defaults.
type Options struct {
	// IsFailure says which errors are failures. Defaults to all but [context.Canceled] and refusals.
	IsFailure func(error) bool

	// OnChange gets each change of the state, in the order in which they happen. It is called by the
	// goroutine whose call made the change, without a lock of the breaker.
	OnChange func(from, to string)

	// Clock is what the breaker keeps time by. Defaults to [clock.System].
	Clock clock.Clock
}

// New returns the breaker of a rule, which needs no name and no resource. It returns all mistakes of
// the rule at once. Fields that say for which calls a rule is need an engine: these are mistakes.
// It takes one value of options at most; of more, the last counts.
func New(r Rule, options ...Options) (*Breaker, error) {
	complete, refused, err := standalone.Check(Kind(), &r, common(&r))
	if err != nil {
		return nil, err
	}
	of := standalone.Last(options)
	b := &Breaker{isFailure: of.IsFailure, clock: standalone.Clock(of.Clock)}
	if b.isFailure == nil {
		b.isFailure = isFailure
	}
	env := standalone.Env(b.clock.Now(), of.OnChange)
	b.limiter = complete.NewLimiter(env).(*limiter)
	b.tickets = standalone.NewTickets(b.limiter, b.clock, refused)
	return b, nil
}

func isFailure(err error) bool {
	return !errors.Is(err, context.Canceled) && !errors.Is(err, rule.ErrRefused)
}

// Allow reports whether a call may be made: an error if the breaker is open. The end of the call has
// to be told, by Done or Cancel.
func (b *Breaker) Allow() (Call, error) {
	ticket, start, err := b.tickets.Try(1)
	if err != nil {
		return Call{}, err
	}
	return Call{b, ticket, start}, nil
}

// Do runs fn if a call may be made, and counts how it ends. A panic of fn is a failure, and is
// passed on. It returns the error of Allow, or that of fn.
func (b *Breaker) Do(fn func() error) error {
	call, err := b.Allow()
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		if !returned {
			call.done(rule.Exit{Failed: true})
		}
	}()
	err = fn()
	returned = true
	call.Done(err)
	return err
}

// State returns [Closed], [Open] or [HalfOpen].
func (b *Breaker) State() string { return b.tickets.Status().State }

// RetryAfter returns how long an open breaker stays open, and 0 if it is not open.
func (b *Breaker) RetryAfter() time.Duration { return b.tickets.RetryAfter(1) }

// Control forces a state, [Closed] or [Open], until another one, or "" to release it. It returns an
// error if there is no such state.
func (b *Breaker) Control(state string) error {
	if err := standalone.CheckControl(Kind(), state); err != nil {
		return err
	}
	b.limiter.Control(b.clock.Now(), state)
	return nil
}

// Call is one call that a [Breaker] has let pass. It must not be copied, nor used by several
// goroutines at once.
type Call struct {
	breaker *Breaker
	ticket  rule.Ticket
	start   clock.Instant
}

// Done says that the call has ended, with an error or nil. Only the first Done or Cancel counts.
func (c *Call) Done(err error) {
	if c.breaker == nil {
		return
	}
	failed := err != nil && c.breaker.isFailure(err)
	c.done(rule.Exit{Failed: failed, Ignored: err != nil && !failed})
}

func (c *Call) done(exit rule.Exit) {
	if b := c.breaker; b != nil {
		c.breaker, exit.Start = nil, c.start
		b.tickets.Done(c.ticket, exit)
	}
}

// Cancel says that the call is not made after all: it is not counted, and the place of a probe is
// free for another one.
func (c *Call) Cancel() {
	if b := c.breaker; b != nil {
		c.breaker = nil
		b.tickets.GiveBack(c.ticket, 1)
	}
}
