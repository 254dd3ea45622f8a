package nethttp

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"github.com/penstock-go/penstock/rule"
)

// answerOf returns what a client gets for a request that did not pass: the error, or for
// an injected fault the response that a server would send that fails.
func answerOf(r *http.Request, err error) (*http.Response, error) {
	block := blockOf(err)
	if block == nil || block.Reason != rule.Injected {
		return nil, err
	}
	p := problemOfBlock(block, Fields{})
	body := p.encode()
	return &http.Response{
		Status: strconv.Itoa(p.Status) + " " + p.Title, StatusCode: p.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {problemType}, "Content-Length": {strconv.Itoa(len(body))}},
		ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
		Request: r,
	}, nil
}
