package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// Transport returns a transport for clients of providers. base sends the requests; nil stands for
// [http.DefaultTransport]. The error of a refused call is that of [core.Engine.Entry], or an
// [*outgoing.Error].
func (m *Meter) Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{m, base}
}

type transport struct {
	*Meter
	base http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	style := styleOf(r)
	if style == "" {
		return t.base.RoundTrip(r)
	}
	p, body, rest, err := readPrompt(r, t.options.MaxRequest, t.options.Count != nil)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	c, err := t.begin(r.Context(), r, style, p)
	if err != nil {
		_ = rest.Close()
		return nil, err
	}
	sent, hides := t.outgoing(r, c, body, rest)
	return t.send(sent, c, hides)
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// outgoing returns the request to be sent: with the body that was read, and so that its answer can be
// read.
func (m *Meter) outgoing(r *http.Request, c *call, body []byte, rest io.ReadCloser) (sent *http.Request, hides bool) {
	with := *r
	with.Body, with.GetBody = rest, nil
	with.Header = r.Header.Clone()
	with.Header.Del("Accept-Encoding") // the transport of package http reads what it asks for itself
	if c.prompt.unread == "" && m.options.AskForUsage && c.report.Style == chat && c.prompt.stream && !c.prompt.asked {
		asks := askForUsage(body)
		with.Body = &joined{newReader(asks), rest}
		with.ContentLength, hides = int64(len(asks)), true
		if with.Header.Get("Content-Length") != "" {
			with.Header.Set("Content-Length", strconv.Itoa(len(asks)))
		}
	}
	return &with, hides
}

// send sends a request whose call has passed.
func (t *transport) send(r *http.Request, c *call, hides bool) (*http.Response, error) {
	returned := false
	defer func() {
		if !returned { // base has panicked, or another part of the program
			c.refuse(true)
		}
	}()
	response, err := t.throttled(r, c)
	switch {
	case err != nil:
		c.refuse(!errors.Is(err, context.Canceled) && !core.IsRefusal(err))
	case response == nil:
		c.refuse(true) // base has a defect, of which package http tells
	default:
		c.follow(response, hides)
	}
	returned = true
	return response, err
}

// throttled sends a request unless its target does not want it.
func (t *transport) throttled(r *http.Request, c *call) (*http.Response, error) {
	if t.options.Throttle == nil && t.options.RetryBudgets == nil {
		return t.base.RoundTrip(r)
	}
	p, ok := core.PriorityFromContext(r.Context())
	if !ok {
		p = rule.PriorityNormal
	}
	sent, err := outgoing.Begin(r.Context(), t.options.Throttle, t.options.RetryBudgets, t.target(r, c.report.Call), p)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	said := outgoing.Answer{}
	defer func() { sent.End(said) }() // also if base panics
	response, err := t.base.RoundTrip(r)
	if err == nil || !errors.Is(err, context.Canceled) && !core.IsRefusal(err) {
		said = Answer(response, err, time.Now())
	}
	return response, err
}

// follow makes the call last as long as the body of its response.
func (c *call) follow(response *http.Response, hides bool) {
	c.report.Status = response.StatusCode
	if !isServed(response.StatusCode) {
		c.refuse(response.StatusCode >= http.StatusInternalServerError)
		return
	}
	if response.Body == nil {
		response.Body = http.NoBody
	}
	body := &answerBody{from: response.Body, call: c}
	switch {
	case response.Header.Get("Content-Encoding") != "":
		c.unread("the answer is compressed")
	case isStream(response.Header):
		body.stream = &stream{call: c, hides: hides}
		if hides || c.meter.options.StopStreams { // its length changes
			response.ContentLength = -1
			response.Header.Del("Content-Length")
		}
	default:
		body.kept.on = true
	}
	if ctx := c.request.Context(); ctx.Done() != nil { // a body that is never closed keeps nothing
		body.forget = context.AfterFunc(ctx, func() { c.end(false) })
	}
	response.Body = body
}

// answerBody is the body of a response. It ends the call.
type answerBody struct {
	from   io.ReadCloser
	call   *call
	stream *stream // nil if it is none
	kept   keptAnswer
	forget func() bool

	buffer []byte // of a stream
	out    []byte // what is to be read next
	err    error  // after that
	once   sync.Once
}

const readSize = 16 << 10

// errPanicked is why a call ends whose answer the program could not read.
var errPanicked = errors.New("llm: reading the answer has panicked")

// Read returns what is passed on.
func (b *answerBody) Read(p []byte) (int, error) {
	returned := false
	defer func() {
		if !returned {
			b.end(errPanicked)
		}
	}()
	n, err := b.read(p)
	returned = true
	return n, err
}

func (b *answerBody) read(p []byte) (int, error) {
	if b.stream == nil {
		n, err := b.from.Read(p)
		b.kept.add(b.call, p[:n])
		if err != nil {
			b.end(err)
		}
		return n, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	for len(b.out) == 0 && b.err == nil {
		b.fill()
	}
	n := copy(p, b.out)
	if b.out = b.out[n:]; n > 0 {
		return n, nil
	}
	return 0, b.err
}

// fill reads a part of the stream.
func (b *answerBody) fill() {
	if b.buffer == nil {
		b.buffer = make([]byte, readSize)
	}
	n, err := b.from.Read(b.buffer)
	b.out = b.stream.feed(b.buffer[:n])
	switch {
	case b.stream.stopped:
		b.err = io.EOF
		_ = b.from.Close() // the provider need not go on
		b.end(io.EOF)
	case err != nil:
		if len(b.out) == 0 {
			b.out = b.stream.rest()
		} else {
			b.out = append(append([]byte(nil), b.out...), b.stream.rest()...)
		}
		b.err = err
		b.end(err)
	}
}

// end ends the call, once.
func (b *answerBody) end(err error) {
	b.once.Do(func() {
		if b.forget != nil {
			b.forget()
		}
		// Also if the program panics that counts tokens.
		defer b.call.end(err != nil && !errors.Is(err, io.EOF) && b.call.request.Context().Err() == nil)
		if errors.Is(err, io.EOF) && b.kept.on { // not by Close, which may run beside Read
			b.kept.take(b.call)
		}
	})
}

// Close ends the call.
func (b *answerBody) Close() error {
	defer b.end(nil) // also if it panics
	return b.from.Close()
}
