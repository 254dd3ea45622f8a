package penstockfiber

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gofiber/fiber/v3"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Middleware returns a handler that makes every request a guarded call of the engine, of
// [penstock.Default] if that is nil. The call lasts until the handlers after it have
// returned, and until the response was written if it is a stream or the connection was
// hijacked.
//
// The call counts as failed if the status is 500 or above, if the handler returns an error
// that is not answered with a 4xx, which blames the client, or if it panics. If the context of
// the request was cancelled before, or if the handler passes a refusal on, by [WriteProblem],
// [MarkRefused] or as its error, it counts neither as failed nor as a success. Errors
// and panics are passed on: fiber's ErrorHandler answers errors further out, and recover may
// be before or after this middleware.
//
// The status of an error that the handler returns is that of a [fiber.Error], and 500 of any
// other. If an ErrorHandler of your own answers other errors with a 4xx, set
// [Options.Failure].
//
// A request that passes two such middlewares with the same engine and the same resource is
// one call.
//
// The middleware compares names with the routes that have served the requests, and logs a
// warning once if they differ: if the path was rewritten further in, if a route has a custom
// constraint, or if a handler in Use answers, which is no route.
func Middleware(engine *core.Engine, options Options) fiber.Handler {
	if engine == nil {
		engine = penstock.Default()
	}
	m := &middleware{engine: engine, answers: nethttp.NewAnswers(engine, options.Fields, options.Spread)}
	if options.Resource == nil {
		options.Resource, m.byRoute = m.finder.resource, true
	}
	if options.Failure == nil {
		options.Failure = IsFailure
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	m.options = options
	m.methods = nethttp.NewRouteMethods(engine, options.Logger)
	m.attributes = attributes{clients: clientip.New(options.Clients), finder: &m.finder}
	m.attribute = m.attributes.of
	m.callOptions = m.optionsOfCalls()
	return m.handle
}

type middleware struct {
	engine      *core.Engine
	options     Options
	callOptions nethttp.CallOptions[fiber.Ctx]
	answers     *nethttp.Answers
	finder      finder
	byRoute     bool // requests are named by their routes
	methods     *nethttp.RouteMethods
	warned      atomic.Bool
	calls       sync.Pool // of *call
	contexts    core.CallContexts
	writers     sync.Pool // of *responseWriter

	attributes attributes
	attribute  func(*call, string) rule.Attribute // a method of attributes
}

func (m *middleware) handle(c fiber.Ctx) error {
	resource := m.options.Resource(c)
	if resource == "" || isGuarded(c, m.engine, resource) {
		return c.Next()
	}
	guarded, ok := m.calls.Get().(*call)
	if !ok {
		guarded = new(call)
	}
	*guarded = call{ctx: c, engine: m.engine, resource: resource, parent: c.Context()}
	var few [nethttp.UsualOptions]core.Option
	opts := append(few[:0], core.Inbound(), core.Attributes(m.attribute, guarded))
	opts, origin, p, known := m.callOptions.Append(opts, c)
	guard, err := m.engine.Entry(guarded.parent, resource, opts...)
	if err != nil {
		defer m.put(guarded) // the options have it
		return m.refuse(c, err, origin, opts)
	}
	runtime.Gosched() // as nethttp does: requests that wait for a processor come to their rules first
	entered := false
	defer func() {
		if !entered { // an attribute, or a rule, has panicked that the fields are made of
			guard.Exit()
		}
	}()
	if m.options.Fields.Always {
		w := m.writer(c)
		m.answers.SetPassed(w.header, resource, origin, opts...)
		w.setFields()
		m.writers.Put(w)
	}
	guarded.CallContext = m.contexts.New(guarded.parent, &guard)
	entered = true
	with := context.Context(guarded.CallContext)
	if known {
		with = core.ContextWithPriority(with, p)
	}
	parent := guarded.parent
	c.SetContext(with)
	defer func() {
		if c.Context() == with {
			c.SetContext(parent)
		}
	}()
	return m.serve(guarded)
}

// put returns a call that nobody refers to to the pool.
func (m *middleware) put(of *call) {
	*of = call{}
	m.calls.Put(of)
}

// optionsOfCalls returns what the options say of calls.
func (m *middleware) optionsOfCalls() nethttp.CallOptions[fiber.Ctx] {
	o := &m.options
	of := nethttp.CallOptions[fiber.Ctx]{Tokens: o.Tokens, Attributes: o.Attributes, Priority: o.Priority}
	if o.Origin != nil {
		of.Origin = func(c fiber.Ctx) string { return strings.Clone(o.Origin(c)) } // it may be memory that fiber reuses
	}
	if o.PriorityHeader != "" {
		of.Chosen = m.chosenPriority
	}
	return of
}

// chosenPriority returns the priority that the caller has chosen and may choose.
func (m *middleware) chosenPriority(c fiber.Ctx) (p rule.Priority, ok bool) {
	var trust func() (rule.Priority, bool)
	if m.options.PriorityTrust != nil {
		trust = func() (rule.Priority, bool) { return m.options.PriorityTrust(c) }
	}
	var few [2]string
	lines := headerLines(few[:0], c, m.options.PriorityHeader)
	return m.attributes.clients.Priority(lines, trust, func() clientip.Address { return m.attributes.client(c) })
}

// serve runs the handlers of a call that passed.
func (m *middleware) serve(call *call) (err error) {
	c, returned := call.ctx, false
	call.outer = callOf(c)
	c.RequestCtx().SetUserValue(callKey{}, call)
	defer m.end(call) // also if Failure panics
	defer func() {
		switch {
		case returned:
			status, cause := statusOf(c, err), call.cause(err)
			call.With(func(guard *core.Guard) { nethttp.MarkOutcome(guard, m.options.Failure, status, cause) })
		case core.Canceled(c.Context()), core.Canceled(call.parent):
			call.With((*core.Guard).MarkIgnored)
		default:
			call.With((*core.Guard).MarkFailed)
		}
	}()
	err = c.Next()
	returned = true
	if m.byRoute {
		m.check(call, err)
		m.checkMethods(c)
	}
	return err
}

// end ends a call, or leaves that to fasthttp if the response outlasts the handler.
func (m *middleware) end(call *call) {
	request := call.ctx.RequestCtx()
	defer m.close(call) // also if a rule panics
	if request.Hijacked() || nethttp.IsEventStream(string(request.Response.Header.ContentType())) {
		call.With((*core.Guard).MarkLongLived)
	}
}

func (m *middleware) close(call *call) {
	request := call.ctx.RequestCtx()
	switch {
	case request.LastTimeoutErrorResponse() != nil: // the handler still runs, and uses the request and the call
		call.exit()
	case request.Hijacked(), request.Response.IsBodyStream():
		call.lasting = true
	default:
		call.exit()
		call.remove()
		m.put(call)
	}
}

func (m *middleware) refuse(c fiber.Ctx, err error, origin string, opts []core.Option) error {
	block, _ := err.(*core.BlockError)                 //nolint:errorlint // Entry does not wrap it, and errors.As allocates
	if block != nil && block.Reason != rule.Injected { // which is as good as a failure
		MarkRefused(c) // of the calls further out
	}
	switch {
	case block == nil && m.options.EntryError != nil:
		return m.options.EntryError(c, err)
	case block == nil:
		return WriteProblem(c, err)
	}
	w := m.writer(c)
	defer m.writers.Put(w)
	if m.options.Blocked != nil {
		m.answers.SetRefused(w.header, block, origin, opts...)
		w.setFields()
		return m.options.Blocked(c, block)
	}
	m.answers.WriteRefused(w, block, origin, opts...)
	return nil
}

// writer returns a writer of a response, without header fields.
func (m *middleware) writer(c fiber.Ctx) *responseWriter {
	w, ok := m.writers.Get().(*responseWriter)
	if !ok {
		w = &responseWriter{header: make(http.Header)}
	}
	w.ctx = c
	clear(w.header)
	return w
}

// WriteProblem answers a request to which [core.Engine.Entry] returned err, with a problem
// body, as [nethttp.WriteProblem] does. A refusal that a handler passes on so does not make
// its own call a failed one, unless it is an injected fault. The error that it returns is
// always nil.
func WriteProblem(c fiber.Ctx, err error) error {
	nethttp.WriteProblem(&responseWriter{c, make(http.Header)}, err)
	return nil
}

// statusOf returns the status with which a request is answered whose handler returned err.
func statusOf(c fiber.Ctx, err error) int {
	if err == nil {
		return c.Response().StatusCode()
	}
	var with *fiber.Error
	if errors.As(err, &with) {
		return with.Code
	}
	return fiber.StatusInternalServerError
}

// cause returns why a call ended that counts neither as failed nor as a success, else the
// error that the handler returned.
func (c *call) cause(err error) error {
	switch {
	case core.Canceled(c.ctx.Context()), core.Canceled(c.parent):
		return nethttp.ErrCanceled
	case c.refused:
		return core.ErrBlocked
	}
	return err
}

// IsFailure is the default of [Options.Failure]: it is [nethttp.IsHandlerFailure].
func IsFailure(status int, err error) bool { return nethttp.IsHandlerFailure(status, err) }

// checkMethods warns of rules for one method of the route that has served a request, if that serves all.
func (m *middleware) checkMethods(c fiber.Ctx) {
	if c.Matched() && c.RequestCtx().LastTimeoutErrorResponse() == nil {
		path := c.Route().Path
		m.methods.CheckIf(path, func() bool { return m.finder.of(c.App()).alls[path] })
	}
}

// check warns once if a request was served by something else than what it is named after.
func (m *middleware) check(call *call, err error) {
	c := call.ctx
	if m.warned.Load() || c.RequestCtx().LastTimeoutErrorResponse() != nil {
		return
	}
	served := c.Route().Path
	switch {
	case c.Matched():
		method, route := c.Method(), m.finder.of(c.App())
		named := route.named(method, served)
		if !route.routes[endpoint{method, served}] || m.finder.names.Name(named.method, named.path) == call.resource {
			return // the first is a handler of Use that a route has called with Next
		}
	case err != nil, statusOf(c, nil) >= fiber.StatusMultipleChoices, call.resource != nethttp.Unmatched:
		return
	}
	if m.warned.Swap(true) {
		return
	}
	m.options.Logger.LogAttrs(c.Context(), slog.LevelWarn,
		"penstock: the fiber middleware names requests by another route than what serves them, rules on that route "+
			"do not limit them: put it at the route, or set penstockfiber.Options.Resource",
		slog.String("resource", call.resource), slog.String("served", served))
}
