package nethttp

import (
	"errors"
	"net/http"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
)

// Middleware returns a middleware that makes every request a guarded call of
// the engine, of [penstock.Default] if that is nil. The call lasts until the
// handler returns; it is a failure when the status is 500 or above, or when the
// handler panics. The panic goes on.
//
// Put it directly around a [http.ServeMux] or around single handlers that a mux
// calls, which is cheaper by one look-up of the pattern. Around anything else
// the route is not known yet: set [Options.Resource], to [MuxResource] if there
// is a mux further in.
//
// Handlers get a ResponseWriter that is a [http.Flusher] and a [http.Hijacker]
// when the original is, and always an [io.ReaderFrom] and [io.StringWriter];
// [http.ResponseController] reaches the rest, deadlines and full duplex.
// [http.Pusher] and the deprecated http.CloseNotifier are not kept.
func Middleware(engine *core.Engine, options Options) func(http.Handler) http.Handler {
	if engine == nil {
		engine = penstock.Default()
	}
	return func(next http.Handler) http.Handler {
		h := &handler{engine: engine, options: options, next: next}
		if h.options.Resource == nil {
			h.options.Resource = resourceWithin(next)
		}
		return h
	}
}

func resourceWithin(next http.Handler) func(*http.Request) string {
	if mux, ok := next.(*http.ServeMux); ok {
		return MuxResource(mux)
	}
	return PatternResource()
}

type handler struct {
	engine  *core.Engine
	options Options
	next    http.Handler
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := h.options.Resource(r)
	if resource == "" {
		h.next.ServeHTTP(w, r)
		return
	}
	var few [optionCount]core.Option
	opts := h.options.appendTo(few[:0], r)
	guard, err := h.engine.Entry(r.Context(), resource, opts...)
	if err != nil {
		h.refuse(w, r, err, opts)
		return
	}
	failure := ErrPanicked // unless the handler returns
	defer func() {
		guard.Fail(failure)
		guard.Exit()
	}()
	h.options.Fields.SetPassed(w.Header(), h.engine, resource, opts...)
	recorder, watched := record(w)
	h.next.ServeHTTP(watched, r)
	failure = Failure(recorder.status)
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error, opts []core.Option) {
	var block *core.BlockError
	if errors.As(err, &block) {
		h.options.Fields.SetRefused(w.Header(), h.engine, block, opts...)
		if h.options.Blocked != nil {
			h.options.Blocked(w, r, block)
			return
		}
	}
	WriteProblem(w, err)
}
