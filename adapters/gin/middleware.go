package penstockgin

import (
	"net/http"
	"runtime"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Middleware returns a middleware that makes every request a guarded call of
// the engine, of [penstock.Default] if that is nil. The call lasts until the
// handlers after it have returned.
//
// The call counts as failed if the handlers set a status of 500 or above, if they
// added to c.Errors without setting a 4xx, which blames the client, or if one of
// them panicked. If the client had disconnected before, or if the handlers pass a
// refusal on, by [nethttp.WriteProblem], [nethttp.MarkRefused] or in c.Errors, it counts
// neither as failed nor as a success. The panic is passed on: use gin.Recovery as usual, before or after this middleware.
//
// A request that passes two such middlewares with the same engine and the same
// resource is one call. The inner one finds the outer one through c.Writer: wrappers
// in between must have a method Unwrap, as for [http.ResponseController].
func Middleware(engine *core.Engine, options Options) gin.HandlerFunc {
	if engine == nil {
		engine = penstock.Default()
	}
	var methods *routeMethods
	if options.Resource == nil {
		options.Resource, methods = RouteResource(), newRouteMethods(engine)
	}
	if options.Failure == nil {
		options.Failure = IsFailure
	}
	m := &middleware{
		methods: methods,
		engine:  engine, options: options, answers: nethttp.NewAnswers(engine, options.Fields, options.Spread),
	}
	m.attributes.ofRequest = nethttp.NewAttributes(options.Clients)
	m.callOptions = m.options.callOptions(m.attributes.ofRequest)
	m.attribute = m.attributes.of
	m.writers.New = func() any { return new(writer) }
	return m.handle
}

type middleware struct {
	engine      *core.Engine
	options     Options
	callOptions nethttp.CallOptions[*gin.Context]
	answers     *nethttp.Answers
	writers     sync.Pool // of *writer

	attributes attributes
	attribute  func(c *gin.Context, key string) rule.Attribute // a method of attributes
	requests   nethttp.Requests
	methods    *routeMethods // nil if requests are not named by their routes
}

func (m *middleware) handle(c *gin.Context) {
	resource := m.options.Resource(c)
	if resource == "" || nethttp.IsGuarded(c.Writer, m.engine, resource) {
		return
	}
	nethttp.BufferBody(c.Request, m.options.BufferBody)
	var few [nethttp.UsualOptions]core.Option
	opts := append(few[:0], core.Inbound(), core.Attributes(m.attribute, c))
	opts, origin, p, known := m.callOptions.Append(opts, c)
	guard, err := m.engine.Entry(c.Request.Context(), resource, opts...)
	if err != nil {
		m.refuse(c, err, origin, opts)
		return
	}
	runtime.Gosched() // as nethttp does: requests that wait for a processor come to their rules first
	before := c.Request
	with, call := m.requests.Enter(before, &guard, p, known)
	defer call.Guard().Exit() // also if the ResponseWriter or Failure panics
	m.answers.SetPassed(c.Writer.Header(), resource, origin, opts...)
	c.Request = with
	defer func() {
		nethttp.HandBack(c.Request, before)
		if c.Request == with {
			c.Request = before
		}
	}()
	m.serve(c, resource, call)
}

// serve runs the handlers of a call that passed.
func (m *middleware) serve(c *gin.Context, resource string, call *core.CallContext) {
	w := m.writers.Get().(*writer)
	*w = writer{ResponseWriter: c.Writer, GuardedCall: nethttp.GuardedCall{Engine: m.engine, Resource: resource}, ctx: c.Request.Context()}
	before, returned := len(c.Errors), false
	defer func() {
		call.End()
		guard := call.Guard()
		if w.takenOver || w.Status() == http.StatusSwitchingProtocols || nethttp.IsEventStream(w.Header().Get("Content-Type")) {
			guard.MarkLongLived()
		}
		switch {
		case returned:
			nethttp.MarkOutcome(guard, m.options.Failure, c.Writer.Status(), m.cause(c, w, before))
		case nethttp.Canceled(w.ctx):
			guard.MarkIgnored()
		default:
			guard.MarkFailed()
		}
		c.Writer = w.ResponseWriter
		*w = writer{}
		m.writers.Put(w)
	}()
	c.Writer = w
	c.Next()
	returned = true
	if m.methods != nil {
		m.methods.served(c)
	}
}

func (m *middleware) refuse(c *gin.Context, err error, origin string, opts []core.Option) {
	c.Abort()
	block, _ := err.(*core.BlockError)                 //nolint:errorlint // Entry does not wrap it, and errors.As allocates
	if block != nil && block.Reason != rule.Injected { // which is as good as a failure
		nethttp.MarkRefused(c.Writer) // of the calls further out
	}
	switch {
	case block == nil && m.options.EntryError != nil:
		m.options.EntryError(c, err)
	case block == nil:
		nethttp.WriteProblem(c.Writer, err)
	case m.options.Blocked != nil:
		m.answers.SetRefused(c.Writer.Header(), block, origin, opts...)
		m.options.Blocked(c, block)
	default:
		m.answers.WriteRefused(c.Writer, block, origin, opts...)
	}
}

// cause returns why a call ended that counts neither as failed nor as a success, else
// the error that the handlers added to c.Errors, nil if they added none. before is the
// number of c.Errors when the call began.
func (m *middleware) cause(c *gin.Context, w *writer, before int) error {
	switch {
	// The error may be newer than the status, and caused by a client that has disconnected since.
	case w.canceled, c.Writer.Status() < http.StatusInternalServerError && nethttp.Canceled(w.ctx):
		return nethttp.ErrCanceled
	case w.refused:
		return core.ErrBlocked
	case len(c.Errors) > before:
		return c.Errors.Last()
	}
	return nil
}

// IsFailure is the default of [Options.Failure]: it is [nethttp.IsHandlerFailure].
func IsFailure(status int, err error) bool { return nethttp.IsHandlerFailure(status, err) }
