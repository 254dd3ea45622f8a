package penstockgrpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
	switch codeOf(err) {
	case codes.OK, codes.Canceled, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists,
		codes.PermissionDenied, codes.ResourceExhausted, codes.FailedPrecondition, codes.Aborted,
		codes.OutOfRange, codes.Unauthenticated:
		return false
	case codes.DeadlineExceeded:
		return true
	default:
		return !core.IsRefusal(err)
	}
}

func codeOf(err error) codes.Code {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	return s.Code()
}

// maxSlack bounds the slack of a caller.
const maxSlack = 50 * time.Millisecond

// caller is the context of a call, with what is needed to interpret its end.
type caller struct {
	ctx context.Context

	// slack is how long before the deadline a cancelled call counts as having
	// reached it: a third of the time it had, at most maxSlack. A client cancels
	// the call at its deadline, and that arrives at about the time of the deadline
	// on the server, as often before it as after.
	slack time.Duration
}

func callerOf(ctx context.Context) caller {
	c := caller{ctx: ctx}
	if deadline, ok := ctx.Deadline(); ok {
		c.slack = min(time.Until(deadline)/3, maxSlack)
	}
	return c
}

// outcome returns the error of a call from the point of view of its caller, if it
// ended with err on this side: DeadlineExceeded if it was under way at its deadline,
// Canceled if the caller cancelled it before, else err. A reply of a server that is
// too late counts as none, while a client that has received a reply has it.
func (g *gate) outcome(from caller, err error) error {
	gone := from.ctx.Err()
	switch {
	case err == nil && (gone == nil || !g.inbound):
		return nil
	case gone == nil && codeOf(err) != codes.Canceled:
		return err
	case from.metDeadline(gone):
		return endedWith(codes.DeadlineExceeded, "under way at its deadline", err)
	case gone != nil && err != nil:
		return endedWith(codes.Canceled, "cancelled by its caller", err)
	}
	return err
}

func (c caller) metDeadline(gone error) bool {
	if errors.Is(gone, context.DeadlineExceeded) {
		return true
	}
	deadline, ok := c.ctx.Deadline()
	return ok && time.Until(deadline) <= c.slack
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
