package penstockgin

import (
	"bufio"
	"context"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// writer is the ResponseWriter of a guarded call. It records the engine and the
// resource, and whether the client had disconnected when the status was set. Writers
// are pooled, like gin's contexts.
type writer struct {
	gin.ResponseWriter
	nethttp.GuardedCall
	ctx      context.Context // of the request
	canceled bool            // the client had disconnected when the status was set
	refused  bool            // the response passes a refusal on

	takenOver bool // the connection was
}

// PassRefusal records that the response passes a refusal on, for [nethttp.MarkRefused].
func (w *writer) PassRefusal() { w.refused = true }

// WriteHeader sets the status.
func (w *writer) WriteHeader(status int) {
	if !w.Written() {
		w.canceled = core.Canceled(w.ctx)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Hijack implements [http.Hijacker].
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := w.ResponseWriter.Hijack()
	w.takenOver = w.takenOver || err == nil
	return conn, buffered, err
}

// Unwrap serves http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
