package nethttp

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/penstock-go/penstock/core"
)

// recorder is a ResponseWriter that remembers the status, and of which call it is
// the writer. What handlers may
// find out by a type assertion is kept: the types below add flushing and
// hijacking to it where the original can do that. Copying from a reader and
// writing strings it can always do, as well as the original does.
type recorder struct {
	http.ResponseWriter
	engine   *core.Engine
	resource string
	request  *http.Request

	status   int  // 0 until the header is written
	canceled bool // the client had left by then
}

// guarded is what the writers below have in common.
type guarded interface {
	guardedBy(engine *core.Engine, resource string) bool
}

func (r *recorder) guardedBy(engine *core.Engine, resource string) bool {
	return r.engine == engine && r.resource == resource
}

// isGuarded says whether a middleware further out has made the request a call of
// the resource. It is the writer that tells, through those of other middlewares
// that can be unwrapped: a mark in the request's context would take a copy of the
// request, and keep the pattern from those further out.
func isGuarded(w http.ResponseWriter, engine *core.Engine, resource string) bool {
	for {
		if g, ok := w.(guarded); ok && g.guardedBy(engine, resource) {
			return true
		}
		wrapped, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = wrapped.Unwrap()
	}
}

// record makes of a recorder the writer for the handler.
func record(r recorder) (*recorder, http.ResponseWriter) {
	w := r.ResponseWriter
	_, flushes := w.(http.Flusher)
	_, hijacks := w.(http.Hijacker)
	switch {
	case flushes && hijacks:
		f := &flushHijackRecorder{flushRecorder{r}}
		return &f.recorder, f
	case flushes:
		f := &flushRecorder{r}
		return &f.recorder, f
	case hijacks:
		h := &hijackRecorder{r}
		return &h.recorder, h
	}
	plain := new(recorder)
	*plain = r
	return plain, plain
}

// Unwrap serves http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) WriteHeader(status int) {
	// Other 1xx are informational: the status is still to come.
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		r.written(status)
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(data []byte) (int, error) {
	r.written(http.StatusOK)
	return r.ResponseWriter.Write(data)
}

func (r *recorder) WriteString(data string) (int, error) {
	r.written(http.StatusOK)
	return io.WriteString(r.ResponseWriter, data)
}

// ReadFrom lets the original use sendfile and the like. A source that has
// nothing to give leaves the header unwritten.
func (r *recorder) ReadFrom(source io.Reader) (int64, error) {
	n, err := io.Copy(r.ResponseWriter, source)
	if n > 0 {
		r.written(http.StatusOK)
	}
	return n, err
}

// written notes that the header is written: only the first time counts.
func (r *recorder) written(status int) {
	if r.status == 0 {
		r.status, r.canceled = status, Canceled(r.request.Context())
	}
}

// answered returns the status, which is 200 where the handler has written
// nothing, and [ErrCanceled] if the client had left before.
func (r *recorder) answered() (status int, err error) {
	r.written(http.StatusOK)
	if r.canceled {
		err = ErrCanceled
	}
	return r.status, err
}

type flushRecorder struct{ recorder }

func (f *flushRecorder) Flush() { _ = f.FlushError() } // a Flusher has no error to tell

func (f *flushRecorder) FlushError() error {
	f.written(http.StatusOK)
	return http.NewResponseController(f.ResponseWriter).Flush()
}

type hijackRecorder struct{ recorder }

func (h *hijackRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

type flushHijackRecorder struct{ flushRecorder }

func (f *flushHijackRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(f.ResponseWriter).Hijack()
}
