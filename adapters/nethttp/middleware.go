package nethttp

import (
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Middleware returns a middleware that makes every request a guarded call of
// the engine, of [penstock.Default] if that is nil. The call lasts until the
// handler returns. It counts as failed if the status is 500 or above, or if the
// handler panics. If the client had disconnected before, or if the handler passes a
// refusal on, see [MarkRefused], it counts neither as failed nor as a success. The panic
// is passed on.
//
// Put it directly around a [http.ServeMux] or around single handlers that a mux
// calls, which saves one look-up of the pattern. Around anything else the route is
// not known yet: set [Options.Resource], to [MuxResource] if there is an inner mux,
// or to [RouteResource] with the route of another router. A middleware that cannot
// determine the routes logs a warning once; set Resource to [PatternResource] if you
// want the pattern of an outer mux.
//
// A request that passes two such middlewares with the same engine and the same
// resource is one call. The inner one finds the outer one through the ResponseWriter:
// wrappers in between must have a method Unwrap, as for [http.ResponseController].
//
// The ResponseWriter of the handler is a [http.Flusher] and a [http.Hijacker] if the
// original is, and always an [io.ReaderFrom] and an [io.StringWriter].
// [http.ResponseController] gives access to the rest, such as deadlines and full
// duplex. [http.Pusher] and the deprecated http.CloseNotifier are not supported.
func Middleware(engine *core.Engine, options Options) func(http.Handler) http.Handler {
	if engine == nil {
		engine = penstock.Default()
	}
	if options.Failure == nil {
		options.Failure = IsFailure
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	m := &middleware{
		engine: engine, options: options, answers: NewAnswers(engine, options.Fields, options.Spread),
	}
	m.methods = NewRouteMethods(engine, options.Logger)
	clients := clientip.New(options.Clients)
	return func(next http.Handler) http.Handler {
		mux := muxWithin(next)
		h := &handler{middleware: m, next: next, resource: options.Resource}
		h.attributes = &Attributes{
			clients: clients, mux: mux, other: options.Param, logger: options.Logger, warned: &m.warnedOfParams,
		}
		h.attribute = h.attributes.Attribute
		h.callOptions = options.callOptions(h.attributes)
		if h.resource == nil {
			h.byDefault, h.byPattern = true, mux == nil
			h.resource = PatternResource()
			if mux != nil {
				h.resource = MuxResource(mux)
			}
		}
		return h
	}
}

// muxWithin returns the handler as a mux, nil if it is none.
func muxWithin(next http.Handler) Mux {
	for again, ok := next.(*handler); ok; again, ok = next.(*handler) { // a middleware around another
		next = again.next
	}
	mux, _ := next.(Mux)
	return mux
}

// middleware is what the handlers of one middleware share.
type middleware struct {
	engine  *core.Engine
	options Options
	answers *Answers

	methods *RouteMethods
	warned  atomic.Bool // of routes

	warnedOfParams atomic.Bool
}

type handler struct {
	*middleware
	next        http.Handler
	attributes  *Attributes
	callOptions CallOptions[*http.Request]
	attribute   func(r *http.Request, key string) rule.Attribute // a method of attributes
	resource    func(*http.Request) string
	byDefault   bool // resource is the default
	byPattern   bool // resource uses the pattern that the request already has
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := h.resource(r)
	if resource == "" || IsGuarded(w, h.engine, resource) {
		h.next.ServeHTTP(w, r)
		return
	}
	BufferBody(r, h.options.BufferBody)
	var few [UsualOptions]core.Option
	opts := append(few[:0], core.Inbound(), core.Attributes(h.attribute, r))
	opts, origin, p, known := h.callOptions.Append(opts, r)
	guard, err := h.engine.Entry(r.Context(), resource, opts...)
	if err != nil {
		h.refuse(w, r, err, origin, opts)
		return
	}
	// Other requests that wait for a processor go first. Else those that take long to compute
	// would run one after the other, and the rest would wait where no rule sees them.
	runtime.Gosched()
	entered := false
	defer func() {
		if !entered { // the ResponseWriter has panicked
			guard.Exit()
		}
	}()
	h.answers.SetPassed(w.Header(), resource, origin, opts...)
	recorder, watched := record(w, GuardedCall{Engine: h.engine, Resource: resource}, r)
	with := recorder.call.enter(r, &guard)
	entered = true
	defer recorder.call.Guard().Exit() // also if Failure panics
	if known {
		with = withPriority(with, p)
	}
	defer HandBack(with, r)
	h.serve(recorder, watched, with, resource)
}

// serve runs the handler for a call that passed.
func (h *handler) serve(recorder *recorder, watched http.ResponseWriter, r *http.Request, resource string) {
	pattern, returned := r.Pattern, false
	defer func() {
		recorder.call.End()
		guard := recorder.call.Guard()
		if recorder.takenOver || recorder.status == http.StatusSwitchingProtocols || IsEventStream(watched.Header().Get("Content-Type")) {
			guard.MarkLongLived()
		}
		switch {
		case returned:
			status, err := recorder.answered()
			MarkOutcome(guard, h.options.Failure, status, err)
		case Canceled(r.Context()):
			guard.MarkIgnored()
		default:
			guard.MarkFailed()
		}
	}()
	h.next.ServeHTTP(watched, r)
	returned = true
	h.checkMethods(r, resource)
	if h.byDefault && h.wasServedByAnother(r, resource, pattern, recorder.status) {
		h.warnOfRoutes(r, resource)
	}
}

// checkMethods warns of rules for one method of the route that has served the request, if that
// serves all and the resource is named after it. Patterns of other routers than Go's never have a method.
func (h *handler) checkMethods(r *http.Request, resource string) {
	method, route := splitPattern(r.Pattern)
	if method == "" && route != "" && (h.byDefault || h.attributes.mux != nil && isNamedAfter(resource, r.Pattern)) {
		h.methods.check(route)
	}
}

// wasServedByAnother reports whether another route than that in the resource's name
// has served the request, because the route was not yet known, or not completely.
// pattern is that of the request before it was served.
func (h *handler) wasServedByAnother(r *http.Request, resource, pattern string, status int) bool {
	switch {
	case resource == Unmatched && status < http.StatusMultipleChoices:
		return true
	case r.Pattern == pattern:
		return false
	case h.byPattern:
		return true
	}
	return resource != Unmatched && !isNamedAfter(resource, r.Pattern) // a mux below the mux
}

// warnOfRoutes logs once that the middleware does not know the routes of requests.
func (m *middleware) warnOfRoutes(r *http.Request, resource string) {
	if m.warned.Swap(true) {
		return
	}
	m.options.Logger.LogAttrs(r.Context(), slog.LevelWarn,
		"penstock: the net/http middleware cannot tell the routes of requests, rules on routes limit nothing: set nethttp.Options.Resource",
		slog.String("resource", resource), slog.String("path", rule.Quote(r.URL.Path)), slog.String("pattern", r.Pattern),
		slog.String("help", "docs/adapters.md says how for gorilla/mux, other routers and wrapped muxes; chi has an adapter of its own"))
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error, origin string, opts []core.Option) {
	block := blockOf(err)
	if block != nil {
		markRefused(w, block) // of the calls further out
	}
	switch {
	case block == nil && h.options.EntryError != nil:
		h.options.EntryError(w, r, err)
	case block == nil:
		WriteProblem(w, err)
	case h.options.Blocked != nil:
		h.answers.SetRefused(w.Header(), block, origin, opts...)
		h.options.Blocked(w, r, block)
	default:
		h.answers.WriteRefused(w, block, origin, opts...)
	}
}

// blockOf returns an error of Entry as a refusal, nil if it is none.
func blockOf(err error) *core.BlockError {
	block, _ := err.(*core.BlockError) //nolint:errorlint // Entry does not wrap it, and errors.As allocates
	return block
}
