package penstockkratos

import (
	"context"
	"errors"
	"net/http"
	"time"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"github.com/go-kratos/kratos/v2/transport/http/status"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// errPanicked is the failure of a call that panicked.
var errPanicked = errors.New("penstockkratos: the guarded call panicked")

// statusClientClosedRequest is the code of a call that its caller has cancelled.
const statusClientClosedRequest = status.ClientClosed

// IsFailure returns whether a call that ended with err failed because of the server: with a
// code of 500 or above. The code is that of [kerrors.FromError], so that a plain error has 500
// and the status of gRPC the code that kratos gives it; the error of a context has 499 or 504.
// A refusal of this process, [core.IsRefusal], is not a failure whatever its code is, unless
// that is 504.
func IsFailure(err error) bool {
	code := codeOf(err)
	if code == http.StatusGatewayTimeout {
		return true
	}
	return code >= http.StatusInternalServerError && !core.IsRefusal(err)
}

// codeOf returns the code of an error.
func codeOf(err error) int {
	var coded *kerrors.Error
	if errors.As(err, &coded) {
		return int(coded.Code)
	}
	if _, ok := grpcstatus.FromError(err); !ok {
		switch {
		case errors.Is(err, context.Canceled):
			return statusClientClosedRequest
		case errors.Is(err, context.DeadlineExceeded):
			return http.StatusGatewayTimeout
		}
	}
	return kerrors.Code(err)
}

// rpcCode returns the code of an error as gRPC has it.
func rpcCode(err error) rpc.Code {
	if err == nil {
		return rpc.OK
	}
	return rpc.Code(status.ToGRPCCode(codeOf(err)))
}

// retryAfter returns after what time a call like the refused one can pass, if that is known
// and the server says so: one that fails on purpose does not.
func retryAfter(block *core.BlockError) (after time.Duration, known bool) {
	after, known = rpc.RetryAfter(block)
	return after, known && block.Reason != rule.Injected
}

// guarded runs a call that passed. It exits the guard also if the call panics, and passes the
// panic on.
func (g *gate) guarded(from rpc.Caller, guard *core.Guard, fn func() (any, error)) (reply any, err error) {
	failure := errPanicked // unless fn returns
	defer guard.Exit()     // also if Failure panics
	defer func() { g.markOutcome(guard, from, failure) }()
	reply, err = fn()
	failure = err
	return reply, err
}

// markOutcome marks how a call ended that ended with err: as failed, or as one that does not
// count if its caller cancelled it or a guard further down refused it.
func (g *gate) markOutcome(guard *core.Guard, from rpc.Caller, err error) {
	code := from.Outcome(rpcCode(err), g.inbound)
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
	case err != nil && rpcCode(err) == code:
		return err
	case err == nil:
		err = errors.New("replied too late")
	}
	if code == rpc.DeadlineExceeded {
		return kerrors.New(http.StatusGatewayTimeout, ReasonDeadline, "under way at its deadline").WithCause(err)
	}
	return kerrors.New(statusClientClosedRequest, ReasonCanceled, "cancelled by its caller").WithCause(err)
}
