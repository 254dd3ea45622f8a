package nethttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// recorder is a ResponseWriter that remembers the status. What handlers may
// find out by a type assertion is kept: the types below add flushing and
// hijacking to it where the original can do that. Copying from a reader and
// writing strings it can always do, as well as the original does.
type recorder struct {
	http.ResponseWriter
	status int // 0 until the header is written
}

// record returns a recorder and, made of it, the writer for the handler.
func record(w http.ResponseWriter) (*recorder, http.ResponseWriter) {
	_, flushes := w.(http.Flusher)
	_, hijacks := w.(http.Hijacker)
	switch {
	case flushes && hijacks:
		f := &flushHijackRecorder{flushRecorder{recorder{ResponseWriter: w}}}
		return &f.recorder, f
	case flushes:
		f := &flushRecorder{recorder{ResponseWriter: w}}
		return &f.recorder, f
	case hijacks:
		h := &hijackRecorder{recorder{ResponseWriter: w}}
		return &h.recorder, h
	}
	r := &recorder{ResponseWriter: w}
	return r, r
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
		r.status = status
	}
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
