package penstockconnect

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
)

// errPanicked is the failure of a call that panicked.
var errPanicked = errors.New("penstockconnect: the guarded call panicked")

// IsFailure returns whether a call that ended with err failed because of the server:
// with Unknown, DeadlineExceeded, Unimplemented, Internal, Unavailable, DataLoss or a code
// that Connect does not define. Codes that blame the caller are not failures, and neither is
// ResourceExhausted: a server that enforces a quota works correctly. A refusal of this
// process, [core.IsRefusal], is not a failure whatever its code is, unless that is
// DeadlineExceeded. Neither is [connect.IsNotModifiedError].
//
// If the context of the call has ended, err is that: Canceled if the caller cancelled
// it before the deadline, else DeadlineExceeded.
//
// An error that is no [*connect.Error] has the code that Connect gives it: Canceled or
// DeadlineExceeded for the error of a context, else Unknown.
func IsFailure(err error) bool {
	code := codeOf(err)
	switch {
	case code == rpc.DeadlineExceeded:
		return true
	case connect.IsNotModifiedError(err), core.IsRefusal(err):
		return false
	}
	return code.BlamesServer()
}

// codeOf returns the code of an error.
func codeOf(err error) rpc.Code {
	var coded *connect.Error
	switch {
	case err == nil:
		return rpc.OK
	case errors.As(err, &coded):
		return rpc.Code(coded.Code())
	case errors.Is(err, context.Canceled):
		return rpc.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return rpc.DeadlineExceeded
	}
	return rpc.Unknown
}

// call runs a call that passed. It exits the guard also if the call panics, and
// passes the panic on.
func (g *gate) call(from rpc.Caller, guard *core.Guard, fn func() error) error {
	failure := errPanicked // unless fn returns
	defer guard.Exit()     // also if Failure panics
	defer func() { g.markOutcome(guard, from, failure) }()
	err := fn()
	failure = err
	return err
}

// markOutcome marks how a call ended that ended with err: as failed, or as one that does
// not count if its caller cancelled it or a guard further down refused it.
func (g *gate) markOutcome(guard *core.Guard, from rpc.Caller, err error) {
	code := from.Outcome(codeOf(err), g.inbound)
	canceled := code == rpc.Canceled
	switch {
	case code == rpc.OK:
	case err == nil && canceled:
		guard.MarkIgnored() // nobody wants the reply any more
	case errors.Is(err, errPanicked) && !canceled, g.options.Failure(endedWith(code, err)):
		guard.MarkFailed()
	case canceled, core.IsRefusal(err):
		guard.MarkIgnored()
	}
}

// endedWith returns an error with the code that wraps err.
func endedWith(code rpc.Code, err error) error {
	switch {
	case codeOf(err) == code:
		return err
	case err == nil:
		err = errors.New("replied too late")
	}
	if code == rpc.DeadlineExceeded {
		return connect.NewError(connect.Code(code), fmt.Errorf("under way at its deadline: %w", err))
	}
	return connect.NewError(connect.Code(code), fmt.Errorf("cancelled by its caller: %w", err))
}
