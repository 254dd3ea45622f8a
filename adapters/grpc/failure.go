package penstockgrpc

import (
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
// An error without a status has the code that gRPC gives it: Canceled or
// DeadlineExceeded if it is that of a context, else Unknown.
func IsFailure(err error) bool {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	switch s.Code() {
	case codes.OK, codes.Canceled, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists,
		codes.PermissionDenied, codes.ResourceExhausted, codes.FailedPrecondition, codes.Aborted,
		codes.OutOfRange, codes.Unauthenticated:
		return false
	default:
		return true
	}
}
