package rpc

import (
	"context"
	"errors"
	"runtime"

	"github.com/penstock-go/penstock/core"
)

var (
	// ErrPanicked is the failure of a call that panicked, for [Gate.Mark].
	ErrPanicked = errors.New("penstock: the guarded call panicked")

	// errTooLate is the cause of the failure of a call that was replied to after its deadline.
	errTooLate = errors.New("replied too late")
)

// Gate lets calls enter, and tells their rules how they end. Set all fields before the first call. Then it is safe for
// concurrent use.
type Gate struct {
	// Engine has the rules.
	Engine *core.Engine

	// Inbound says that the calls are those that a server receives.
	Inbound bool

	// CodeOf returns the code of an error of the framework, OK for nil.
	CodeOf func(err error) Code

	// NewError returns an error of the framework that wraps the cause: code is
	// DeadlineExceeded or Canceled.
	NewError func(code Code, message string, cause error) error

	// Failure returns whether a call that ended with err, never nil, counts as failed.
	Failure func(err error) bool

	contexts core.CallContexts
}

// Enter enters a call. It returns the error of [core.Engine.Entry], and the refusal if that
// is one.
func (g *Gate) Enter(ctx context.Context, guard *core.Guard, resource string, opts []core.Option) (*core.BlockError, error) {
	var err error
	if *guard, err = g.Engine.Entry(ctx, resource, opts...); err != nil {
		block, _ := err.(*core.BlockError) //nolint:errorlint // Entry does not wrap it, and errors.As allocates
		return block, err
	}
	if g.Inbound {
		runtime.Gosched() // as nethttp does: calls that wait for a processor come to their rules first
	}
	return nil, nil
}

// Prepare runs f for a call that passed, before the call is made. If f panics, as it may be code of the
// program, the call holds nothing.
func Prepare(guard *core.Guard, f func()) {
	prepared := false
	defer func() {
		if !prepared {
			guard.Cancel()
		}
	}()
	f()
	prepared = true
}

// Call makes a call that passed, and marks how it ended: see [Gate.Mark]. It exits the guard
// also if the call panics, which is a failure, and passes the panic on.
func (g *Gate) Call(from Caller, guard *core.Guard, call func() error) error {
	failure := ErrPanicked // unless call returns
	defer guard.Exit()     // also if Failure panics
	defer func() { g.Mark(guard, from, failure) }()
	err := call()
	failure = err
	return err
}

// Serve is Call for a call that a server serves within ctx: the function gets the context of the
// call, in which [core.GuardFrom] finds the guard. The guard must not be used after it.
func (g *Gate) Serve(ctx context.Context, from Caller, guard *core.Guard, call func(context.Context) error) error {
	c := g.contexts.New(ctx, guard)
	return g.Call(from, c.Guard(), func() error {
		defer c.End()
		return call(c)
	})
}

// Mark marks how a call ended that ended with err: as failed, or as one that does not count
// if its caller cancelled it or a guard further down refused it. It does not exit the guard.
func (g *Gate) Mark(guard *core.Guard, from Caller, err error) {
	code := from.Outcome(g.CodeOf(err), g.Inbound)
	canceled := code == Canceled
	switch {
	case code == OK:
	case err == nil && canceled:
		guard.MarkIgnored() // nobody wants the reply any more
	case errors.Is(err, ErrPanicked) && !canceled, g.Failure(g.endedWith(code, err)):
		guard.MarkFailed()
	case canceled, core.IsRefusal(err):
		guard.MarkIgnored()
	}
}

// Ended returns the error of a call that a client has sent, nil if it was replied to, for
// what that says of its target. It says nothing if known is false: the caller has cancelled
// the call, a guard further in refused it, or it panicked.
func (g *Gate) Ended(from Caller, err error) (known bool, _ error) {
	code := from.Outcome(g.CodeOf(err), false)
	switch {
	case code == Canceled, errors.Is(err, core.ErrBlocked), errors.Is(err, ErrPanicked):
		return false, nil
	case code == OK:
		return true, nil
	}
	return true, g.endedWith(code, err)
}

// endedWith returns an error with the code that wraps err.
func (g *Gate) endedWith(code Code, err error) error {
	switch {
	case g.CodeOf(err) == code:
		return err
	case err == nil:
		err = errTooLate
	}
	if code == DeadlineExceeded {
		return g.NewError(code, "under way at its deadline", err)
	}
	return g.NewError(code, "cancelled by its caller", err)
}

// IsEntryError returns whether err is, or wraps, an error with which a call does not pass:
// one of [core.Engine.Entry].
func IsEntryError(err error) bool {
	for _, cause := range []error{
		core.ErrBlocked, core.ErrClosed, core.ErrInvalid, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}
