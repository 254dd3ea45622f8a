package penstockgrpc

import (
	"context"

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

	// Args returns the arguments that the engine's checks get to see, of the
	// types that [core.Args] takes. The request is the message of a unary call,
	// nil for a stream. Defaults to none.
	Args func(ctx context.Context, fullMethod string, request any) []any

	// Blocked returns the error that a refused call ends with. When it returns
	// nil, as by default, that is the one of [Error]; the call is not made in
	// any case.
	Blocked func(ctx context.Context, fullMethod string, refusal *core.BlockError) error

	// Failure says whether a call that ended with err, never nil, counts as
	// failed. A panic always does. Defaults to [IsFailure].
	Failure func(err error) bool
}
