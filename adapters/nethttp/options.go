package nethttp

import (
	"log/slog"
	"net/http"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Options configure how requests are guarded. The zero value is ready to use. The
// functions must be safe for concurrent use.
type Options struct {
	// Resource returns the name of the resource of a request, or "" if the request
	// is not to be guarded, such as a health check. Names must not come from
	// clients: map paths to routes, see [RouteResource]. Defaults to [MuxResource]
	// if the middleware is directly around a [http.ServeMux] or a type that embeds
	// one, else to [PatternResource].
	Resource func(*http.Request) string

	// Origin returns the name of the caller, "" if it is unknown. Defaults to "".
	Origin func(*http.Request) string

	// Tokens returns how many tokens a call takes from its rules, at least 1: its
	// cost, for rules that count more than requests. Fewer are an error, see
	// EntryError. Defaults to 1 for every call.
	Tokens func(*http.Request) int

	// Attributes returns attributes of your own that rules may look at, made by
	// [core.String], [core.Int] and [core.Bool], and other options of the call, such as
	// [core.NoWait]. They go before those of the request with the same key, see
	// [Attributes], which are read only if a rule asks for them. A [core.Priority] goes
	// before Priority and PriorityHeader, but is not passed on. Defaults to nothing.
	Attributes func(*http.Request) []core.Option

	// Param returns the value of a wildcard of the route, unescaped, and whether the route
	// has it: the attribute "param:NAME". It is for routers that do not set
	// [http.Request.SetPathValue] before the middleware runs, and is asked only if a rule
	// needs it. Where it returns false, and by default, it is the wildcard of the
	// [http.ServeMux], see [Attributes].
	Param func(r *http.Request, name string) (value string, ok bool)

	// Priority returns how important a request is, such as by its route, if its caller has
	// not chosen that by PriorityHeader. Rules see it, and the context of the handler
	// has it ([core.PriorityFromContext]), so that guarded clients pass it on. Defaults to
	// [rule.PriorityNormal].
	Priority func(*http.Request) rule.Priority

	// PriorityHeader is the header field in which callers say how important their
	// request is, usually "Penstock-Priority". It is read only of callers whom Clients
	// or PriorityTrust name. What spells no priority is as if it were missing.
	// Defaults to none.
	PriorityHeader string

	// PriorityTrust returns whether the caller of a request may choose its priority, for
	// example by a client certificate, and the highest that it may choose. It goes before
	// Clients, and is asked only about requests with the field. Defaults to
	// nobody.
	PriorityTrust func(*http.Request) (most rule.Priority, trusted bool)

	// Clients says which proxies in front of the server name the clients of requests, for the
	// attributes "ip" and "ipPrefix", and which callers may choose the priority of their
	// requests. The zero value believes nobody.
	Clients clientip.Options

	// Blocked answers a request that was refused: it writes the status and the
	// body. Retry-After and the fields that Fields selects are already set. The
	// error is shared: do not change it. Defaults to a problem body, see
	// [WriteProblem].
	Blocked func(http.ResponseWriter, *http.Request, *core.BlockError)

	// EntryError answers a request that did not pass for another reason than a
	// refusal: the context ended while the call waited (context.Canceled,
	// context.DeadlineExceeded), the engine is closed ([core.ErrClosed]), or the
	// options are invalid ([core.ErrInvalid]). Defaults to [WriteProblem]: 499,
	// 503, 503 and 500.
	EntryError func(w http.ResponseWriter, r *http.Request, err error)

	// Failure returns whether a call that was answered with the status counts as
	// failed. The error is [ErrCanceled] if the client had disconnected before the
	// response began, [core.ErrBlocked] if the handler passes a refusal on, see
	// [MarkRefused], else nil. Calls with one of the two that did not fail do not count
	// as successes either. A panic always counts, unless the client had disconnected.
	// Defaults to [IsFailure]: 500 or above without an error.
	Failure func(status int, err error) bool

	// Fields selects the responses with RateLimit fields, and says whether
	// they and the bodies of refusals name rules. Defaults to refusals, without names.
	Fields Fields

	// Spread has clients that are refused together come back one after the other, by a
	// Retry-After that differs. Defaults to up to a fifth more than the wait, see [Spread].
	Spread Spread

	// BufferBody is how many bytes of a body are read at most before the call is
	// made, 0 for none. Set it if calls may wait and requests have bodies: with
	// HTTP/1.1 the server notices that a client has disconnected only after the
	// body was read, and until then its call keeps its place in the queue. Each
	// such request takes that memory before it has passed any rule, and reading
	// takes as long as the client wants: set [http.Server.ReadTimeout] too. See
	// [BufferBody] for the bodies that are not read.
	BufferBody int64

	// Logger receives a warning, once, if the middleware cannot determine the
	// routes of requests: rules for routes then have no effect. Defaults to
	// [slog.Default].
	Logger *slog.Logger
}

// callOptions returns the options of calls; of those who may choose a priority, attributes has the address.
func (o *Options) callOptions(attributes *Attributes) CallOptions[*http.Request] {
	of := CallOptions[*http.Request]{Origin: o.Origin, Tokens: o.Tokens, Attributes: o.Attributes, Priority: o.Priority}
	if header := http.CanonicalHeaderKey(o.PriorityHeader); header != "" {
		of.Chosen = func(r *http.Request) (rule.Priority, bool) {
			return ChosenPriority(attributes, r, header, r, o.PriorityTrust)
		}
	}
	return of
}
