package penstockecho_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockecho "github.com/penstock-go/penstock/adapters/echo"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) { adaptertest.HTTP(t, harness(false)) }

func TestConformanceOfAGroup(t *testing.T) {
	h := harness(true)
	h.Lacks[adaptertest.Unmatched] = "the middleware of the group sees the requests of its routes only"
	adaptertest.HTTP(t, h)
}

func BenchmarkConformance(b *testing.B) { adaptertest.BenchmarkHTTP(b, harness(false)) }

// harness describes echo with the middleware in Use, or at each route.
func harness(routes bool) adaptertest.HTTPHarness {
	return adaptertest.HTTPHarness{
		Serve: func(t *testing.T, s adaptertest.Server) string {
			t.Helper()
			server := httptest.NewUnstartedServer(echoOf(s, routes))
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.Start()
			t.Cleanup(server.Close)
			return server.URL
		},
		Pattern:     patternOf,
		StatusError: func(status int) error { return echo.NewHTTPError(status, http.StatusText(status)) },
		Direct: func(_ testing.TB, s adaptertest.Server) func(*http.Request) func() {
			handler := echoOf(s, routes)
			return func(r *http.Request) func() {
				writer := &discardWriter{http.Header{}}
				return func() { handler.ServeHTTP(writer, r) }
			}
		},
		Lacks: map[adaptertest.Feature]string{},
	}
}

// patternOf returns a pattern of the suite as echo spells it.
func patternOf(pattern string) string {
	segments := strings.Split(pattern, "/")
	for i, segment := range segments {
		switch name, ok := strings.CutPrefix(segment, "{"); {
		case strings.HasSuffix(name, "...}"):
			segments[i] = "*"
		case ok:
			segments[i] = ":" + strings.TrimSuffix(name, "}")
		}
	}
	return strings.Join(segments, "/")
}

func echoOf(s adaptertest.Server, routes bool) *echo.Echo {
	e := echo.NewWithConfig(echo.Config{
		Logger: slog.New(slog.DiscardHandler),
		Router: echo.NewRouter(echo.RouterConfig{AutoHandleHEAD: true}),
	})
	if s.Recovered != nil {
		e.Use(recovery(s.Recovered))
	}
	var guards []echo.MiddlewareFunc
	for i := range s.Guards {
		guards = append(guards, penstockecho.Middleware(s.Guards[i].Engine, suiteOptions(&s.Guards[i].Options)))
	}
	if !routes {
		e.Use(guards...)
		guards = nil
	}
	for _, route := range s.Routes {
		e.Add(route.Method, patternOf(route.Pattern), func(c *echo.Context) error {
			return route.Handle(exchange{request{c}})
		}, guards...)
	}
	return e
}

// recovery is what Recover of echo does, and tells of panics.
func recovery(recovered func(any)) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) (err error) {
			defer func() {
				if value := recover(); value != nil {
					recovered(value)
					err = errors.New("panic")
				}
			}()
			return next(c)
		}
	}
}

// suiteOptions returns options of the suite as those of the middleware.
func suiteOptions(o *adaptertest.Options) penstockecho.Options {
	options := penstockecho.Options{
		Resource: adapt(o.Resource), Origin: adapt(o.Origin), Tokens: adapt(o.Tokens), Attributes: adapt(o.Attributes),
		Priority: adapt(o.Priority), PriorityHeader: o.PriorityHeader, PriorityCallers: o.PriorityCallers,
		TrustedProxies: o.TrustedProxies, UseForwarded: o.UseForwarded, IPv6Prefix: o.IPv6Prefix,
		Failure: o.Failure, Fields: nethttp.Fields(o.Fields), BufferBody: o.BufferBody,
	}
	if trust := o.PriorityTrust; trust != nil {
		options.PriorityTrust = func(c *echo.Context) (rule.Priority, bool) { return trust(request{c}) }
	}
	if blocked := o.Blocked; blocked != nil {
		options.Blocked = func(c *echo.Context, block *core.BlockError) error { return blocked(exchange{request{c}}, block) }
	}
	if entryError := o.EntryError; entryError != nil {
		options.EntryError = func(c *echo.Context, err error) error { return entryError(exchange{request{c}}, err) }
	}
	return options
}

func adapt[T any](option func(adaptertest.Request) T) func(*echo.Context) T {
	if option == nil {
		return nil
	}
	return func(c *echo.Context) T { return option(request{c}) }
}

// discardWriter is a ResponseWriter that keeps nothing.
type discardWriter struct{ header http.Header }

func (w *discardWriter) Header() http.Header { return w.header }

func (*discardWriter) Write(data []byte) (int, error) { return len(data), nil }

func (*discardWriter) WriteHeader(int) {}

// request is a request of the suite.
type request struct{ c *echo.Context }

func (r request) Context() context.Context  { return r.c.Request().Context() }
func (r request) Method() string            { return r.c.Request().Method }
func (r request) Header(name string) string { return r.c.Request().Header.Get(name) }
func (r request) Query(name string) string  { return r.c.QueryParam(name) }
func (r request) Param(name string) string  { return r.c.Param(name) }

// exchange is a request of the suite with its response.
type exchange struct{ request }

func (x exchange) Body() ([]byte, error)        { return io.ReadAll(x.c.Request().Body) }
func (x exchange) SetHeader(name, value string) { x.c.Response().Header().Set(name, value) }
func (x exchange) Refuse(err error) error       { nethttp.WriteProblem(x.c.Response(), err); return nil }

func (x exchange) Respond(status int, body string) error {
	if body == "" {
		return x.c.NoContent(status)
	}
	return x.c.String(status, body)
}

func (x exchange) Stream(status int, fn func(adaptertest.StreamWriter) error) error {
	w := x.c.Response()
	w.WriteHeader(status)
	return fn(streamWriter{w.(io.StringWriter), http.NewResponseController(w)})
}

type streamWriter struct {
	io.StringWriter
	controller *http.ResponseController
}

func (w streamWriter) Flush() error { return w.controller.Flush() }

func (x exchange) Hijack(fn func(net.Conn)) error {
	conn, _, err := x.c.Response().(http.Hijacker).Hijack()
	if err == nil {
		fn(conn)
	}
	return err
}
