package nethttp

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/penstock-go/penstock/core"
)

// recorder is the ResponseWriter of a guarded call. It records the status, and the
// engine and the resource of the call. The types below add Flusher and Hijacker if the
// original implements them. ReaderFrom and StringWriter are always implemented, and
// as efficient as in the original.
type recorder struct {
	http.ResponseWriter
	GuardedCall
	request *http.Request // that came
	call    guardedCall

	status    int  // 0 until the header is written
	canceled  bool // the client had disconnected by then
	refused   bool // the response passes a refusal on, see MarkRefused
	takenOver bool // the connection was
}

// PassRefusal records what MarkRefused says. The adapters for gin and echo have writers with
// this method too.
func (r *recorder) PassRefusal() { r.refused = true }

// record returns the recorder, and the writer for the handler, which has the same
// optional interfaces as the original.
func record(w http.ResponseWriter, of GuardedCall, r *http.Request) (*recorder, http.ResponseWriter) {
	_, flushes := w.(http.Flusher)
	_, hijacks := w.(http.Hijacker)
	switch {
	case flushes && hijacks:
		f := new(flushHijackRecorder)
		return f.begin(w, of, r), f
	case flushes:
		f := new(flushRecorder)
		return f.begin(w, of, r), f
	case hijacks:
		h := new(hijackRecorder)
		return h.begin(w, of, r), h
	}
	plain := new(recorder)
	return plain.begin(w, of, r), plain
}

// begin sets what is known when the call begins, and returns the recorder.
func (r *recorder) begin(w http.ResponseWriter, of GuardedCall, request *http.Request) *recorder {
	r.ResponseWriter, r.GuardedCall, r.request = w, of, request
	return r
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
		r.status, r.canceled = status, core.Canceled(r.request.Context())
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

// hijack takes the connection over.
func (r *recorder) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(r.ResponseWriter).Hijack()
	r.takenOver = r.takenOver || err == nil
	return conn, buffered, err
}

type flushRecorder struct{ recorder }

func (f *flushRecorder) Flush() { _ = f.FlushError() } // a Flusher returns no error

func (f *flushRecorder) FlushError() error {
	f.written(http.StatusOK)
	return http.NewResponseController(f.ResponseWriter).Flush()
}

type hijackRecorder struct{ recorder }

func (h *hijackRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.hijack() }

type flushHijackRecorder struct{ flushRecorder }

func (f *flushHijackRecorder) Hijack() (net.Conn, *bufio.ReadWriter, error) { return f.hijack() }
