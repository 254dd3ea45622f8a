package nethttp

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// recorder is the ResponseWriter of a guarded call. It records the status, and the
// engine and the resource of the call. The types below add Flusher and Hijacker if the
// original implements them. ReaderFrom and StringWriter are always implemented, and
// as efficient as in the original.
type recorder struct {
	http.ResponseWriter
	engine   *core.Engine
	resource string
	request  *http.Request

	status   int  // 0 until the header is written
	canceled bool // the client had disconnected by then
	refused  bool // the response passes a refusal on, see MarkRefused
}

// guarded is implemented by all the writers below.
type guarded interface {
	guardedBy(engine *core.Engine, resource string) bool
}

func (r *recorder) guardedBy(engine *core.Engine, resource string) bool {
	return r.engine == engine && r.resource == resource
}

// isGuarded reports whether an outer middleware already guards the request as a call
// of the resource. It unwraps the writers of other middlewares. A mark in the context
// of the request would need a copy of the request, and outer handlers would then not
// see the pattern.
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

// MarkRefused says that the response passes on the refusal of a call that the handler
// made: the guarded calls of the request do not count as failed then, whatever the
// status is. [WriteProblem] and [Answers.WriteRefused] do it by themselves; it is for
// handlers that answer a refusal in another way. It finds the calls through the
// ResponseWriter: wrappers in between must have a method Unwrap.
func MarkRefused(w http.ResponseWriter) {
	for {
		if call, ok := w.(interface{ PassRefusal() }); ok {
			call.PassRefusal()
		}
		wrapped, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return
		}
		w = wrapped.Unwrap()
	}
}

// markRefused is MarkRefused for the response to a refused call. An injected fault is as
// good as a failure: the calls further out count as failed if the status says so.
func markRefused(w http.ResponseWriter, block *core.BlockError) {
	if block.Reason != rule.Injected {
		MarkRefused(w)
	}
}

// PassRefusal records what MarkRefused says. The adapter for gin has writers with this
// method too.
func (r *recorder) PassRefusal() { r.refused = true }

// record returns the recorder, and the writer for the handler, which has the same
// optional interfaces as the original.
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
	// Other 1xx are informational: the final status follows.
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

// ReadFrom lets the original use sendfile and similar. An empty source leaves the
// header unwritten.
func (r *recorder) ReadFrom(source io.Reader) (int64, error) {
	n, err := io.Copy(r.ResponseWriter, source)
	if n > 0 {
		r.written(http.StatusOK)
	}
	return n, err
}

// written records the status. Only the first call has an effect.
func (r *recorder) written(status int) {
	if r.status == 0 {
		r.status, r.canceled = status, Canceled(r.request.Context())
	}
}

// answered returns the status, which is 200 if the handler has written nothing, and
// [ErrCanceled] if the client had disconnected before, or [core.ErrBlocked] if the
// response passes a refusal on.
func (r *recorder) answered() (status int, err error) {
	r.written(http.StatusOK)
	switch {
	case r.canceled:
		err = ErrCanceled
	case r.refused:
		err = core.ErrBlocked
	}
	return r.status, err
}

type flushRecorder struct{ recorder }

func (f *flushRecorder) Flush() { _ = f.FlushError() } // a Flusher returns no error

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
