package penstockgrpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
)

// IsFailure returns whether a call that ended with err failed because of the server:
// with Unknown, DeadlineExceeded, Unimplemented, Internal, Unavailable, DataLoss or a
// code that gRPC does not define. Codes that blame the caller are not failures, and
// neither is ResourceExhausted: a server that enforces a quota works correctly. The
// codes are those that OpenTelemetry uses for the spans of servers. A refusal of this
// process, [core.IsRefusal], is not a failure whatever its code is, unless that is
// DeadlineExceeded.
//
// If the context of the call has ended, err is that: Canceled if the caller cancelled
// it before the deadline, else DeadlineExceeded.
//
// An error without a status has the code that gRPC gives it: Canceled or
// DeadlineExceeded for the error of a context, else Unknown.
func IsFailure(err error) bool {
	code := rpc.Code(codeOf(err))
	return code == rpc.DeadlineExceeded || code.BlamesServer() && !core.IsRefusal(err)
}

func codeOf(err error) codes.Code {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	return s.Code()
}

// caller is the context of a call, with what is needed to interpret its end.
type caller struct {
	ctx context.Context
	rpc.Caller
}

func callerOf(ctx context.Context) caller { return caller{ctx, rpc.CallerOf(ctx)} }

// outcome returns the error of a call from the point of view of its caller, if it
// ended with err on this side: see [rpc.Caller.Outcome]. It is nil if the caller has
// cancelled a call that was replied to.
func (g *gate) outcome(from caller, err error) error {
	switch code := codes.Code(from.Outcome(rpc.Code(codeOf(err)), g.inbound)); {
	case code == codes.DeadlineExceeded:
		return endedWith(code, "under way at its deadline", err)
	case code == codes.Canceled && err != nil:
		return endedWith(code, "cancelled by its caller", err)
	}
	return err
}

// endedWith returns a status error that wraps err.
func endedWith(code codes.Code, message string, err error) error {
	if err == nil {
		return status.Error(code, message)
	}
	if codeOf(err) == code {
		return err
	}
	return fmt.Errorf("%w: %w", status.Error(code, message), err)
}
