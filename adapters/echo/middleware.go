package penstockecho

import (
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/labstack/echo/v5"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Middleware returns a middleware that makes every request a guarded call of
// the engine, of [penstock.Default] if that is nil. The call lasts until the
// handlers after it have returned.
//
// The call counts as failed if the status is 500 or above, if the handler returns an error
// that is not answered with a 4xx, which blames the client, or if it panics. If the client
// had disconnected before, or if the handler passes a refusal on, by
// [nethttp.WriteProblem], [nethttp.MarkRefused] or as its error, it counts neither as
// failed nor as a success. Errors and panics are passed on: echo's HTTPErrorHandler
// answers errors further out, and Recover may be before or after this middleware.
//
// The status of an error that the handler returns is that of an [echo.HTTPStatusCoder],
// such as [echo.HTTPError], and 500 of any other. If an HTTPErrorHandler of your own
// answers other errors with a 4xx, set [Options.Failure].
//
// A request that passes two such middlewares with the same engine and the same
// resource is one call. The inner one finds the outer one through c.Response(): wrappers
// in between must have a method Unwrap, as echo itself requires. Use
// [echo.UnwrapResponse] where you need the [echo.Response].
func Middleware(engine *core.Engine, options Options) echo.MiddlewareFunc {
	if engine == nil {
		engine = penstock.Default()
	}
	m := &middleware{engine: engine, answers: nethttp.NewAnswers(engine, options.Fields, options.Spread)}
	if options.Resource == nil {
		options.Resource, m.byRoute = RouteResource(), true
	}
	if options.Failure == nil {
		options.Failure = IsFailure
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	m.options = options
	m.methods = nethttp.NewRouteMethods(engine, options.Logger)
	m.attributes.ofRequest = nethttp.NewAttributes(options.Clients)
	m.callOptions = m.options.callOptions(m.attributes.ofRequest)
	m.attribute = m.attributes.of
	m.writers.New = func() any { return new(writer) }
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error { return m.handle(c, next) }
	}
}

type middleware struct {
	engine      *core.Engine
	options     Options
	callOptions nethttp.CallOptions[*echo.Context]
	answers     *nethttp.Answers
	writers     sync.Pool // of *writer
	byRoute     bool      // requests are named by their routes
	warned      atomic.Bool
	methods     *nethttp.RouteMethods

	attributes attributes
	attribute  func(c *echo.Context, key string) rule.Attribute // a method of attributes
	requests   nethttp.Requests
}

func (m *middleware) handle(c *echo.Context, next echo.HandlerFunc) error {
	resource := m.options.Resource(c)
	if resource == "" || nethttp.IsGuarded(c.Response(), m.engine, resource) {
		return next(c)
	}
	if m.byRoute && resource == nethttp.Unmatched {
		m.warnOfRouting(c)
	}
	nethttp.BufferBody(c.Request(), m.options.BufferBody)
	var few [nethttp.UsualOptions]core.Option
	opts := append(few[:0], core.Inbound(), core.Attributes(m.attribute, c))
	opts, origin, p, known := m.callOptions.Append(opts, c)
	guard, err := m.engine.Entry(c.Request().Context(), resource, opts...)
	if err != nil {
		return m.refuse(c, err, origin, opts)
	}
	runtime.Gosched() // as nethttp does: requests that wait for a processor come to their rules first
	before := c.Request()
	with, call := m.requests.Enter(before, &guard, p, known)
	defer call.Guard().Exit() // also if the ResponseWriter or Failure panics
	m.answers.SetPassed(c.Response().Header(), resource, origin, opts...)
	c.SetRequest(with)
	defer func() {
		nethttp.HandBack(c.Request(), before)
		if c.Request() == with {
			c.SetRequest(before)
		}
	}()
	return m.serve(c, next, resource, call)
}

// serve runs the handlers of a call that passed.
func (m *middleware) serve(c *echo.Context, next echo.HandlerFunc, resource string, call *core.CallContext) (err error) {
	w := m.writers.Get().(*writer)
	*w = writer{ResponseWriter: c.Response(), GuardedCall: nethttp.GuardedCall{Engine: m.engine, Resource: resource}, ctx: c.Request().Context()}
	returned := false
	defer func() {
		call.End()
		guard := call.Guard()
		if w.takenOver || w.status == http.StatusSwitchingProtocols || nethttp.IsEventStream(w.Header().Get("Content-Type")) {
			guard.MarkLongLived()
		}
		switch {
		case returned:
			status := w.statusOf(err)
			nethttp.MarkOutcome(guard, m.options.Failure, status, w.cause(status, err))
		case nethttp.Canceled(w.ctx):
			guard.MarkIgnored()
		default:
			guard.MarkFailed()
		}
		c.SetResponse(w.ResponseWriter)
		*w = writer{}
		m.writers.Put(w)
	}()
	c.SetResponse(w)
	err = next(c)
	returned = true
	if m.byRoute {
		m.methods.CheckIf(c.Path(), func() bool { return c.RouteInfo().Method == echo.RouteAny })
	}
	return err
}

func (m *middleware) refuse(c *echo.Context, err error, origin string, opts []core.Option) error {
	block, _ := err.(*core.BlockError)                 //nolint:errorlint // Entry does not wrap it, and errors.As allocates
	if block != nil && block.Reason != rule.Injected { // which is as good as a failure
		nethttp.MarkRefused(c.Response()) // of the calls further out
	}
	switch {
	case block == nil && m.options.EntryError != nil:
		return m.options.EntryError(c, err)
	case block == nil:
		nethttp.WriteProblem(c.Response(), err)
	case m.options.Blocked != nil:
		m.answers.SetRefused(c.Response().Header(), block, origin, opts...)
		return m.options.Blocked(c, block)
	default:
		m.answers.WriteRefused(c.Response(), block, origin, opts...)
	}
	return nil
}

// statusOf returns the status of a call whose handler returned err: that of the response if
// it has begun, else that with which echo answers the error.
func (w *writer) statusOf(err error) int {
	if w.status != 0 {
		return w.status
	}
	_, status := echo.ResolveResponseStatus(w.ResponseWriter, err)
	return status
}

// cause returns why a call ended that counts neither as failed nor as a success, else the
// error that the handler returned.
func (w *writer) cause(status int, err error) error {
	early := !w.begun || status < http.StatusInternalServerError
	switch {
	// The error may be newer than the status, and caused by a client that has disconnected since.
	case w.canceled, early && nethttp.Canceled(w.ctx):
		return nethttp.ErrCanceled
	case w.refused:
		return core.ErrBlocked
	}
	return err
}

// IsFailure is the default of [Options.Failure]: it is [nethttp.IsHandlerFailure].
func IsFailure(status int, err error) bool { return nethttp.IsHandlerFailure(status, err) }
