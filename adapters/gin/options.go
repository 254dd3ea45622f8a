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

	// Args returns the arguments of the call for the engine's checks: strings,
	// booleans, numbers. Defaults to none.
	Args func(*gin.Context) []any

	// Blocked answers a request that was refused: it writes the status and the
	// body. The header fields that Fields speaks of, and Retry-After, are set
	// when it is called; the handlers that would come next are not called. The
	// error is shared: do not write to it. Defaults to [nethttp.WriteProblem].
	Blocked func(*gin.Context, *core.BlockError)

	// Fields says which responses carry the RateLimit fields. Defaults to
	// [nethttp.FieldsOnRefusal].
	Fields nethttp.Fields
}

// RouteResource names requests by their method and the route that matches,
// [gin.Context.FullPath]: "GET:/orders/:id". See [nethttp.Names] for methods.
// Requests that no route matches are [nethttp.Unmatched].
func RouteResource() func(*gin.Context) string {
	names := new(nethttp.Names)
	return func(c *gin.Context) string { return names.Name(c.Request.Method, c.FullPath()) }
}

// optionCount is how many options a call has at the most.
const optionCount = 3

// appendTo appends what is known of the call that the request asks for.
func (o *Options) appendTo(opts []core.Option, c *gin.Context) []core.Option {
	opts = append(opts, core.Inbound())
	if o.Origin != nil {
		opts = append(opts, core.Origin(o.Origin(c)))
	}
	if o.Args != nil {
		opts = append(opts, core.Args(o.Args(c)...))
	}
	return opts
}
