package penstockgrpc

import (
	"context"
	"time"

	"github.com/penstock-go/penstock/core"
)

// Options say how calls are guarded. The zero value is a good one. Functions
// must be safe for concurrent use; those left nil do what is given as default.
type Options struct {
	// Resource names the resource that a call belongs to. Calls for which it
	// returns "" are not guarded: health checks, for example, or reflection.
	// Defaults to the full method, "/package.Service/Method".
	Resource func(ctx context.Context, fullMethod string) string

	// Origin names who is calling, for example by the peer or the metadata in
	// ctx; "" when that is unknown. Defaults to unknown.
	Origin func(ctx context.Context) string

	// Tokens is how many tokens of its rules a call takes, from 1: what it costs,
	// for rules that count more than calls. The request is the message of a unary
	// call, nil for a stream. A call of fewer is a mistake of the program, see
	// EntryError. Defaults to 1 for every call.
	Tokens func(ctx context.Context, fullMethod string, request any) int

	// Blocked returns the error that a refused call ends with. When it returns
	// nil, as by default, that is the one of [Error]; the call is not made in
	// any case.
	Blocked func(ctx context.Context, fullMethod string, refusal *core.BlockError) error

	// EntryError returns the error that a call ends with that was not let through
	// for another reason than a refusal: with err its context ended while it
	// waited (context.Canceled, context.DeadlineExceeded), the engine is closed
	// ([core.ErrClosed]), or the options make no sense ([core.ErrInvalid]). When
	// it returns nil, as by default, that is the one of [Error]; the call is not
	// made in any case.
	EntryError func(ctx context.Context, fullMethod string, err error) error

	// Failure says whether a call that ended with err, never nil, counts as
	// failed. A call that its caller cancelled ended with Canceled, one that was
	// under way at its deadline with DeadlineExceeded, whatever else is in err. A
	// panic always counts, unless the caller had cancelled the call. Defaults to
	// [IsFailure].
	Failure func(err error) bool

	// MaxPushback is the longest wait for which a refusal asks a client with a
	// retry policy to try again by itself, if the deadline of the call leaves
	// time for it. All other refusals tell it not to: see the package's
	// documentation. For servers only. Defaults to 0: no refusal is tried again.
	MaxPushback time.Duration

	// HideRules keeps the names of rules and resources out of what callers get to
	// read of a refusal: its message names none, and there is no QuotaFailure. On
	// a server it holds for refusals that handlers return by means of [Error], too.
	// Errors that Blocked returns are its own. Defaults to naming them.
	HideRules bool
}
