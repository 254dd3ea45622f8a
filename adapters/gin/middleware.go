package penstockgin

import (
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// Middleware returns a middleware that makes every request a guarded call of
// the engine, of [penstock.Default] if that is nil. The call lasts until the
// handlers that come next have returned.
//
// It is a failure when they left a status of 500 or above, when they added to
// c.Errors, unless they left a 4xx, which says that the client is to blame, and
// when one of them panicked. The panic goes on: use gin.Recovery as usual, before
// or after this middleware.
func Middleware(engine *core.Engine, options Options) gin.HandlerFunc {
	if engine == nil {
		engine = penstock.Default()
	}
	if options.Resource == nil {
		options.Resource = RouteResource()
	}
	m := &middleware{engine, options}
	return m.handle
}

type middleware struct {
	engine  *core.Engine
	options Options
}

func (m *middleware) handle(c *gin.Context) {
	resource := m.options.Resource(c)
	if resource == "" {
		return
	}
	var few [optionCount]core.Option
	opts := m.options.appendTo(few[:0], c)
	guard, err := m.engine.Entry(c.Request.Context(), resource, opts...)
	if err != nil {
		m.refuse(c, err, opts)
		return
	}
	failure := nethttp.ErrPanicked // unless the handlers return
	defer func() {
		guard.Fail(failure)
		guard.Exit()
	}()
	m.options.Fields.SetPassed(c.Writer.Header(), m.engine, resource, opts...)
	before := len(c.Errors)
	c.Next()
	failure = failureOf(c, before)
}

func (m *middleware) refuse(c *gin.Context, err error, opts []core.Option) {
	c.Abort()
	var block *core.BlockError
	if errors.As(err, &block) {
		m.options.Fields.SetRefused(c.Writer.Header(), m.engine, block, opts...)
		if m.options.Blocked != nil {
			m.options.Blocked(c, block)
			return
		}
	}
	nethttp.WriteProblem(c.Writer, err)
}

// failureOf returns what the answer tells about the call, before being the
// number of errors that there were when it began.
func failureOf(c *gin.Context, before int) error {
	status := c.Writer.Status()
	clientError := status >= http.StatusBadRequest && status < http.StatusInternalServerError
	if len(c.Errors) > before && !clientError {
		return c.Errors.Last()
	}
	return nethttp.Failure(status)
}
