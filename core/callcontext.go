package core

import (
	"context"
	"sync"

	"github.com/penstock-go/penstock/core/internal/call"
)

// CallContext is the context of what a guarded call does: [GuardFrom], [Settle] and
// [MarkIgnored] find the guard in it, and in contexts derived from it. It is for adapters of
// servers: [CallContexts] makes it, or an adapter has it as a part of what it allocates for a call
// anyway, and calls Begin.
type CallContext struct {
	context.Context

	mu    sync.Mutex // guards what follows
	ended bool
	guard Guard
}

// callGuardKey is the key of the innermost CallContext.
type callGuardKey struct{}

// Begin makes it the context of a call that has passed, within ctx. It takes the guard over: from
// now on it is that of [CallContext.Guard], and the other one must not be used any more.
func (c *CallContext) Begin(ctx context.Context, guard *Guard) {
	c.Context = call.OrBackground(guard.Context(ctx))
	guard.moveTo(&c.guard)
}

// moveTo moves the guard to another place.
func (g *Guard) moveTo(to *Guard) {
	to.resource, to.start, to.extras = g.resource, g.start, g.extras
	to.state.word, to.state.rest = g.state.word, g.state.rest
}

// Value returns the CallContext itself for its own key.
func (c *CallContext) Value(key any) any {
	if key == (callGuardKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Guard returns the guard of the call, for the adapter. Code that runs at the same time may use the
// context until [CallContext.End]: only With may use the guard before that.
func (c *CallContext) Guard() *Guard { return &c.guard }

// End says that the call is about to end. From now on nobody finds the guard by the context, and
// the adapter may use it without With. It does not exit the guard.
func (c *CallContext) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// With runs f with the guard, while nobody else uses it by the context. It returns false, and does
// not run f, if the call has ended.
func (c *CallContext) With(f func(*Guard)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		f(&c.guard)
	}
	return !c.ended
}

// callOf returns the innermost call of a context that has not ended, locked; nil if there is none.
func callOf(ctx context.Context) *CallContext {
	for ctx != nil {
		c, _ := ctx.Value(callGuardKey{}).(*CallContext)
		if c == nil {
			return nil
		}
		c.mu.Lock()
		if !c.ended {
			return c
		}
		c.mu.Unlock()
		ctx = c.Context
	}
	return nil
}

// GuardFrom returns the guard of the call within which ctx was made: that of the request which an
// adapter guards, or of the function that [Engine.Do] runs. It is nil if there is none, or if the
// call has ended. The methods of a nil guard do nothing.
//
// The guard must not be used by a goroutine that may still run when the call ends: [Settle] and
// [MarkIgnored] may.
func GuardFrom(ctx context.Context) *Guard {
	c := callOf(ctx)
	if c == nil {
		return nil
	}
	defer c.mu.Unlock()
	return &c.guard
}

// Settle is [Guard.Settle] for the call within which ctx was made, see [GuardFrom]. It may run at
// the same time as the end of the call.
func Settle(ctx context.Context, n int) Settlement {
	c := callOf(ctx)
	if c == nil {
		return Settlement{}
	}
	defer c.mu.Unlock()
	return c.guard.Settle(n)
}

// MarkIgnored says that the end of the call within which ctx was made tells nothing of what was
// called, whatever is answered: a circuit breaker counts it neither as failed nor as a success. It
// returns false if there is no such call, see [GuardFrom].
func MarkIgnored(ctx context.Context) bool {
	c := callOf(ctx)
	if c == nil {
		return false
	}
	defer c.mu.Unlock()
	c.guard.decideIgnored()
	return true
}

// blockOfContexts is how many contexts are allocated at once. A context that is kept keeps the
// others of its block, so they are few.
const blockOfContexts = 8

// CallContexts makes contexts of calls. The zero value is ready to use, and it is safe for
// concurrent use. No context is used twice, as programs may keep them; they are allocated eight at
// a time, so that a call costs no allocation of its own.
type CallContexts struct{ blocks sync.Pool } // of *contextBlock that are not used up

type contextBlock struct {
	used     int
	contexts [blockOfContexts]CallContext
}

// New returns the context of a call that has passed, see [CallContext.Begin].
func (s *CallContexts) New(ctx context.Context, guard *Guard) *CallContext {
	block, ok := s.blocks.Get().(*contextBlock)
	if !ok {
		block = new(contextBlock)
	}
	c := &block.contexts[block.used]
	if block.used++; block.used < blockOfContexts {
		s.blocks.Put(block)
	}
	c.Begin(ctx, guard)
	return c
}
