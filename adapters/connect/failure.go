package penstockconnect

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
)

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
	if err == nil { // most calls; errors.As has what it finds on the heap
		return rpc.OK
	}
	var coded *connect.Error
	switch {
	case errors.As(err, &coded):
		return rpc.Code(coded.Code())
	case errors.Is(err, context.Canceled):
		return rpc.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return rpc.DeadlineExceeded
	}
	return rpc.Unknown
}

// newEndError returns the error of a call whose context has ended.
func newEndError(code rpc.Code, message string, cause error) error {
	return connect.NewError(connect.Code(code), fmt.Errorf("%s: %w", message, cause))
}
