package nethttp

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
)

// Middleware returns a middleware that makes every request a guarded call of
// the engine, of [penstock.Default] if that is nil. The call lasts until the
// handler returns; it is a failure when the status is 500 or above, or when the
// handler panics, unless the client had left before. The panic goes on.
//
// Put it directly around a [http.ServeMux] or around single handlers that a mux
// calls, which is cheaper by one look-up of the pattern. Around anything else
// the route is not known yet: set [Options.Resource], to [MuxResource] if there
// is a mux further in, or to [RouteResource] with what another router says. A
// middleware that finds that it cannot tell the routes says so in the log, once;
// set Resource to [PatternResource] if the pattern further out is what you want.
//
// A request that comes through two of them, of the same engine and with the same
// resource, is one call. The outer one is known by the ResponseWriter: wrappers
// in between must have a method Unwrap, as for [http.ResponseController].
//
// Handlers get a ResponseWriter that is a [http.Flusher] and a [http.Hijacker]
// when the original is, and always an [io.ReaderFrom] and [io.StringWriter];
// [http.ResponseController] reaches the rest, deadlines and full duplex.
// [http.Pusher] and the deprecated http.CloseNotifier are not kept.
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
	m := &middleware{engine: engine, options: options, answers: NewAnswers(engine, options.Fields)}
	return func(next http.Handler) http.Handler {
		h := &handler{middleware: m, next: next, resource: options.Resource}
		if h.resource == nil {
			h.byDefault = true
			h.resource, h.byPattern = resourceWithin(next)
		}
		return h
	}
}

// resourceWithin names requests that next will serve. It says whether it goes by
// a pattern that must be known before.
func resourceWithin(next http.Handler) (resource func(*http.Request) string, byPattern bool) {
	for again, ok := next.(*handler); ok; again, ok = next.(*handler) { // a middleware around another
		next = again.next
	}
	if mux, ok := next.(Mux); ok {
		return MuxResource(mux), false
	}
	return PatternResource(), true
}

// middleware is what the handlers of one middleware have in common.
type middleware struct {
	engine  *core.Engine
	options Options
	answers *Answers
	warned  atomic.Bool
}

type handler struct {
	*middleware
	next      http.Handler
	resource  func(*http.Request) string
	byDefault bool // the program did not say what resource is
	byPattern bool // and it goes by a pattern that must be known before
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := h.resource(r)
	if resource == "" || isGuarded(w, h.engine, resource) {
		h.next.ServeHTTP(w, r)
		return
	}
	BufferBody(r, h.options.BufferBody)
	var few [optionCount]core.Option
	origin := h.options.origin(r)
	guard, err := h.engine.Entry(r.Context(), resource, h.options.appendTo(few[:0], r, origin)...)
	if err != nil {
		h.refuse(w, r, err, origin)
		return
	}
	h.answers.SetPassed(w.Header(), resource, origin)
	h.serve(w, r, resource, &guard)
}

// serve makes a call that was let through.
func (h *handler) serve(w http.ResponseWriter, r *http.Request, resource string, guard *core.Guard) {
	recorder, watched := record(recorder{ResponseWriter: w, engine: h.engine, resource: resource, request: r})
	pattern, returned := r.Pattern, false
	defer guard.Exit() // also if Failure panics
	defer func() {
		switch {
		case returned:
			status, err := recorder.answered()
			if failureOf(h.options.Failure, status, err) != nil {
				guard.MarkFailed()
			}
		case !Canceled(r.Context()):
			guard.MarkFailed()
		}
	}()
	h.next.ServeHTTP(watched, r)
	returned = true
	if h.byDefault && h.wasServedByAnother(r, resource, pattern, recorder.status) {
		h.warnOfRoutes(r, resource)
	}
}

// wasServedByAnother says whether another route than the one that the resource is
// named after has served the request: it was not known before, or not all of it.
// The pattern is that of the request before it was served.
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

// warnOfRoutes says, once, that the routes of requests are not known when they
// are to be guarded.
func (m *middleware) warnOfRoutes(r *http.Request, resource string) {
	if m.warned.Swap(true) {
		return
	}
	m.options.Logger.LogAttrs(r.Context(), slog.LevelWarn,
		"penstock: the net/http middleware cannot tell the routes of requests, rules on routes limit nothing: set nethttp.Options.Resource",
		slog.String("resource", resource), slog.String("path", r.URL.Path), slog.String("pattern", r.Pattern),
		slog.String("help", "docs/adapters.md says how for chi, gorilla/mux, echo and wrapped muxes"))
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error, origin string) {
	block := blockOf(err)
	switch {
	case block == nil && h.options.EntryError != nil:
		h.options.EntryError(w, r, err)
	case block == nil:
		WriteProblem(w, err)
	case h.options.Blocked != nil:
		h.answers.SetRefused(w.Header(), block, origin)
		h.options.Blocked(w, r, block)
	default:
		h.answers.WriteRefused(w, block, origin)
	}
}

// blockOf returns the refusal that err of Entry is, nil if it is none.
func blockOf(err error) *core.BlockError {
	block, _ := err.(*core.BlockError) //nolint:errorlint // Entry does not wrap it, and errors.As allocates
	return block
}
