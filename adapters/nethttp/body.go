package nethttp

import (
	"bytes"
	"io"
	"net/http"
)

// BufferBody reads the body of a request into memory if its length is known and
// at most limit bytes. With HTTP/1.1 a server notices that a client has disconnected
// only after the body was read: until then the call of such a client waits in a queue
// like any other. [Options.BufferBody] does this for the requests of a middleware.
//
// The handler reads the body as usual. If it could not be read to its end, the
// handler gets the error after the data that could be read. BufferBody does not read
// bodies of HTTP/2, where the server notices anyway, bodies of unknown length, whose
// clients may wait for a response before they send more, and bodies of clients that
// wait for a "100 Continue".
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
	err  error // of reading ahead; nil if the body was read to its end
	io.Closer
}

func (b *bufferedBody) Read(p []byte) (int, error) {
	n, err := b.data.Read(p)
	if err != nil && b.err != nil {
		err = b.err
	}
	return n, err
}
