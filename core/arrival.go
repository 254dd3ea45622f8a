package core

import (
	"context"
	"slices"
	"time"
)

// Arrival is a call that is decided on step by step instead of waiting in
// [Engine.Entry], for programs that move time themselves: simulations. It goes
// through the very same rules. It must not be used concurrently.
type Arrival struct {
	visit visit
	opts  []Option
	ctx   context.Context // of this one call
	guard Guard
	err   error
	done  bool
}

// Arrive begins a call of the resource that arrives at the engine's present
// instant. Wake is called when the call, waiting in a queue, should go on before
// time demands it, by whoever moved the queue and perhaps under its lock: it
// must neither block nor call the engine.
func (e *Engine) Arrive(ctx context.Context, resource string, wake func(), opts ...Option) *Arrival {
	a := &Arrival{ctx: ctx, opts: slices.Clone(opts)}
	a.visit = visit{resource: e.resources.get(resource), name: resource, wait: wait{wake: wake}}
	a.visit.tokens, a.err = tokensOf(opts)
	a.done = a.err != nil
	return a
}

// Proceed goes on with the call at the engine's present instant. It returns true
// when the call is decided. Until then it is to be called again when after has
// passed, unless that is 0, and as soon as the call was woken.
func (a *Arrival) Proceed() (after time.Duration, done bool) {
	if a.done {
		return 0, true
	}
	v := &a.visit
	v.now = v.resource.engine.clock.Now()
	after, a.err = v.proceed(a.ctx, a.opts)
	if !v.passed && a.err == nil { // it waits
		a.err = v.resource.engine.givenUp(a.ctx)
	}
	if a.done = a.err != nil || v.passed; a.done {
		v.end()
	}
	if v.passed {
		a.guard = v.guard()
	}
	return after, a.done
}

// Result returns what Entry would have returned. It is valid once the call is
// decided.
func (a *Arrival) Result() (*Guard, error) { return &a.guard, a.err }
