package call

import (
	"context"
	"sync"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/each"
	"github.com/penstock-go/penstock/internal/optional"
	"github.com/penstock-go/penstock/rule"
)

// Outer is what a guard has once its call has a context. The limiters are told that the call
// waits when the first call within it does, and that it goes on when none does any more.
type Outer struct {
	context Context
	clock   clock.Clock

	mu      sync.Mutex // guards what follows
	held    []heldByOuter
	few     [1]heldByOuter
	waiting int // calls within this one

	suspended bool // the limiters were told so
	since     clock.Instant
	waited    time.Duration // up to since
	ended     bool
}

// linkedCall is an Outer with the extras of its guard, unless that has a record.
type linkedCall struct {
	Outer
	extras Extras
}

// heldByOuter is the ticket of a limiter that has to know that its call waits.
type heldByOuter struct {
	limiter optional.Suspender
	ticket  rule.Ticket
}

// Link returns the first context for what a call does whose guard has these extras, a word and its rest, and the
// extras that the guard has then.
func (x *Extras) Link(ctx context.Context, c clock.Clock, word, rest uint32) (context.Context, *Extras) {
	made, record := &linkedCall{Outer: Outer{clock: c}}, x.Record
	o := &made.Outer
	o.held = o.few[:0]
	for i := range x.Passed.Rules {
		limiter := x.Passed.Rules[i].suspender()
		switch {
		case limiter == nil:
		case record == nil:
			o.held = append(o.held, heldByOuter{limiter, ticketIn(word, rest, i)})
		case record.slot(i).held:
			o.held = append(o.held, heldByOuter{limiter, record.slot(i).ticket})
		}
	}
	if record != nil {
		record.Outer = o
	} else {
		made.extras = *x
		made.extras.Outer = o
		x = &made.extras
	}
	o.context = Context{OrBackground(ctx), o}
	return &o.context, x
}

// Context returns a further context for what the call does.
func (o *Outer) Context(ctx context.Context) context.Context { return &Context{OrBackground(ctx), o} }

// suspend notes that a call within this one begins to wait.
func (o *Outer) suspend() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting++; o.waiting > 1 || o.ended {
		return
	}
	o.since = o.clock.Now()
	o.suspended = true
	each.Of(o.held, func(h heldByOuter) { h.limiter.Suspend(o.since, h.ticket) })
}

// resume notes that a call within this one has waited.
func (o *Outer) resume() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting--; o.waiting > 0 || !o.suspended || o.ended {
		return
	}
	now := o.since
	defer func() { o.goOn(now) }() // also if the clock panics
	now = o.clock.Now()
}

// goOn tells the limiters that the call goes on.
func (o *Outer) goOn(now clock.Instant) {
	o.suspended = false
	o.waited += max(now.Sub(o.since), 0)
	each.Of(o.held, func(h heldByOuter) { h.limiter.Resume(now, h.ticket) })
}

// End notes that the call ends, though calls within it may still wait, and returns for how long
// they have waited.
func (o *Outer) End(now clock.Instant) time.Duration {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	if o.suspended {
		o.goOn(now)
	}
	return o.waited
}

// Context is the context of what a call does.
type Context struct {
	context.Context
	outer *Outer
}

// contextKey is the key of the innermost Context.
type contextKey struct{}

// Value returns the context itself for its own key.
func (c *Context) Value(key any) any {
	if key == (contextKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Within are the contexts of the calls within which a call is made, from the innermost on.
type Within struct{ innermost *Context }

// CallsAround returns those of a call with a context.
func CallsAround(ctx context.Context) Within {
	c, _ := ctx.Value(contextKey{}).(*Context)
	return Within{c}
}

// Suspend tells all of them that a call within them begins to wait, also those around one whose limiter
// panics.
func (w Within) Suspend() {
	if w.innermost != nil {
		defer CallsAround(w.innermost.Context).Suspend()
		w.innermost.outer.suspend()
	}
}

// Resume tells all of them that it has waited, likewise.
func (w Within) Resume() {
	if w.innermost != nil {
		defer CallsAround(w.innermost.Context).Resume()
		w.innermost.outer.resume()
	}
}
