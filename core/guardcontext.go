package core

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core/internal/call"
)

// Context returns a context for what the call does: calls that an engine guards with it, or with
// one derived from it, are made within this call. While one of them waits for a rule, this call is
// not under way for adaptive rules that measure response times: the service does not work for it.
// [Engine.Do] and [Call] hand such a context on, and so do the adapters of servers.
//
// It returns ctx itself where that makes no difference, and so allocates only where it does: if the call has
// passed a rule to which that matters, and calls of the engine have had to wait in the last hour. It must not run
// at the same time as another method of the guard.
func (g *Guard) Context(ctx context.Context) context.Context {
	if !g.hasContext() {
		return ctx
	}
	return g.link(ctx)
}

// hasContext says whether Context returns a context of its own.
func (g *Guard) hasContext() bool {
	return g != nil && g.extras != nil && g.extras.Passed != nil && g.extras.Passed.Suspends &&
		int64(g.start) < g.resource.Env.linksUntil.Load()
}

// link is Context for a guard that has one.
func (g *Guard) link(ctx context.Context) (within context.Context) {
	if outer := g.extras.Outer; outer != nil {
		return outer.Context(ctx)
	}
	word, record := atomic.LoadUint32(&g.state.word), g.extras.Record
	if word&call.StateMask == call.Exited || record != nil && record.Generation.Load() != g.generation() {
		return ctx
	}
	within, g.extras = g.extras.Link(ctx, g.resource.Env.clock, word, g.state.rest)
	return within
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
