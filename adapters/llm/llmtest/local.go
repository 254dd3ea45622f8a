package llmtest

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// Local returns a transport that has a handler serve requests in the process, without a network.
func Local(handler http.Handler) http.RoundTripper { return local{handler} }

type local struct{ handler http.Handler }

// RoundTrip implements [http.RoundTripper].
func (l local) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body, pipe := io.Pipe()
	w := &localWriter{pipe: pipe, header: http.Header{}, begun: make(chan struct{})}
	go func() {
		defer cancel()
		defer func() { _ = pipe.Close() }() // never fails
		defer w.begin(http.StatusOK)
		if r.Body != nil {
			defer func() { _ = r.Body.Close() }() // it was read
		}
		l.handler.ServeHTTP(w, r.WithContext(ctx))
	}()
	select {
	case <-w.begun:
	case <-r.Context().Done():
		_ = body.Close() // never fails
		return nil, r.Context().Err()
	}
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: body, ContentLength: -1, Request: r,
	}, nil
}

type localWriter struct {
	pipe   *io.PipeWriter
	header http.Header
	once   sync.Once
	begun  chan struct{}
	status int
	sent   http.Header
}

func (w *localWriter) Header() http.Header { return w.header }

func (w *localWriter) WriteHeader(status int) { w.begin(status) }

func (w *localWriter) begin(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *localWriter) Write(p []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush does nothing: each Write arrives at once.
func (w *localWriter) Flush() { w.begin(http.StatusOK) }
