package nethttp

import (
	"net/http"

	"github.com/penstock-go/penstock/core"
)

// Options say how requests are guarded. The zero value is a good one. The
// functions must be safe for concurrent use.
type Options struct {
	// Resource names the resource that a request is a call of; where it returns
	// "", the request is not guarded, which is for health checks and the like.
	// Names must not come from clients: map paths to routes, see [Names].
	// Defaults to [MuxResource] when the middleware is directly around a
	// [http.ServeMux], else to [PatternResource].
	Resource func(*http.Request) string

	// Origin names who is calling, "" if that is unknown. Defaults to nobody.
	Origin func(*http.Request) string

	// Args returns the arguments of the call for the engine's checks: strings,
	// booleans, numbers. Defaults to none.
	Args func(*http.Request) []any

	// Blocked answers a request that was refused: it writes the status and the
	// body. The header fields that Fields speaks of, and Retry-After, are set
	// when it is called. The error is shared: do not write to it. Defaults to
	// [WriteProblem].
	Blocked func(http.ResponseWriter, *http.Request, *core.BlockError)

	// Fields says which responses carry the RateLimit fields. Defaults to
	// [FieldsOnRefusal].
	Fields Fields
}

// optionCount is how many options a call has at the most.
const optionCount = 3

// appendTo appends what is known of the call that r asks for.
func (o *Options) appendTo(opts []core.Option, r *http.Request) []core.Option {
	opts = append(opts, core.Inbound())
	if o.Origin != nil {
		opts = append(opts, core.Origin(o.Origin(r)))
	}
	if o.Args != nil {
		opts = append(opts, core.Args(o.Args(r)...))
	}
	return opts
}
