package penstockgrpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Error makes a status error of an error of [core.Engine.Entry], for handlers
// that guard resources of their own: see the package's documentation for the
// codes. The error stays to be found with errors.As and errors.Is. Any other
// error, nil and status errors among them, is returned as it is.
func Error(err error) error {
	if _, is := status.FromError(err); is {
		return err
	}
	for _, cause := range []error{
		core.ErrBlocked, core.ErrClosed, core.ErrInvalid, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, cause) {
			return &entryError{cause: err}
		}
	}
	return err
}

// entryError is the status error of a call that was not let through. The status
// is made when it is asked for: a refused call should cost little.
type entryError struct {
	cause     error
	hideRules bool
}

func (e *entryError) Error() string { return e.GRPCStatus().String() }

func (e *entryError) Unwrap() error { return e.cause }

// GRPCStatus makes package status treat the error as one of its own.
func (e *entryError) GRPCStatus() *status.Status {
	var block *core.BlockError
	switch {
	case errors.As(e.cause, &block):
		return refused(block, e.hideRules)
	case errors.Is(e.cause, core.ErrClosed):
		return status.New(codes.Unavailable, e.cause.Error())
	case errors.Is(e.cause, core.ErrInvalid):
		return status.New(codes.Internal, e.cause.Error())
	}
	return status.FromContextError(e.cause)
}

// codeOf returns the code of a refusal.
func codeOf(reason rule.Reason) codes.Code {
	switch reason {
	case rule.Overloaded, rule.Unavailable, rule.Injected:
		return codes.Unavailable
	case rule.Denied:
		return codes.PermissionDenied
	}
	return codes.ResourceExhausted
}

func refused(block *core.BlockError, hideRules bool) *status.Status {
	after, known := retryAfter(block)
	message := block.Error()
	var details []protoadapt.MessageV1
	if hideRules {
		message = "penstock: the call was refused"
		if known {
			message += fmt.Sprintf(", retry after %v", after)
		}
	} else if block.Reason == rule.RateLimited {
		details = append(details, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject:     block.Resource,
			Description: fmt.Sprintf("refused by the %s rule %q", block.Kind, block.Rule),
		}}})
	}
	if known {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	plain := status.New(codeOf(block.Reason), message)
	detailed, err := plain.WithDetails(details...)
	if err != nil {
		return plain // a name is not UTF-8, say; the code tells what matters
	}
	return detailed
}
