package penstockgrpc

import (
	"sync/atomic"

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

// Error converts an error of [core.Engine.Entry] to a status error that wraps it, for
// handlers that guard resources of their own. See the package documentation for the
// codes. It names no rule, but within a guard that does, see Options.ShowRules. It
// returns any other error unchanged, including nil and status errors.
func Error(err error) error {
	if _, is := status.FromError(err); is {
		return err
	}
	if rpc.IsEntryError(err) {
		return &entryError{cause: err, hideRules: true}
	}
	return err
}

// entryError is the status error of a call that did not pass. The status is created
// on demand, once, so that a refused call costs little. Calls share the errors of refusals.
type entryError struct {
	cause     error
	hideRules bool
	spread    *nethttp.Spread               // of the wait; nil if that is told as it is
	status    atomic.Pointer[status.Status] // nil until it is asked for
}

func (e *entryError) Error() string { return e.GRPCStatus().String() }

func (e *entryError) Unwrap() error { return e.cause }

// GRPCStatus returns the status, for package status.
func (e *entryError) GRPCStatus() *status.Status {
	made := e.status.Load()
	if made == nil {
		if block := rpc.RefusalIn(e.cause); block != nil {
			made = refused(block, e.hideRules, e.spread)
		} else {
			made = status.New(codes.Code(rpc.EntryCode(e.cause)), e.cause.Error())
		}
		e.status.Store(made)
	}
	return made
}

func refused(block *core.BlockError, hideRules bool, spread *nethttp.Spread) *status.Status {
	after, known := rpc.RetryAfter(block)
	message := block.Error()
	var details []protoadapt.MessageV1
	if hideRules {
		message = rpc.HiddenMessage(block)
	} else if block.Reason == rule.RateLimited {
		details = append(details, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject:     block.Resource,
			Description: rpc.QuotaText(block),
		}}})
	}
	if known {
		if spread != nil {
			after = spread.Wait(after)
		}
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	}
	plain := status.New(codes.Code(rpc.RefusalCode(block)), message)
	detailed, err := plain.WithDetails(details...)
	if err != nil {
		return plain // for instance, a name is not valid UTF-8
	}
	return detailed
}
