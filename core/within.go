package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/rule"
)

// Context returns a context for what the call does: calls that an engine guards with it, or with
// one derived from it, are made within this call. While one of them waits for a rule, this call is
// not under way for adaptive rules that measure response times: the service does not work for it.
// [Engine.Do] and [Call] hand such a context on, and so do the adapters of servers.
//
// It returns ctx itself where that makes no difference, see [Guard.HasContext]; so it allocates
// only where it does. It must not run at the same time as another method of the guard.
func (g *Guard) Context(ctx context.Context) context.Context {
	if !g.HasContext() {
		return ctx
	}
	return g.link(ctx)
}

// HasContext says whether [Guard.Context] returns a context of its own: if the call has passed a
// rule to which that matters, and calls of the engine have had to wait in the last hour. It is for
// those to whom a context costs something, such as adapters that have to copy the request.
func (g *Guard) HasContext() bool {
	return g != nil && g.extras != nil && g.extras.passed != nil && g.extras.passed.suspends &&
		int64(g.start) < g.resource.env.linksUntil.Load()
}

// link is Context for a guard that has one.
func (g *Guard) link(ctx context.Context) context.Context {
	o := g.extras.outer
	if o != nil {
		return &callContext{orBackground(ctx), o}
	}
	if o = g.newOuterCall(); o == nil {
		return ctx
	}
	o.context = callContext{orBackground(ctx), o}
	return &o.context
}

// linkFor is for how long after a wait calls are linked to those within them. It is long, for
// calls that come in a burst have all begun when the first of those within them waits.
const linkFor = time.Hour

// noteWait notes that calls wait, perhaps within others.
func (e *callEnv) noteWait(now clock.Instant) {
	if until := int64(now.Add(linkFor)); e.linksUntil.Load() < until-int64(linkFor/16) {
		e.linksUntil.Store(until)
	}
}

// outerCall is what a guard has once its call has a context. The limiters are told that the call
// waits when the first call within it does, and that it goes on when none does any more.
type outerCall struct {
	context callContext
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

// linkedCall is an outerCall with the extras of its guard, unless that has a record.
type linkedCall struct {
	outerCall
	extras guardExtras
}

// heldByOuter is the ticket of a limiter that has to know that its call waits.
type heldByOuter struct {
	limiter rule.Suspender
	ticket  rule.Ticket
}

// newOuterCall links the guard to an outerCall; nil if the call has exited.
func (g *Guard) newOuterCall() *outerCall {
	word, record := atomic.LoadUint32(&g.state.word), g.extras.record
	if word&stateMask == exited || record != nil && record.generation.Load() != g.generation() {
		return nil
	}
	made := &linkedCall{outerCall: outerCall{clock: g.resource.env.clock}}
	o := &made.outerCall
	o.held = o.few[:0]
	for i := range g.extras.passed.rules {
		of := &g.extras.passed.rules[i]
		switch {
		case of.suspends == nil || of.finisher == nil:
		case record == nil:
			o.held = append(o.held, heldByOuter{of.suspends, ticketIn(word, g.state.rest, i)})
		case record.slot(i).held:
			o.held = append(o.held, heldByOuter{of.suspends, record.slot(i).ticket})
		}
	}
	if record != nil {
		record.outer = o
		return o
	}
	made.extras = *g.extras
	made.extras.outer = o
	g.extras = &made.extras
	return o
}

// suspend notes that a call within this one begins to wait.
func (o *outerCall) suspend() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting++; o.waiting > 1 || o.ended {
		return
	}
	o.since = o.clock.Now()
	o.suspended = true
	each(o.held, func(h heldByOuter) { h.limiter.Suspend(o.since, h.ticket) })
}

// resume notes that a call within this one has waited.
func (o *outerCall) resume() {
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
func (o *outerCall) goOn(now clock.Instant) {
	o.suspended = false
	o.waited += max(now.Sub(o.since), 0)
	each(o.held, func(h heldByOuter) { h.limiter.Resume(now, h.ticket) })
}

// end notes that the call ends, though calls within it may still wait, and returns for how long
// they have waited.
func (o *outerCall) end(now clock.Instant) time.Duration {
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

// callContext is the context of what a call does.
type callContext struct {
	context.Context
	outer *outerCall
}

// callContextKey is the key of the innermost callContext.
type callContextKey struct{}

func (c *callContext) Value(key any) any {
	if key == (callContextKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// within are the contexts of the calls within which a call is made, from the innermost on.
type within struct{ innermost *callContext }

// callsAround returns those of a call with a context.
func callsAround(ctx context.Context) within {
	c, _ := ctx.Value(callContextKey{}).(*callContext)
	return within{c}
}

// suspend tells all of them that a call within them begins to wait, also those around one whose limiter
// panics.
func (w within) suspend() {
	if w.innermost != nil {
		defer callsAround(w.innermost.Context).suspend()
		w.innermost.outer.suspend()
	}
}

// resume tells all of them that it has waited, likewise.
func (w within) resume() {
	if w.innermost != nil {
		defer callsAround(w.innermost.Context).resume()
		w.innermost.outer.resume()
	}
}
