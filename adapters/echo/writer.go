package penstockecho

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// writer is the ResponseWriter of a guarded call. It records the engine and the
// resource, the status, and whether the client had disconnected when that was set. Writers
// are pooled, like echo's contexts.
type writer struct {
	http.ResponseWriter
	nethttp.GuardedCall
	ctx      context.Context // of the request
	status   int             // that was set with WriteHeader, 0 if none was
	begun    bool            // the status was set
	canceled bool            // the client had disconnected by then
	refused  bool            // the response passes a refusal on

	takenOver bool // the connection was
}

// PassRefusal records that the response passes a refusal on, for [nethttp.MarkRefused].
func (w *writer) PassRefusal() { w.refused = true }

// WriteHeader sets the status.
func (w *writer) WriteHeader(status int) {
	informational := status < http.StatusOK && status != http.StatusSwitchingProtocols
	if !w.begun && !informational {
		w.status = status
		w.begin()
	}
	w.ResponseWriter.WriteHeader(status)
}

// begin records that the status is set. Only the first call has an effect.
func (w *writer) begin() {
	if !w.begun {
		w.begun, w.canceled = true, core.Canceled(w.ctx)
	}
}

func (w *writer) Write(data []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(data)
}

// WriteString writes a text, without a copy if the original can.
func (w *writer) WriteString(data string) (int, error) {
	w.begin()
	return io.WriteString(w.ResponseWriter, data)
}

// Flush implements [http.Flusher], which handlers may ask for.
func (w *writer) Flush() { _ = w.FlushError() } // a Flusher returns no error

// FlushError serves [http.ResponseController].
func (w *writer) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements [http.Hijacker].
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.takenOver = w.takenOver || err == nil
	return conn, buffered, err
}

// Unwrap serves [http.ResponseController] and echo.UnwrapResponse.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
