package nethttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Transport guards outgoing requests. A refused request is not sent. Its error is
// that of [core.Engine.Entry]; [errors.As] finds the [*core.BlockError] in the error
// of a [http.Client], too. One that is refused by an injected fault has no error but a
// response, as though the server had failed: see [WriteProblem].
//
// The call lasts until the body of the response was read to its end or closed, or until the
// context of the request ends: a body that its caller forgets to close keeps no place then. It
// counts as failed if there is no response, if the body cannot be read, or if the
// status is 500 or above. If the caller had cancelled it before, or if a guard further
// down refused it, it counts neither as failed nor as a success. The zero value
// is ready to use; do not change the fields once it is in use. It is safe for
// concurrent use if Base is.
//
// A request that Throttle or RetryBudgets refuse is not a call of its resource. Its error
// is an [*outgoing.Error].
type Transport struct {
	// Base sends the requests. Defaults to [http.DefaultTransport].
	Base http.RoundTripper

	// Engine guards the requests. Defaults to [penstock.Default].
	Engine *core.Engine

	// Resource returns the name of the resource of a request, or "" if the request
	// is not to be guarded. Defaults to "METHOD:host", with the port if the URL has
	// one. If others choose the hosts, only the engine's MaxResources bounds the
	// number of names.
	Resource func(*http.Request) string

	// Tokens returns how many tokens a call takes from its rules, at least 1.
	// Defaults to 1 for every call.
	Tokens func(*http.Request) int

	// PriorityHeader is the header field that says how important a request is, usually
	// [priority.Field]: the priority of its context, see [core.ContextWithPriority]. If
	// the context has none, the request is sent without the field: what it has there
	// may come from a client who is not trusted. Rules see the priority of the context in
	// any case. Defaults to none, and the field is left alone.
	PriorityHeader string

	// Throttle refuses requests of targets that reject most of them, or that do not want
	// any yet. See [outgoing.HTTPAnswer] for what a response says. Defaults to none.
	Throttle *outgoing.Throttle

	// RetryBudgets refuse requests that are retries, see [outgoing.WithRetries], beyond a
	// share of all. Defaults to none.
	RetryBudgets *outgoing.RetryBudgets

	// Target returns what Throttle and RetryBudgets know a request by, or "" if they
	// are not to look at it. If a server limits each user rather than all together,
	// the user is a part of its name. Defaults to the host, with the port if the URL
	// has one.
	Target func(*http.Request) string

	// Answer returns what a response, or the error instead of one, says of its target, for
	// Throttle. It is not asked if the caller has cancelled the request, or if a guard
	// further down refused it. It must not read the body. Defaults to
	// [outgoing.HTTPAnswer].
	Answer func(*http.Response, error) outgoing.Answer

	// Attributes returns attributes of your own that rules may look at, made by
	// [core.String], [core.Int] and [core.Bool], and other options of the call, such as
	// [core.Priority] and [core.NoWait]. They go before those of the request with the
	// same key, see [Attributes], which are read only if a rule asks for them: here
	// method, host, path, header, cookie and query. Defaults to nothing.
	Attributes func(*http.Request) []core.Option

	// Failure returns whether a call counts as failed that was answered with the
	// status, or 0 without a response. The error is why there was no response or
	// why its body could not be read, [ErrCanceled] if the caller had cancelled
	// the call, else nil. A panic of Base always counts. A call that did not fail does
	// not count as a success either if the error is ErrCanceled or a refusal,
	// [core.ErrBlocked]. Defaults to [IsFailure].
	Failure func(status int, err error) bool
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	p, known := core.PriorityFromContext(r.Context())
	if t.PriorityHeader != "" {
		r = passOnPriority(r, http.CanonicalHeaderKey(t.PriorityHeader), p, known)
	}
	if t.Throttle == nil && t.RetryBudgets == nil {
		return t.guarded(r, p, t.base())
	}
	return t.throttled(r, p)
}

// guarded sends a request by base as a call of its resource.
func (t *Transport) guarded(r *http.Request, p rule.Priority, base http.RoundTripper) (*http.Response, error) {
	resource := t.resource(r)
	if resource == "" {
		return base.RoundTrip(r)
	}
	call := &guardedRequest{ctx: r.Context(), isFailure: t.Failure}
	if t.Failure == nil {
		call.isFailure = IsFailure
	}
	var few [5]core.Option
	opts := append(few[:0], core.Attributes(outgoingAttribute, r))
	if p != rule.PriorityNormal {
		opts = append(opts, core.Priority(p))
	}
	if t.Tokens != nil {
		opts = append(opts, core.Tokens(t.Tokens(r)))
	}
	if t.Attributes != nil {
		opts = append(opts, t.Attributes(r)...)
	}
	var err error
	if call.guard, err = t.engine().Entry(r.Context(), resource, opts...); err != nil {
		closeBody(r)
		return answerOf(r, err)
	}
	return call.send(base, r)
}

// closeBody closes the body of a request that is not sent, as a RoundTripper must. The
// refusal matters more than an error.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
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

// outgoingAttribute reads an attribute of a request of a client.
func outgoingAttribute(r *http.Request, key string) rule.Attribute {
	return new(Attributes).Attribute(r, key)
}

// guardedRequest is a call that passed.
type guardedRequest struct {
	guard     core.Guard
	ctx       context.Context // of the request
	isFailure func(status int, err error) bool
	once      sync.Once
	status    int  // 0 until there is a response
	failed    bool // by the status

	forget func() bool // stops the AfterFunc of the context; nil if there is none
}

func (o *guardedRequest) send(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	panicked := true // the transport, or Failure
	defer func() {
		if panicked {
			o.guard.MarkFailed()
			o.guard.Exit()
		}
	}()
	response, err := base.RoundTrip(r)
	if err != nil {
		o.end(err)
	} else {
		o.status = response.StatusCode
		o.failed = o.isFailure(o.status, o.cause(nil))
		o.follow(response)
	}
	panicked = false
	return response, err
}

// cause returns why a call ended that ended with err: [ErrCanceled] if its caller had
// cancelled it.
func (o *guardedRequest) cause(err error) error {
	if (err != nil || o.status >= http.StatusInternalServerError) && Canceled(o.ctx) {
		return ErrCanceled
	}
	return err
}

// follow makes the call last as long as the body of its response.
func (o *guardedRequest) follow(response *http.Response) {
	if response.Body == nil || response.Body == http.NoBody {
		o.end(nil)
		return
	}
	if o.status == http.StatusSwitchingProtocols || IsEventStream(response.Header.Get("Content-Type")) {
		o.guard.MarkLongLived()
	}
	if o.ctx.Done() != nil {
		o.forget = context.AfterFunc(o.ctx, func() { o.exit(o.ctx.Err()) })
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

// end ends the call with an error or nil, once: a body may be closed while it is being
// read.
func (o *guardedRequest) end(err error) {
	if o.forget != nil {
		o.forget()
	}
	o.exit(err)
}

func (o *guardedRequest) exit(err error) {
	o.once.Do(func() {
		defer o.guard.Exit() // also if Failure panics
		if o.failed {
			o.guard.MarkFailed()
			return
		}
		if err = o.cause(err); err != nil {
			MarkOutcome(&o.guard, o.isFailure, o.status, err)
		}
	})
}

// guardedBody is the body of a response; it ends the call.
type guardedBody struct {
	io.ReadCloser
	call *guardedRequest
}

// errBodyPanicked is why a call ends whose body could not be read or closed.
var errBodyPanicked = errors.New("nethttp: the body of the response has panicked")

func (b *guardedBody) Read(p []byte) (n int, err error) {
	err = errBodyPanicked // unless the body returns
	defer func() {
		if errors.Is(err, io.EOF) {
			b.call.end(nil)
		} else if err != nil {
			b.call.end(err)
		}
	}()
	n, err = b.ReadCloser.Read(p)
	return n, err
}

func (b *guardedBody) Close() (err error) {
	err = errBodyPanicked // unless the body returns
	defer func() { b.call.end(err) }()
	err = b.ReadCloser.Close()
	return err
}
