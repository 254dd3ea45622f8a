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

// deadlineSlack is how long before its deadline a call that was cancelled counts
// as one that met it. A caller whose deadline has come cancels the call, and
// that arrives about when the deadline comes on this side: as often before.
const deadlineSlack = 20 * time.Millisecond

// outcome returns what a call ended with for its caller, if it ended with err on
// this side: DeadlineExceeded if it was under way at its deadline, Canceled if the
// caller gave it up before, else err. A reply that a server makes too late reaches
// nobody; one that a client has is there.
func (g *gate) outcome(ctx context.Context, err error) error {
	gone := ctx.Err()
	switch {
	case err == nil && (gone == nil || !g.inbound):
		return nil
	case gone == nil && codeOf(err) != codes.Canceled:
		return err
	case metDeadline(ctx, gone):
		return endedWith(codes.DeadlineExceeded, "under way at its deadline", err)
	case gone != nil && err != nil:
		return endedWith(codes.Canceled, "cancelled by its caller", err)
	}
	return err
}

func metDeadline(ctx context.Context, gone error) bool {
	if errors.Is(gone, context.DeadlineExceeded) {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= deadlineSlack
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
