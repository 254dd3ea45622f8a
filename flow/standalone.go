package flow

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/internal/standalone"
	"github.com/penstock-go/penstock/rule"
)

// Limiter is the limit of one rule for whoever needs no engine: no resources, no documents, no
// statistics. It counts as the rule does on a resource, exactly, with any number of goroutines. A
// call that passes, and one that is refused, allocates nothing; one that waits does.
//
// What is refused has an error that matches [rule.ErrRefused].
type Limiter struct {
	limiter *ruleLimiter
	tickets standalone.Tickets
	clock   clock.Clock
}

// LimiterOptions say how a [Limiter] works. The zero value has all defaults.
type LimiterOptions struct {
	// Clock is what the limiter keeps time by. Defaults to [clock.System].
	Clock clock.Clock
}

// NewLimiter returns the limiter of a rule, which needs no name and no resource. It returns all
// mistakes of the rule at once. Fields that say for which calls a rule is, a limit of the whole
// fleet, one that follows a signal, and a balance, need an engine: these are mistakes. It takes one value of
// options at most; of more, the last counts.
func NewLimiter(r Rule, options ...LimiterOptions) (*Limiter, error) {
	complete, refused, err := standalone.Check(Kind(), &r, common(&r), standalone.Without("fairBy", r.isFair()), standalone.Without("scope", r.Scope == rule.ScopeFleet),
		standalone.Without("follow", r.Follow != Follow{}), standalone.Without("algorithm", r.Algorithm == Prepaid))
	if err != nil {
		return nil, err
	}
	l := &Limiter{clock: standalone.Clock(standalone.Last(options).Clock)}
	env := standalone.Env(l.clock.Now(), nil)
	env.Until = l.clock.Until
	limiter := complete.NewLimiter(env)
	l.limiter, l.tickets = ruleLimiterOf(limiter), standalone.NewTickets(limiter, l.clock, refused)
	return l, nil
}

// Allow takes a token if a call passes now, and reports whether it does.
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN takes n tokens if a call of so many passes now, and reports whether it does: all of them
// or none. It does not if n is less than 1.
func (l *Limiter) AllowN(n int) bool {
	tokens, ok := tokensOf(n)
	if !ok {
		return false
	}
	_, _, err := l.tickets.Try(tokens)
	return err == nil
}

// Wait takes a token, and waits for it as long as the rule lets calls wait: MaxWait of a throttle
// or a token bucket. It returns at once if that is too short, or the deadline of ctx is too near.
// The error matches [rule.ErrRefused], or is that of ctx.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN is Wait for n tokens, from 1 to 2³¹−1: all of them or none.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	tokens, ok := tokensOf(n)
	if !ok {
		return fmt.Errorf("flow: WaitN of %d tokens: must be from 1 to %d", n, math.MaxInt32)
	}
	_, _, err := l.tickets.Wait(ctx, tokens)
	return err
}

// Reserve takes n tokens for a call that is made later: when the Delay of the booking has passed.
// It takes nothing, and the booking is not OK, if the rule would not let such a call wait so long.
func (l *Limiter) Reserve(n int) Booking {
	tokens, ok := tokensOf(n)
	if !ok {
		return Booking{retryAfter: rule.Never}
	}
	queue := l.limiter.queue
	if queue == nil {
		ticket, now, err := l.tickets.Try(tokens)
		if err != nil {
			return Booking{retryAfter: l.tickets.RetryAfter(tokens)}
		}
		return Booking{limiter: l, at: now, turn: turn{undoAt: clock.Instant(ticket), tokens: tokens}}
	}
	now := l.clock.Now()
	turn, decision := queue.book(l.limiter.compiled, now, tokens)
	if decision != rule.Pass {
		return Booking{retryAfter: l.tickets.RetryAfter(tokens)}
	}
	return Booking{limiter: l, at: max(now, turn.at), turn: turn}
}

// RetryAfter returns how long it takes until a call of n tokens passes if no other call comes:
// 0 if it would now, [rule.Never] if none ever can.
func (l *Limiter) RetryAfter(n int) time.Duration {
	tokens, ok := tokensOf(n)
	if !ok {
		return rule.Never
	}
	return l.tickets.RetryAfter(tokens)
}

// Quota returns the limit, what remains of it now, and when there will be more.
func (l *Limiter) Quota() rule.Quota { return *l.limiter.Status(l.clock.Now()).Quota }

// Booking is tokens that [Limiter.Reserve] has taken for a call that is made later. The zero value
// is not OK.
type Booking struct {
	limiter    *Limiter
	at         clock.Instant // from when on the call may be made
	turn       turn
	retryAfter time.Duration
}

// OK reports whether the tokens were taken.
func (b *Booking) OK() bool { return b.limiter != nil }

// Delay returns how long the call has to wait from now on before it may be made; 0 if it may be
// made now. If the booking is not OK it returns how long it takes until such a call passes.
func (b *Booking) Delay() time.Duration {
	if b.limiter == nil {
		return b.retryAfter
	}
	return max(0, b.at.Sub(b.limiter.clock.Now()))
}

// Cancel gives the tokens back, for a call that is not made after all. What a throttle has granted
// can go to another call only as long as nothing later was granted. Only the first Cancel counts.
func (b *Booking) Cancel() {
	l := b.limiter
	if l == nil {
		return
	}
	b.limiter = nil
	if queue := l.limiter.queue; queue != nil {
		queue.GiveBack(l.clock.Now(), b.turn)
	} else {
		l.tickets.GiveBack(rule.Ticket(b.turn.undoAt), b.turn.tokens)
	}
}

// tokensOf returns a number of tokens, and whether a call can have so many.
func tokensOf(n int) (tokens int32, ok bool) {
	if n < 1 || n > math.MaxInt32 {
		return 0, false
	}
	return int32(n), true
}
