package adaptertest

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// HTTPHarness describes a framework for servers of HTTP, and its adapter.
type HTTPHarness struct {
	// Handler returns a server as a [http.Handler]. It takes the place of Serve and Direct,
	// for frameworks whose servers are handlers.
	Handler func(s Server) http.Handler

	// Serve starts a server on a port of 127.0.0.1 and returns its URL without a final
	// slash. It stops the server with t.Cleanup, waits until that has happened, and writes no log.
	Serve func(t *testing.T, s Server) string

	// Pattern returns the pattern of a route as the framework spells it, and as names of
	// resources have it: "/orders/:id" for "/orders/{id}". Patterns have wildcards of one
	// segment, and "{path...}" at the end for the rest of the path. Defaults to no change.
	Pattern func(pattern string) string

	// StatusError returns an error of the framework that handlers return to be answered with
	// the status. It must be set unless the framework lacks [StatusErrors].
	StatusError func(status int) error

	// Direct returns a function that serves requests of the server without a connection.
	// It makes what serves one request again and again, on one goroutine. Nothing may be
	// allocated there that the framework does not allocate. It must be set unless the
	// framework lacks [Direct].
	Direct func(tb testing.TB, s Server) (serves func(*http.Request) func())

	// PassAllocs and RefuseAllocs are how many allocations a request that passes, or that
	// is refused, may have more than one that passes without a guard. Default to 0.
	PassAllocs, RefuseAllocs int

	// Lacks is what the framework lacks, each with the reason.
	Lacks map[Feature]string

	// Timeout is how long tests wait for an expected event. Defaults to 30 s.
	Timeout time.Duration
}

// Server is a server to start.
type Server struct {
	// Guards are around all routes, the outermost first. Without any, the server has no
	// guard. There are several only for tests that need [NestedGuards].
	Guards []Guard

	// Routes are all routes. No two have the same pattern and method.
	Routes []Route

	// Recovered, if it is set, recovers panics outside of the guards, by the recovery of the
	// framework if it has one: it is called with the value of the panic, and
	// the client is answered with 500. If it is not set, no handler panics.
	Recovered func(value any)
}

// Guard is a guard of the adapter under test.
type Guard struct {
	Engine  *core.Engine // nil for the default engine
	Options Options
}

// Options are the options of a guard. The zero value of each stands for the adapter's
// default.
type Options struct {
	Resource       func(Request) string
	Origin         func(Request) string
	Tokens         func(Request) int
	Attributes     func(Request) []core.Option
	Priority       func(Request) rule.Priority
	PriorityHeader string
	PriorityTrust  func(Request) (most rule.Priority, trusted bool)
	Clients        clientip.Options
	Blocked        func(Exchange, *core.BlockError) error
	EntryError     func(Exchange, error) error
	Failure        func(status int, err error) bool
	Fields         nethttp.Fields
	Spread         nethttp.Spread
	BufferBody     int64
}

// Route is a route of a server.
type Route struct {
	Method  string // a standard one
	Pattern string // with "{name}" for a segment, "{name...}" for the rest of the path
	Handle  func(Exchange) error
}

// Request is a request as options and handlers see it.
type Request interface {
	// Context is what the handler would pass on.
	Context() context.Context
	Method() string
	Header(name string) string
	Query(name string) string
	// Param is a wildcard of the route, "" if there is none, or if the guard does not know.
	Param(name string) string
}

// Exchange is a request with its response. All errors are those of the framework; handlers
// return them.
type Exchange interface {
	Request

	// Body reads the body of the request to its end.
	Body() ([]byte, error)

	// SetHeader sets a header field of the response.
	SetHeader(name, value string)

	// Respond writes the status and the body, as handlers of the framework usually do.
	Respond(status int, body string) error

	// Refuse passes the refusal of another call on to the client, in the way that the
	// adapter documents.
	Refuse(err error) error

	// Stream answers with the status, and fn writes the body. The framework may call fn
	// after the handler has returned. Frameworks that lack [Streaming] need it not.
	Stream(status int, fn func(StreamWriter) error) error

	// Hijack has fn answer with the connection itself, and close it. The framework may
	// call it after the handler has returned. Frameworks that lack [Hijacking] need it not.
	Hijack(fn func(net.Conn)) error
}

// StreamWriter writes a response while the handler runs.
type StreamWriter interface {
	io.StringWriter
	Flush() error
}

// HTTP runs the conformance suite for a framework for servers of HTTP.
func HTTP(t *testing.T, h HTTPHarness) {
	t.Helper()
	h.fill()
	runAll(t, &h, h.Lacks, h.Timeout, httpTests())
}

func (h *HTTPHarness) fill() {
	h.Timeout = cmp.Or(h.Timeout, eventTimeout)
	if h.Handler == nil {
		return
	}
	h.Serve = func(t *testing.T, s Server) string {
		t.Helper()
		return ServeHandler(t, h.Handler(s)).URL
	}
	h.Direct = func(_ testing.TB, s Server) func(*http.Request) func() { return directly(h.Handler(s)) }
}

// httpTest is a test of the suite.
type httpTest = conformanceTest[*HTTPHarness]

// httpTests returns all tests of the suite.
func httpTests() []httpTest {
	return slices.Concat(
		httpNameTests(), httpRefusalTests(), httpOptionTests(), httpPriorityTests(), httpOutcomeTests(),
		httpStreamTests(), httpWaitTests(), httpContextTests(), httpLimitTests(), httpDirectTests(),
	)
}

// resource returns the name of the resource of a route.
func (h *HTTPHarness) resource(method, pattern string) string {
	if h.Pattern != nil {
		pattern = h.Pattern(pattern)
	}
	return method + ":" + pattern
}

// ordersPattern is the route of most tests, which has only GET.
const ordersPattern = "/orders/{id}"

// orders is the resource of the route of most tests.
func (h *HTTPHarness) orders() string { return h.resource(http.MethodGet, ordersPattern) }

// serveOrders starts a server with one guard and one route, and returns a client of it.
func (h *HTTPHarness) serveOrders(t *testing.T, engine *core.Engine, options Options, handle func(Exchange) error) *httpClient {
	t.Helper()
	return h.serve(t, Server{Guards: []Guard{{engine, options}}, Routes: ordersRoutes(handle)})
}

func ordersRoutes(handle func(Exchange) error) []Route {
	return []Route{{http.MethodGet, ordersPattern, handle}}
}

// serve starts a server and returns a client of it.
func (h *HTTPHarness) serve(t *testing.T, s Server) *httpClient {
	t.Helper()
	if s.Recovered != nil {
		missing(h.Lacks).need(t, Recovery)
	}
	if len(s.Guards) > 1 {
		missing(h.Lacks).need(t, NestedGuards)
	}
	var engines []*core.Engine
	s.Guards = slices.Clone(s.Guards)
	for i := range s.Guards {
		guard := &s.Guards[i]
		engines = append(engines, guard.Engine)
		if guard.Options.Spread.Share == 0 && guard.Options.Spread.Random == nil {
			guard.Options.Spread.Share = -1 // so that each Retry-After is known
		}
	}
	t.Cleanup(func() { requireNoneUnderWay(t, h.Timeout, engines) }) // after the server has stopped
	url := h.Serve(t, s)
	t.Cleanup(func() { releaseAfterFailure(t, engines) })
	return newHTTPClient(t, url, h.Timeout)
}

// limited returns a rule of so many calls a second of the resource of most tests.
func (h *HTTPHarness) limited(limit float64) rules.Set {
	return rules.Set{Flow: []flow.Rule{{Name: "reads", Resource: h.orders(), Limit: limit}}}
}

// ok answers 200.
func ok(x Exchange) error { return x.Respond(http.StatusOK, "ok") }

// respond returns a handler that answers with a status.
func respond(status int) func(Exchange) error {
	return func(x Exchange) error { return x.Respond(status, http.StatusText(status)) }
}
