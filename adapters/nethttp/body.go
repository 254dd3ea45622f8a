package nethttp

import (
	"bytes"
	"io"
	"net/http"
)

// BufferBody reads the body of a request into memory if its length is known and
// at most limit bytes. A server that speaks HTTP/1.1 notices that a client has
// left only once the body was read: before that, a call of a client that has left
// waits for its turn like any other. See [Options.BufferBody], which does this
// for the requests of a middleware.
//
// The handler reads the body as before; if it could not be read to its end, the
// handler gets the error after what could be read. Left alone are bodies of
// HTTP/2, whose streams tell by themselves, those of unknown length, for their
// clients may be waiting for an answer before they send more, and those of
// clients that wait for a "100 Continue".
func BufferBody(r *http.Request, limit int64) {
	if r.ContentLength <= 0 || r.ContentLength > limit || r.ProtoMajor != 1 || r.Header.Get("Expect") != "" {
		return
	}
	data := make([]byte, r.ContentLength)
	n, err := io.ReadFull(r.Body, data)
	r.Body = &bufferedBody{data: bytes.NewReader(data[:n]), err: err, Closer: r.Body}
}

// bufferedBody is a body that was read ahead.
type bufferedBody struct {
	data *bytes.Reader
	err  error // that ended the reading, nil at the end of the body
	io.Closer
}

func (b *bufferedBody) Read(p []byte) (int, error) {
	n, err := b.data.Read(p)
	if err != nil && b.err != nil {
		err = b.err
	}
	return n, err
}
