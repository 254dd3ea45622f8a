package penstockgrpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// IsFailure says whether a call that ended with err failed through the server's
// fault: with Unknown, DeadlineExceeded, Unimplemented, Internal, Unavailable,
// DataLoss or a code that gRPC does not define. What blames the caller is not a
// failure, and neither is ResourceExhausted: a server that refuses what exceeds a
// quota does what it should. The line is the one that OpenTelemetry draws for
// the spans of servers.
//
// For a call whose context has ended, it is asked about what ended that: Canceled
// if the caller did so before the deadline, else DeadlineExceeded.
//
// An error without a status has the code that gRPC gives it: Canceled or
// DeadlineExceeded if it is that of a context, else Unknown.
func IsFailure(err error) bool {
	switch codeOf(err) {
	case codes.OK, codes.Canceled, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists,
		codes.PermissionDenied, codes.ResourceExhausted, codes.FailedPrecondition, codes.Aborted,
		codes.OutOfRange, codes.Unauthenticated:
		return false
	default:
		return true
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

// caller is who waits for the end of a call, as its context tells.
type caller struct {
	ctx context.Context

	// slack is how long before the deadline a call that was cancelled counts as one
	// that met it: a third of the time that there was, at most maxSlack. A
	// client whose deadline has come cancels the call, and that arrives about when
	// the deadline comes on the server's side: as often before it as after.
	slack time.Duration
}

func callerOf(ctx context.Context) caller {
	c := caller{ctx: ctx}
	if deadline, ok := ctx.Deadline(); ok {
		c.slack = min(time.Until(deadline)/3, maxSlack)
	}
	return c
}

// outcome returns what a call ended with for its caller, if it ended with err on
// this side: DeadlineExceeded if it was under way at its deadline, Canceled if the
// caller gave it up before, else err. A reply that a server makes too late reaches
// nobody; one that a client has is there.
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

// endedWith returns a status error in which err is still to be found.
func endedWith(code codes.Code, message string, err error) error {
	if err == nil {
		return status.Error(code, message)
	}
	if codeOf(err) == code {
		return err
	}
	return fmt.Errorf("%w: %w", status.Error(code, message), err)
}
