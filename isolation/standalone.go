package isolation

import (
	"context"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/standalone"
	"github.com/penstock-go/penstock/rule"
)

// Limiter is the limit of one rule for whoever needs no engine: so many calls at once, and a queue
// for others if the rule says so. It is exact with any number of goroutines. A call that passes at
// once, and one that is refused at once, allocates nothing.
//
// What is refused has an error that matches [rule.ErrRefused].
type Limiter struct {
	tickets standalone.Tickets
}

// Options say how a [Limiter] works. The zero value has all defaults.
type Options struct {
	// Clock is what the limiter keeps time by. Defaults to [clock.System].
	Clock clock.Clock
}

// New returns the limiter of a rule, which needs no name and no resource. It returns all mistakes
// of the rule at once. Fields that say for which calls a rule is need an engine: these are mistakes.
// It takes one value of options at most; of more, the last counts.
func New(r Rule, options ...Options) (*Limiter, error) {
	complete, refused, err := standalone.Check(Kind(), &r, common(&r), standalone.Without("fairBy", r.isFair()),
		standalone.Without("scope", r.Scope == rule.ScopeFleet))
	if err != nil {
		return nil, err
	}
	c := standalone.Clock(standalone.Last(options).Clock)
	return &Limiter{standalone.NewTickets(complete.NewLimiter(standalone.Env(c.Now(), nil)), c, refused)}, nil
}

// Try takes a place if one is free, and never waits.
func (l *Limiter) Try() (Place, error) {
	ticket, start, err := l.tickets.Try(1)
	if err != nil {
		return Place{}, err
	}
	return Place{&l.tickets, ticket, start}, nil
}

// Wait takes a place, and waits for it as long as the rule and ctx let it. The error matches
// [rule.ErrRefused], or is that of ctx.
func (l *Limiter) Wait(ctx context.Context) (Place, error) {
	ticket, start, err := l.tickets.Wait(ctx, 1)
	if err != nil {
		return Place{}, err
	}
	return Place{&l.tickets, ticket, start}, nil
}

// Do runs fn with a place that Wait takes, and frees it, also if fn panics. It returns the error of
// Wait, or that of fn.
func (l *Limiter) Do(ctx context.Context, fn func(context.Context) error) error {
	place, err := l.Wait(ctx)
	if err != nil {
		return err
	}
	defer place.Release()
	return fn(ctx)
}

// Status tells how many calls are under way and how many wait, as gauges; see [Kind].
func (l *Limiter) Status() rule.Status { return l.tickets.Status() }

// Place is the place of one call that is under way. It must not be copied, nor used by several
// goroutines at once.
type Place struct {
	tickets *standalone.Tickets
	ticket  rule.Ticket
	start   clock.Instant
}

// Release frees the place: the call has ended, or is not made after all. Only the first Release
// counts; that of the zero Place does nothing.
func (p *Place) Release() {
	if tickets := p.tickets; tickets != nil {
		p.tickets = nil
		tickets.Done(p.ticket, rule.Exit{Start: p.start})
	}
}
