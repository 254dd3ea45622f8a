package penstockgin

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// writer is the ResponseWriter of a guarded call: it remembers of which, and
// whether the client had left when the status was set. Writers are used again, as
// gin's contexts are.
type writer struct {
	gin.ResponseWriter
	engine   *core.Engine
	resource string
	ctx      context.Context // of the request
	canceled bool            // the client had left when the status was set
}

// WriteHeader sets the status.
func (w *writer) WriteHeader(status int) {
	if !w.Written() {
		w.canceled = nethttp.Canceled(w.ctx)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap serves http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// isGuarded says whether a middleware further out has made the request a call of
// the resource. It is the writer that tells, through those of other middlewares
// that can be unwrapped.
func isGuarded(w http.ResponseWriter, engine *core.Engine, resource string) bool {
	for {
		if g, ok := w.(*writer); ok && g.engine == engine && g.resource == resource {
			return true
		}
		wrapped, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = wrapped.Unwrap()
	}
}
