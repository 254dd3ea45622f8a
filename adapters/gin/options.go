package penstockgin

import (
	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// Options say how requests are guarded. The zero value is a good one. The
// functions must be safe for concurrent use.
type Options struct {
	// Resource names the resource that a request is a call of; where it returns
	// "", the request is not guarded, which is for health checks and the like.
	// Names must not come from clients. Defaults to [RouteResource].
	Resource func(*gin.Context) string

	// Origin names who is calling, "" if that is unknown. Defaults to nobody.
	Origin func(*gin.Context) string

	// Tokens is how many tokens of its rules a call takes, from 1: what it costs,
	// for rules that count more than requests. A call of fewer is a mistake of
	// the program, see EntryError. Defaults to 1 for every call.
	Tokens func(*gin.Context) int

	// Blocked answers a request that was refused: it writes the status and the
	// body. The header fields that Fields speaks of, and Retry-After, are set
	// when it is called; the handlers that would come next are not called. The
	// error is shared: do not write to it. Defaults to a problem body, see
	// [nethttp.WriteProblem].
	Blocked func(*gin.Context, *core.BlockError)

	// EntryError answers a request that was not let through for another reason
	// than a refusal: with err the caller's context ended while the call waited
	// (context.Canceled, context.DeadlineExceeded), the engine is closed
	// ([core.ErrClosed]), or the options make no sense ([core.ErrInvalid]). The
	// handlers that would come next are not called. Defaults to
	// [nethttp.WriteProblem]: 499, 503, 503 and 500.
	EntryError func(c *gin.Context, err error)

	// Failure says whether a call that was answered with the status counts as
	// failed. The error is [nethttp.ErrCanceled] if the client had left before
	// the status was set, or before the handlers returned if it is below 500;
	// else it is the last that the handlers added to c.Errors, or nil. A panic
	// always counts, unless the client had left. Defaults to [IsFailure].
	Failure func(status int, err error) bool

	// Fields says which responses carry the RateLimit fields, and whether
	// refusals name rules at all. Defaults to [nethttp.FieldsOnRefusal].
	Fields nethttp.Fields

	// BufferBody is up to how many bytes of a body are read before the call is
	// made, 0 for none: see [nethttp.Options.BufferBody] for when to set it.
	BufferBody int64
}

// RouteResource names requests by their method and the route that matches,
// [gin.Context.FullPath]: "GET:/orders/:id". See [nethttp.Names] for methods.
// Requests that no route matches are [nethttp.Unmatched].
func RouteResource() func(*gin.Context) string {
	names := new(nethttp.Names)
	return func(c *gin.Context) string { return names.Name(c.Request.Method, c.FullPath()) }
}

// optionCount is how many options a call has at the most.
const optionCount = 4

// origin names who is calling.
func (o *Options) origin(c *gin.Context) string {
	if o.Origin == nil {
		return ""
	}
	return o.Origin(c)
}

// appendTo appends what is known of the call that the request asks for.
func (o *Options) appendTo(opts []core.Option, c *gin.Context, origin string) []core.Option {
	opts = append(opts, core.Inbound())
	if origin != "" {
		opts = append(opts, core.Origin(origin))
	}
	if o.Tokens != nil {
		opts = append(opts, core.Tokens(o.Tokens(c)))
	}
	return opts
}
