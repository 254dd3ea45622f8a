package rpc

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Code is the status code of a call, as gRPC and Connect number them (google.rpc.Code).
type Code uint32

// The codes.
const (
	OK Code = iota
	Canceled
	Unknown
	InvalidArgument
	DeadlineExceeded
	NotFound
	AlreadyExists
	PermissionDenied
	ResourceExhausted
	FailedPrecondition
	Aborted
	OutOfRange
	Unimplemented
	Internal
	Unavailable
	DataLoss
	Unauthenticated
)

// names returns the names of the codes, in their order, as rules spell them.
func names() []string {
	return []string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
		"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
		"OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
}

// String returns the name of the code, such as "NOT_FOUND"; the number of one that has none.
func (c Code) String() string {
	if all := names(); int(c) < len(all) {
		return all[c]
	}
	return strconv.FormatUint(uint64(c), 10)
}

// BlamesServer reports whether a call with the code failed because of the server: with
// Unknown, DeadlineExceeded, Unimplemented, Internal, Unavailable, DataLoss or a code that is
// not defined. Codes that blame the caller do not, and neither does ResourceExhausted: a
// server that enforces a quota works correctly. The codes are those that OpenTelemetry uses
// for the spans of servers.
func (c Code) BlamesServer() bool {
	switch c {
	case OK, Canceled, InvalidArgument, NotFound, AlreadyExists, PermissionDenied, ResourceExhausted,
		FailedPrecondition, Aborted, OutOfRange, Unauthenticated:
		return false
	}
	return true
}

// RefusalCode returns the code that a refused call is answered with: the one that the rule
// says, or that of the reason, which is ResourceExhausted, Unavailable or PermissionDenied.
func RefusalCode(block *core.BlockError) Code {
	if block.Answer.GRPC != "" {
		if i := slices.Index(names(), block.Answer.GRPC); i > 0 {
			return Code(i)
		}
	}
	switch block.Reason {
	case rule.Overloaded, rule.Unavailable, rule.Injected:
		return Unavailable
	case rule.Denied:
		return PermissionDenied
	}
	return ResourceExhausted
}

// EntryCode returns the code that a call is answered with that did not pass for another
// reason than a refusal with a [core.BlockError]: Unavailable if the engine is closed, Internal
// if its options made no sense, and that of the context if this ended while the call waited.
func EntryCode(err error) Code {
	switch {
	case errors.Is(err, core.ErrClosed):
		return Unavailable
	case errors.Is(err, core.ErrInvalid):
		return Internal
	case errors.Is(err, core.ErrBlocked):
		return ResourceExhausted
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	}
	return Unknown
}
