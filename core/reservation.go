package core

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
)

// Reservation is what [Engine.Reserve] has taken for a call that is made later. End each by Begin or by
// Cancel: it holds its tokens and places until then, or until its context ends. It is safe for concurrent
// use.
type Reservation struct {
	clock  clock.Clock
	at     clock.Instant   // when the call passes, as far as is known
	ctx    context.Context // of the call
	cancel context.CancelFunc
	forget func() bool // stops the AfterFunc of the context
	over   atomic.Bool // it was begun or cancelled

	decided chan struct{} // closed once what follows is set
	guard   Guard
	err     error
}

// Reserve takes now what a call of the resource needs, and returns at once where [Engine.Entry] would
// wait: the call has its place in the queue of the rule, and passes when its turn comes, whatever its
// caller does meanwhile. From then on it is under way. Without such a rule it passes now. The error is
// that of Entry, and ctx that of the call: its deadline bounds the wait, its end ends it, and cancels a
// reservation that was not begun.
//
// A reservation that waits has a goroutine as long as it does.
func (e *Engine) Reserve(ctx context.Context, resource string, opts ...Option) (*Reservation, error) {
	ctx = call.OrBackground(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	opts = slices.Clone(opts)
	var q call.Request
	if err := q.Read(ctx, resource, e.clock.Now(), opts); err != nil {
		return nil, err
	}
	a := new(admission)
	a.begin(e.get(resource), &q)
	r := &Reservation{clock: e.clock, ctx: ctx, decided: make(chan struct{})}
	ctx, r.cancel = context.WithCancel(ctx)
	taken := false
	defer func() {
		if !taken {
			r.cancel()
		}
	}()
	if !r.take(ctx, a, opts) {
		go r.await(ctx, a, opts)
	} else if r.err != nil {
		return nil, r.err
	}
	taken = true
	r.forget = context.AfterFunc(r.ctx, func() { // nobody wants it any more
		if !r.over.Swap(true) {
			r.giveBack()
		}
	})
	return r, nil
}

// take decides on the call, unless it has to wait: then it returns false.
func (r *Reservation) take(ctx context.Context, a *admission, opts []Option) (decided bool) {
	decided = true // unless all that is asked returns
	defer func() {
		if decided {
			a.end()
		}
	}()
	after, err := a.proceed(ctx, opts)
	r.at, r.err = max(a.Now.Add(after), a.passesAt), err
	if decided = err != nil || a.passed != nil; !decided {
		return
	}
	if err == nil {
		r.at, r.guard = a.Now, a.hand(ctx, opts)
	}
	close(r.decided)
	return
}

// await waits until the call is decided. What an option reads may panic, or end the goroutine, which then
// is the error.
func (r *Reservation) await(ctx context.Context, a *admission, opts []Option) {
	defer close(r.decided)
	defer func() {
		if value := recover(); value != nil {
			r.err = fmt.Errorf("%w: %v", errUndecided, value)
		}
	}()
	defer a.end()
	r.err = errUndecided // unless all that is asked returns
	a.Now = r.clock.Now()
	err := a.run(ctx, opts)
	if err != nil {
		a.recordGivenUp(ctx, opts, err)
	} else {
		r.guard = a.hand(ctx, opts)
	}
	r.err = err
}

// Delay returns how long it takes from now on until the call passes and may be made: 0 if it may be made
// now, or if that depends on when other calls end, as with an isolation rule.
func (r *Reservation) Delay() time.Duration { return max(0, r.at.Sub(r.clock.Now())) }

// Begin returns the guard of the call, which is to be exited when the call has ended. If the delay is not
// over, Begin waits for it. As with [Engine.Entry], a call that waits may be refused after all, by a
// circuit breaker that has opened meanwhile, say. If the context of the call has ended, the error is that
// of the context. Once the reservation is over, as Begin or Cancel was called, the error is [ErrInvalid].
func (r *Reservation) Begin() (*Guard, error) {
	err := r.ctx.Err()
	switch {
	case !r.over.Swap(true):
	case err != nil:
		return new(Guard), err
	default:
		return new(Guard), ErrInvalid
	}
	if err != nil { // nobody wants the call any more
		r.giveBack()
		return new(Guard), err
	}
	r.forget()
	<-r.decided
	r.cancel()
	return &r.guard, r.err
}

// Cancel gives back what was taken, for a call that is not made after all, see [Guard.Cancel]. It does
// nothing once the reservation is over.
func (r *Reservation) Cancel() {
	if r.over.Swap(true) {
		return
	}
	r.forget()
	r.giveBack()
}

// giveBack gives back what was taken.
func (r *Reservation) giveBack() {
	r.cancel()
	<-r.decided
	r.guard.Cancel()
}
