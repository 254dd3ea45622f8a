package penstockgrpc

import (
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
	code := codeOf(err)
	return code == rpc.DeadlineExceeded || code.BlamesServer() && !core.IsRefusal(err)
}

// codeOf returns the code of an error.
func codeOf(err error) rpc.Code {
	s, ok := status.FromError(err)
	if !ok {
		s = status.FromContextError(err)
	}
	return rpc.Code(s.Code())
}

// newError returns a status error that wraps the cause.
func newError(code rpc.Code, message string, cause error) error {
	return fmt.Errorf("%w: %w", status.Error(codes.Code(code), message), cause)
}
