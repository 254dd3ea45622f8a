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
	limiter *RuleLimiter
	chain   Chain
	clock   clock.Clock
	refused *rule.RefusedError
}

// LimiterOption changes how a [Limiter] works.
type LimiterOption func(*Limiter)

// WithClock has the limiter keep time by the clock in place of [clock.System].
func WithClock(c clock.Clock) LimiterOption { return func(l *Limiter) { l.clock = c } }

// NewLimiter returns the limiter of a rule, which needs no name and no resource. It returns all
// mistakes of the rule at once. Fields that say for which calls a rule is, a limit of the whole
// fleet, and one that follows a signal, need an engine: these are mistakes.
func NewLimiter(r Rule, options ...LimiterOption) (*Limiter, error) {
	complete, refused, err := standalone.Check(Kind(), &r, common(&r), standalone.Without("scope", r.Scope == ScopeFleet),
		standalone.Without("follow", r.Follow != Follow{}))
	if err != nil {
		return nil, err
	}
	l := &Limiter{refused: refused}
	for _, option := range options {
		option(l)
	}
	l.clock = standalone.Clock(l.clock)
	l.limiter = complete.NewLimiter(standalone.Env(l.clock.Now(), nil)).(*RuleLimiter)
	l.chain = NewChain([]Member{{Limiter: l.limiter}})
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
	_, decision := l.try(tokens)
	return decision == rule.Pass
}

// try takes tokens for a call that does not wait, at the instant that it returns.
func (l *Limiter) try(n int32) (clock.Instant, rule.Decision) {
	for now := l.clock.Now(); ; now = l.chain.LaterThan(l.clock.Now()) {
		_, _, decision := l.chain.TryTake(now, n, rule.PriorityNormal, true, nil)
		if decision != rule.Stale {
			return now, decision
		}
	}
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
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, decision := l.try(tokens); decision == rule.Pass {
		return nil
	}
	if !l.chain.CanWait() {
		return l.refused
	}
	return l.wait(ctx, tokens)
}

// wait is WaitN for a call that does not pass at once.
func (l *Limiter) wait(ctx context.Context, n int32) (err error) {
	now := l.clock.Now()
	woken := standalone.NewWaker()
	a := Admission{Tokens: n, Priority: rule.PriorityNormal}
	passed := false
	defer func() {
		if !passed {
			a.Leave(now)
		}
	}()
	for {
		patience := standalone.Deadline(ctx, l.clock, now).Sub(now)
		if after, waits := a.Poll(now); waits {
			if now, err = woken.Pause(ctx, l.clock, now, after); err != nil {
				return err
			}
			continue
		}
		if _, _, refused := a.Refused(&l.chain, now, patience); refused {
			return l.refused
		}
		_, _, decision := a.Acquire(&l.chain, now, patience)
		if decision == rule.Pass {
			passed = true
			return nil
		}
		if decision == rule.Wait {
			_, _, decision = a.Join(&l.chain, now, patience, woken.Wake)
		}
		switch decision {
		case rule.Block:
			return l.refused
		case rule.Stale:
			now = l.chain.LaterThan(l.clock.Now())
		}
	}
}

// Reserve takes n tokens for a call that is made later: when the Delay of the booking has passed.
// It takes nothing, and the booking is not OK, if the rule would not let such a call wait so long.
func (l *Limiter) Reserve(n int) Booking {
	tokens, ok := tokensOf(n)
	if !ok {
		return Booking{retryAfter: Never}
	}
	now := l.clock.Now()
	b := Booking{limiter: l, now: now, at: now, tokens: tokens}
	var decision rule.Decision
	if queue := l.limiter.queue; queue != nil {
		b.turn, decision = queue.book(l.limiter.compiled, now, tokens)
		b.at = max(now, b.turn.at)
	} else {
		b.now, decision = l.try(tokens)
	}
	if decision != rule.Pass {
		return Booking{retryAfter: l.retryAfter(now, tokens)}
	}
	return b
}

// RetryAfter returns how long it takes until a call of n tokens passes if no other call comes:
// 0 if it would now, [Never] if none ever can.
func (l *Limiter) RetryAfter(n int) time.Duration {
	tokens, ok := tokensOf(n)
	if !ok {
		return Never
	}
	return l.retryAfter(l.clock.Now(), tokens)
}

func (l *Limiter) retryAfter(now clock.Instant, n int32) time.Duration {
	return l.limiter.RetryAfter(rule.Call{Now: now, Tokens: n})
}

// Quota returns the limit, what remains of it now, and when there will be more.
func (l *Limiter) Quota() rule.Quota { return *l.limiter.Status(l.clock.Now()).Quota }

// Booking is tokens that [Limiter.Reserve] has taken for a call that is made later. The zero value
// is not OK.
type Booking struct {
	limiter    *Limiter
	now, at    clock.Instant // when it was made, and from when on the call may be made
	tokens     int32
	turn       Turn // of a queue
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
		l.chain.GiveBack(b.now, b.tokens)
	}
}

// tokensOf returns a number of tokens, and whether a call can have so many.
func tokensOf(n int) (tokens int32, ok bool) {
	if n < 1 || n > math.MaxInt32 {
		return 0, false
	}
	return int32(n), true
}
