package nethttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Caller is the client of a request: it tells whether that still waits for the
// answer. It is for adapters; make it with [CallerOf].
type Caller struct {
	request *http.Request
	body    *watchedBody // nil if there is none
}

// CallerOf returns the client of a request. It puts a body that is watched in the
// place of the request's.
func CallerOf(r *http.Request) Caller {
	c := Caller{request: r}
	if r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody {
		c.body = &watchedBody{ReadCloser: r.Body}
		r.Body = c.body
	}
	return c
}

// Left says whether the client has left: the context of the request was cancelled
// before its deadline, if it has one, or its body broke off while it was read. At
// the deadline and later a cancelled context does not count: what is still under
// way then took too long.
func (c Caller) Left() bool {
	return c.body != nil && c.body.broken.Load() || canceled(c.request.Context())
}

// canceled says whether ctx was cancelled before its deadline, if it has one.
func canceled(ctx context.Context) bool {
	if !errors.Is(ctx.Err(), context.Canceled) {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > 0
}

// watchedBody remembers whether reading it has failed, which is how a server that
// speaks HTTP/1.1 finds out that a client has left before it has sent all.
type watchedBody struct {
	io.ReadCloser
	broken atomic.Bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, http.ErrBodyReadAfterClose) {
		b.broken.Store(true)
	}
	return n, err
}
