package penstockecho

import (
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Options configure how requests are guarded. The zero value is ready to use. The
// functions must be safe for concurrent use.
type Options struct {
	// Resource returns the name of the resource of a request, or "" if the request
	// is not to be guarded, such as a health check. Names must not come from
	// clients. Defaults to [RouteResource].
	Resource func(*echo.Context) string

	// Origin returns the name of the caller, "" if it is unknown. Defaults to "".
	Origin func(*echo.Context) string

	// Tokens returns how many tokens a call takes from its rules, at least 1: its
	// cost, for rules that count more than requests. Fewer are an error, see
	// EntryError. Defaults to 1 for every call.
	Tokens func(*echo.Context) int

	// Attributes returns attributes of your own that rules may look at, made by
	// [core.String], [core.Int] and [core.Bool], and other options of the call, such as
	// [core.NoWait]. They go before those of the request with the same key, which are
	// read only if a rule asks for them: those of [nethttp.Attributes], where "param:NAME"
	// is a parameter of echo's route. A [core.Priority] goes before Priority and
	// PriorityHeader, but is not passed on. Defaults to nothing.
	Attributes func(*echo.Context) []core.Option

	// Priority returns how important a request is, such as by its route, if its caller has
	// not chosen that by PriorityHeader. Rules see it, and the context of the handler
	// has it ([core.PriorityFromContext]), so that guarded clients pass it on. Defaults to
	// [rule.PriorityNormal].
	Priority func(*echo.Context) rule.Priority

	// PriorityHeader is the header field in which callers say how important their
	// request is, usually "Penstock-Priority". It is read only of callers whom Clients
	// or PriorityTrust name. What spells no priority is as if it were missing.
	// Defaults to none.
	PriorityHeader string

	// PriorityTrust returns whether the caller of a request may choose its priority, for
	// example by a client certificate, and the highest that it may choose. It goes before
	// Clients, and is asked only about requests with the field. Defaults to
	// nobody.
	PriorityTrust func(*echo.Context) (most rule.Priority, trusted bool)

	// Clients says which proxies in front of the server name the clients of requests, for the
	// attributes "ip" and "ipPrefix", and which callers may choose the priority of their
	// requests. The zero value believes nobody. echo's
	// IPExtractor does not matter.
	Clients clientip.Options

	// Blocked answers a request that was refused: it writes the status and the
	// body, or returns an error for echo's HTTPErrorHandler. Retry-After and the fields
	// that Fields selects are already set. The handlers after the middleware are not
	// called. The error is shared: do not change it. Defaults to a problem body, see
	// [nethttp.WriteProblem].
	Blocked func(*echo.Context, *core.BlockError) error

	// EntryError answers a request that did not pass for another reason than a
	// refusal, or returns an error for echo's HTTPErrorHandler: the context ended while the call waited (context.Canceled,
	// context.DeadlineExceeded), the engine is closed ([core.ErrClosed]), or the
	// options are invalid ([core.ErrInvalid]). The handlers after the middleware
	// are not called. Defaults to [nethttp.WriteProblem]: 499, 503, 503 and 500.
	EntryError func(c *echo.Context, err error) error

	// Failure returns whether a call that ended with the status counts as failed. The
	// status is that of the response, or of the error that the handler returned: that of
	// an [echo.HTTPStatusCoder], such as [echo.HTTPError], else 500. The error is
	// [nethttp.ErrCanceled] if the client had disconnected before the status was set, or
	// before the handler returned if the response was not begun or its status is below 500;
	// and [core.ErrBlocked] if the handler passed a refusal on, see [nethttp.MarkRefused].
	// Otherwise it is what the handler returned. Calls with one of the first two, or with a
	// refusal, that did not fail do not count as successes either. A panic always counts,
	// unless the client had disconnected. Defaults to [IsFailure].
	Failure func(status int, err error) bool

	// Fields selects the responses with RateLimit fields, and says whether
	// they and the bodies of refusals name rules. Defaults to refusals, without names.
	Fields nethttp.Fields

	// Spread has clients that are refused together come back one after the other, by a
	// Retry-After that differs. Defaults to up to a fifth more than the wait, see [nethttp.Spread].
	Spread nethttp.Spread

	// BufferBody is how many bytes of a body are read at most before the call is
	// made, 0 for none. See [nethttp.Options.BufferBody] for when to set it.
	BufferBody int64

	// Logger receives a warning, once, if the middleware runs before echo has routed: it
	// belongs in Use, not in Pre. Defaults to [slog.Default].
	Logger *slog.Logger
}

// callOptions returns what the options say of calls; of those who may choose a priority, attributes has the address.
func (o *Options) callOptions(attributes *nethttp.Attributes) nethttp.CallOptions[*echo.Context] {
	of := nethttp.CallOptions[*echo.Context]{Origin: o.Origin, Tokens: o.Tokens, Attributes: o.Attributes, Priority: o.Priority}
	if header := http.CanonicalHeaderKey(o.PriorityHeader); header != "" {
		of.Chosen = func(c *echo.Context) (rule.Priority, bool) {
			return nethttp.ChosenPriority(attributes, c.Request(), header, c, o.PriorityTrust)
		}
	}
	return of
}
