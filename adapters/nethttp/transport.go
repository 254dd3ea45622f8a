package nethttp

import (
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/core"
)

// Transport guards outgoing requests. A request that is refused is not sent:
// its error is what [core.Engine.Entry] returned, and [errors.As] finds the
// [*core.BlockError] in what a [http.Client] makes of it.
//
// The call lasts until the body of the response was read to its end or closed.
// It is a failure when there is no response, when the body cannot be read, or
// when the status is 500 or above. The zero value is ready; do not change the
// fields once it is in use. It is safe for concurrent use if Base is.
type Transport struct {
	// Base sends the requests. Defaults to [http.DefaultTransport].
	Base http.RoundTripper

	// Engine is asked to let them out. Defaults to [penstock.Default].
	Engine *core.Engine

	// Resource names the resource that a request is a call of; where it returns
	// "", the request is not guarded. Defaults to "METHOD:host", the host with
	// its port if the URL has one. If others choose the hosts, their number is
	// bounded only by the engine's MaxResources.
	Resource func(*http.Request) string
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resource := t.resource(r)
	if resource == "" {
		return t.base().RoundTrip(r)
	}
	call := new(outgoing)
	var err error
	if call.guard, err = t.engine().Entry(r.Context(), resource); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper has to; the error to tell is the refusal
		}
		return nil, err
	}
	return call.send(t.base(), r)
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

func (t *Transport) engine() *core.Engine {
	if t.Engine == nil {
		return penstock.Default()
	}
	return t.Engine
}

func (t *Transport) resource(r *http.Request) string {
	if t.Resource != nil {
		return t.Resource(r)
	}
	return boundedMethod(r.Method) + ":" + r.URL.Host
}

// outgoing is a call that was let out.
type outgoing struct {
	guard core.Guard
	once  sync.Once
}

func (o *outgoing) send(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	failure := ErrPanicked // unless base returns
	defer func() {
		if failure != nil {
			o.end(failure)
		}
	}()
	response, err := base.RoundTrip(r)
	failure = err
	if err != nil {
		return response, err
	}
	o.guard.Fail(Failure(response.StatusCode))
	o.follow(response)
	return response, nil
}

// follow makes the call last as long as the body of its response.
func (o *outgoing) follow(response *http.Response) {
	if response.Body == nil || response.Body == http.NoBody {
		o.end(nil)
		return
	}
	body := &guardedBody{response.Body, o}
	if w, ok := response.Body.(io.Writer); ok { // of a 101: the connection itself
		response.Body = struct {
			*guardedBody
			io.Writer
		}{body, w}
		return
	}
	response.Body = body
}

// end ends the call, once: a body may be closed while it is being read.
func (o *outgoing) end(failure error) {
	o.once.Do(func() {
		o.guard.Fail(failure)
		o.guard.Exit()
	})
}

// guardedBody is the body of a response; it ends the call.
type guardedBody struct {
	io.ReadCloser
	call *outgoing
}

func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.call.end(nil)
	} else if err != nil {
		b.call.end(err)
	}
	return n, err
}

func (b *guardedBody) Close() error {
	err := b.ReadCloser.Close()
	b.call.end(err)
	return err
}
