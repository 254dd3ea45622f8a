package penstockfiber

import (
	"context"
	"net/http"

	"github.com/gofiber/fiber/v3"

	"github.com/penstock-go/penstock/core"
)

// call is a guarded call. It is a value of the request, so that other middlewares and
// handlers find it, and so that fasthttp closes it when the request has ended. Calls are
// pooled, but for those that last longer than the handler.
type call struct {
	*core.CallContext // nil before the call has passed

	ctx      fiber.Ctx
	engine   *core.Engine
	resource string
	parent   context.Context // of the request, when the call began
	outer    *call           // the guarded call around this one, nil if there is none
	refused  bool            // the response passes a refusal on
	lasting  bool            // the handler has returned, and the response is still written
}

// callKey is the key of the innermost call among the values of a request.
type callKey struct{}

// callOf returns the innermost call of a request, nil if there is none.
func callOf(c fiber.Ctx) *call {
	innermost, _ := c.RequestCtx().UserValue(callKey{}).(*call)
	return innermost
}

// Close ends the calls whose responses were still written. fasthttp calls it when it has
// written the response, or when the function that hijacked the connection has returned.
func (c *call) Close() error {
	for ; c != nil; c = c.outer {
		if c.lasting {
			c.lasting = false
			c.exit()
		}
	}
	return nil
}

// exit ends the guarded call.
func (c *call) exit() {
	c.End()
	c.Guard().Exit()
}

// isGuarded reports whether a middleware further out already guards the request as a call of
// the resource.
func isGuarded(c fiber.Ctx, engine *core.Engine, resource string) bool {
	for around := callOf(c); around != nil; around = around.outer {
		if around.engine == engine && around.resource == resource && !around.lasting {
			return true
		}
	}
	return false
}

// remove takes a call that has ended out of the calls of its request.
func (c *call) remove() {
	innermost := callOf(c.ctx)
	if innermost == c {
		if c.outer == nil {
			c.ctx.RequestCtx().RemoveUserValue(callKey{})
		} else {
			c.ctx.RequestCtx().SetUserValue(callKey{}, c.outer)
		}
		return
	}
	for inner := innermost; inner != nil; inner = inner.outer {
		if inner.outer == c {
			inner.outer = c.outer
			return
		}
	}
}

// MarkRefused says that the response passes on the refusal of a call that the handler
// made: the guarded calls of the request do not count as failed then, whatever the
// status is. [WriteProblem] does it by itself, and so does returning the refusal as an error;
// it is for handlers that answer a refusal in another way.
func MarkRefused(c fiber.Ctx) {
	for around := callOf(c); around != nil; around = around.outer {
		around.refused = true
	}
}

// responseWriter writes what package nethttp answers to a response of fiber.
type responseWriter struct {
	ctx    fiber.Ctx
	header http.Header
}

// Header returns the header fields, which WriteHeader or setFields adds to the response.
func (w *responseWriter) Header() http.Header { return w.header }

// PassRefusal serves [nethttp.MarkRefused].
func (w *responseWriter) PassRefusal() { MarkRefused(w.ctx) }

// WriteHeader sets the status and the header fields.
func (w *responseWriter) WriteHeader(status int) {
	w.setFields()
	w.ctx.Status(status)
}

// setFields sets the header fields of the response.
func (w *responseWriter) setFields() {
	for name, values := range w.header {
		for _, value := range values {
			w.ctx.Set(name, value)
		}
	}
}

// Write appends to the body, which copies it.
func (w *responseWriter) Write(data []byte) (int, error) {
	w.ctx.Response().AppendBody(data)
	return len(data), nil
}
