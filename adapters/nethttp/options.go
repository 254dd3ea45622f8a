package nethttp

import (
	"log/slog"
	"net/http"

	"github.com/penstock-go/penstock/core"
)

// Options say how requests are guarded. The zero value is a good one. The
// functions must be safe for concurrent use.
type Options struct {
	// Resource names the resource that a request is a call of; where it returns
	// "", the request is not guarded, which is for health checks and the like.
	// Names must not come from clients: map paths to routes, see [RouteResource].
	// Defaults to [MuxResource] when the middleware is directly around a
	// [http.ServeMux] or something that embeds one, else to [PatternResource].
	Resource func(*http.Request) string

	// Origin names who is calling, "" if that is unknown. Defaults to nobody.
	Origin func(*http.Request) string

	// Tokens is how many tokens of its rules a call takes, from 1: what it costs,
	// for rules that count more than requests. A call of fewer is a mistake of
	// the program, see EntryError. Defaults to 1 for every call.
	Tokens func(*http.Request) int

	// Blocked answers a request that was refused: it writes the status and the
	// body. The header fields that Fields speaks of, and Retry-After, are set
	// when it is called. The error is shared: do not write to it. Defaults to
	// a problem body, see [WriteProblem].
	Blocked func(http.ResponseWriter, *http.Request, *core.BlockError)

	// EntryError answers a request that was not let through for another reason
	// than a refusal: with err the caller's context ended while the call waited
	// (context.Canceled, context.DeadlineExceeded), the engine is closed
	// ([core.ErrClosed]), or the options make no sense ([core.ErrInvalid]).
	// Defaults to [WriteProblem]: 499, 503, 503 and 500.
	EntryError func(w http.ResponseWriter, r *http.Request, err error)

	// Failure says whether a call that was answered with the status counts as
	// failed. The error is [ErrCanceled] if the client had left before the
	// answer began, else nil. A panic always counts, unless the client had left.
	// Defaults to [IsFailure]: from 500 up, unless the client had left.
	Failure func(status int, err error) bool

	// Fields says which responses carry the RateLimit fields, and whether
	// refusals name rules at all. Defaults to [FieldsOnRefusal].
	Fields Fields

	// BufferBody is up to how many bytes of a body are read before the call is
	// made, 0 for none. Set it where calls may wait and requests have bodies: over
	// HTTP/1.1 the server does not notice before the body was read that a client
	// has left, and the call of such a client keeps its turn in the queue. Each
	// request that is read takes that memory and has not passed any rule yet, and
	// reading lasts as long as the client takes: set [http.Server.ReadTimeout]
	// too. See [BufferBody] for the bodies that are left alone.
	BufferBody int64

	// Logger is warned, once, when the middleware cannot tell the routes of
	// requests: then rules on routes limit nothing. Defaults to [slog.Default].
	Logger *slog.Logger
}

// optionCount is how many options a call has at the most.
const optionCount = 4

// origin names who is calling.
func (o *Options) origin(r *http.Request) string {
	if o.Origin == nil {
		return ""
	}
	return o.Origin(r)
}

// appendTo appends what is known of the call that r asks for.
func (o *Options) appendTo(opts []core.Option, r *http.Request, origin string) []core.Option {
	opts = append(opts, core.Inbound())
	if origin != "" {
		opts = append(opts, core.Origin(origin))
	}
	if o.Tokens != nil {
		opts = append(opts, core.Tokens(o.Tokens(r)))
	}
	return opts
}
