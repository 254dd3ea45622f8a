package core

import (
	"context"
	"errors"
	"time"

	"github.com/penstock-go/penstock/core/internal/call"
)

// Arrival is a call that does not wait in [Engine.Entry]: its caller decides when to go on.
// It is for programs that move time themselves, such as simulations. The rules are the
// same. It must not be used concurrently, nor be copied.
type Arrival struct {
	opts      []Option
	admission admission
	ctx       context.Context // of this one call
	guard     Guard
	err       error
	done      bool
}

// Arrive begins a call of a resource of the engine that arrives at its present instant. Wake
// is called when the call, waiting in a queue, should go on before time demands it, by the
// goroutine that moved the queue, perhaps under its lock: it must neither block nor call the
// engine. It may be called for a while after the call is decided.
//
// The Arrival may have stood for another call before, which was refused or whose guard has
// exited. That guard stands for the new call then.
func (a *Arrival) Arrive(ctx context.Context, e *Engine, resource string, wake func(), opts ...Option) {
	ctx = call.OrBackground(ctx)
	*a = Arrival{opts: append(a.opts[:0], opts...), ctx: ctx}
	var q call.Request
	a.err = q.Read(ctx, resource, e.clock.Now(), a.opts)
	if ended := ctx.Err(); ended != nil {
		a.err = ended
	}
	a.done = a.err != nil
	a.admission.begin(e.get(resource), &q)
	a.admission.wait.wake = wake
}

// Proceed goes on with the call at the engine's present instant. It returns true
// when the call is decided. Until then it is to be called again when after has
// passed, unless that is 0, and as soon as the call was woken.
func (a *Arrival) Proceed() (after time.Duration, done bool) {
	if a.done {
		return 0, true
	}
	a.done, a.err = true, errUndecided // unless all that is asked returns
	defer func() {
		if a.done {
			a.admission.end()
		}
	}()
	env := a.admission.resource.Env
	a.admission.Now = env.clock.Now()
	after, err := a.admission.proceed(a.ctx, a.opts)
	switch {
	case err != nil:
	case a.admission.passed != nil:
		a.guard = a.admission.hand(a.ctx, a.opts)
	default:
		err = env.waitError(a.ctx)
		a.done = err != nil
		a.admission.recordGivenUp(a.ctx, a.opts, err)
	}
	a.err = err
	return after, a.done
}

// errUndecided is the error of a call that a rule, or a function of an option, kept from being decided.
var errUndecided = errors.New("core: the call was not decided, for what was asked about it has panicked")

// Result returns what Entry would have returned. It is valid once the call is
// decided.
func (a *Arrival) Result() (*Guard, error) { return &a.guard, a.err }
