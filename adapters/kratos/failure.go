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

// newEndError returns the error of a call whose context has ended.
func newEndError(code rpc.Code, message string, cause error) error {
	if code == rpc.DeadlineExceeded {
		return kerrors.New(http.StatusGatewayTimeout, ReasonDeadline, message).WithCause(cause)
	}
	return kerrors.New(statusClientClosedRequest, ReasonCanceled, message).WithCause(cause)
}
