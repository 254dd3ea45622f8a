package penstockkratos

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync/atomic"

	kerrors "github.com/go-kratos/kratos/v2/errors"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/rpc"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// The reasons of errors of calls that did not pass.
const (
	ReasonRateLimited = "RATE_LIMITED" // 429: too many calls in a time, or of one value
	ReasonOverloaded  = "OVERLOADED"   // 503: too many calls at once
	ReasonUnavailable = "UNAVAILABLE"  // 503: what is called fails, or the engine is closed
	ReasonDenied      = "DENIED"       // 403: the caller may not call
	ReasonInjected    = "INJECTED"     // a fault that a rule injects
	ReasonCanceled    = "CANCELED"     // 499: the caller left while the call waited
	ReasonDeadline    = "DEADLINE"     // 504: the deadline came while the call waited
	ReasonInvalid     = "INVALID"      // 500: the options of the call make no sense
)

// retryAfterKey is the metadata of an error that says after what time a call can pass, as a
// duration: "1.5s".
const retryAfterKey = "retry_after"

// Error converts an error of [core.Engine.Entry] to a kratos error that wraps it, for handlers
// that guard resources of their own. See the package documentation for codes, reasons and
// metadata. It names no rule, but within a guard that does, see Options.ShowRules. It
// returns any other error unchanged, including nil and kratos errors.
func Error(err error) error {
	var is *kerrors.Error
	if errors.As(err, &is) {
		return err
	}
	if rpc.IsEntryError(err) {
		return newError(err, rpc.RefusalIn(err), true)
	}
	return err
}

// entryError is the error of a call that did not pass. It wraps a kratos error, which wraps
// the cause. Calls share those of refusals.
type entryError struct {
	kratos *kerrors.Error
	block  *core.BlockError              // nil if no rule refused the call
	hidden bool                          // the names of the rule and the resource
	status atomic.Pointer[status.Status] // nil until it is asked for
}

func (e *entryError) Error() string { return e.kratos.Error() }

func (e *entryError) Unwrap() error { return e.kratos }

// newError returns the error of a call that did not pass.
func newError(cause error, block *core.BlockError, hidden bool) *entryError {
	if block == nil {
		code, reason := entryCode(cause)
		return &entryError{kratos: kerrors.New(code, reason, cause.Error()).WithCause(cause)}
	}
	code := block.Answer.HTTP
	if code == 0 {
		code = nethttp.StatusOf(block.Reason)
	}
	message, metadata := block.Error(), map[string]string{"resource": block.Resource, "kind": string(block.Kind), "rule": block.Rule}
	if hidden {
		message, metadata = rpc.HiddenMessage(block), map[string]string{}
	}
	if after, known := retryAfter(block); known {
		metadata[retryAfterKey] = after.String()
	}
	made := kerrors.New(code, reasonOf(block.Reason), message).WithCause(cause)
	maps.Copy(made.Metadata, metadata)
	return &entryError{kratos: made, block: block, hidden: hidden}
}

// entryCode returns the code and the reason of a call that no rule refused.
func entryCode(cause error) (code int, reason string) {
	switch {
	case errors.Is(cause, core.ErrBlocked):
		return http.StatusTooManyRequests, ReasonRateLimited
	case errors.Is(cause, core.ErrClosed):
		return http.StatusServiceUnavailable, ReasonUnavailable
	case errors.Is(cause, context.Canceled):
		return statusClientClosedRequest, ReasonCanceled
	case errors.Is(cause, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, ReasonDeadline
	}
	return http.StatusInternalServerError, ReasonInvalid
}

// reasonOf returns the reason of a kratos error.
func reasonOf(reason rule.Reason) string {
	switch reason {
	case rule.Overloaded:
		return ReasonOverloaded
	case rule.Unavailable:
		return ReasonUnavailable
	case rule.Denied:
		return ReasonDenied
	case rule.Injected:
		return ReasonInjected
	}
	return ReasonRateLimited
}

// GRPCStatus returns the status, for package status.
func (e *entryError) GRPCStatus() *status.Status {
	made := e.status.Load()
	if made == nil {
		made = e.newStatus()
		e.status.Store(made)
	}
	return made
}

func (e *entryError) newStatus() *status.Status {
	if e.block == nil {
		return e.kratos.GRPCStatus()
	}
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: e.kratos.Reason, Metadata: e.kratos.Metadata}}
	if e.block.Reason == rule.RateLimited && !e.hidden {
		details = append(details, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject: e.block.Resource, Description: rpc.QuotaText(e.block),
		}}})
	}
	if after, known := retryAfter(e.block); known {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	plain := status.New(codes.Code(rpc.RefusalCode(e.block)), e.kratos.Message)
	detailed, err := plain.WithDetails(details...)
	if err != nil {
		return plain // for instance, a name is not valid UTF-8
	}
	return detailed
}
