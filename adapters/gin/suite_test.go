package penstockgin_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

func TestConformance(t *testing.T) { adaptertest.HTTP(t, harness()) }

func BenchmarkConformance(b *testing.B) { adaptertest.BenchmarkHTTP(b, harness()) }

func harness() adaptertest.HTTPHarness {
	return adaptertest.HTTPHarness{
		Serve: func(t *testing.T, s adaptertest.Server) string {
			server := httptest.NewServer(routerOf(s))
			t.Cleanup(server.Close)
			return server.URL
		},
		Pattern: ginPattern,
		Direct: func(_ testing.TB, s adaptertest.Server) func(*http.Request) func() {
			router := routerOf(s)
			return func(r *http.Request) func() {
				writer := &discardWriter{http.Header{}}
				return func() { router.ServeHTTP(writer, r) }
			}
		},
		Lacks: map[adaptertest.Feature]string{
			adaptertest.StatusErrors: "handlers set the status beside the error",
			adaptertest.HeadOfGet:    "gin routes HEAD requests of a GET route only if HEAD is registered too",
		},
	}
}

// ginPattern returns a pattern of the suite as gin spells it.
func ginPattern(pattern string) string {
	segments := strings.Split(pattern, "/")
	for i, segment := range segments {
		name, wildcard := strings.CutPrefix(strings.TrimSuffix(segment, "}"), "{")
		rest, multi := strings.CutSuffix(name, "...")
		switch {
		case multi:
			segments[i] = "*" + rest
		case wildcard:
			segments[i] = ":" + name
		}
	}
	return strings.Join(segments, "/")
}

func routerOf(s adaptertest.Server) *gin.Engine {
	r := gin.New()
	r.HandleMethodNotAllowed = true
	if s.Recovered != nil {
		r.Use(gin.CustomRecoveryWithWriter(io.Discard, func(c *gin.Context, value any) {
			s.Recovered(value)
			c.AbortWithStatus(http.StatusInternalServerError)
		}))
	}
	for _, g := range s.Guards {
		r.Use(penstockgin.Middleware(g.Engine, suiteOptions(&g.Options)))
	}
	for _, route := range s.Routes {
		r.Handle(route.Method, ginPattern(route.Pattern), func(c *gin.Context) {
			if err := route.Handle(exchange{request{c}}); err != nil {
				_ = c.Error(err)
			}
		})
	}
	return r
}

// suiteOptions returns options of the suite as those of the middleware.
func suiteOptions(o *adaptertest.Options) penstockgin.Options {
	options := penstockgin.Options{
		Resource: adapt(o.Resource), Origin: adapt(o.Origin), Tokens: adapt(o.Tokens), Attributes: adapt(o.Attributes),
		Priority: adapt(o.Priority), PriorityHeader: o.PriorityHeader, PriorityCallers: o.PriorityCallers,
		TrustedProxies: o.TrustedProxies, UseForwarded: o.UseForwarded, IPv6Prefix: o.IPv6Prefix,
		Failure: o.Failure, Fields: nethttp.Fields(o.Fields), BufferBody: o.BufferBody,
	}
	if trust := o.PriorityTrust; trust != nil {
		options.PriorityTrust = func(c *gin.Context) (rule.Priority, bool) { return trust(request{c}) }
	}
	if blocked := o.Blocked; blocked != nil {
		options.Blocked = func(c *gin.Context, block *core.BlockError) { _ = blocked(exchange{request{c}}, block) }
	}
	if entryError := o.EntryError; entryError != nil {
		options.EntryError = func(c *gin.Context, err error) { _ = entryError(exchange{request{c}}, err) }
	}
	return options
}

func adapt[T any](option func(adaptertest.Request) T) func(*gin.Context) T {
	if option == nil {
		return nil
	}
	return func(c *gin.Context) T { return option(request{c}) }
}

// request is a request of the suite.
type request struct{ c *gin.Context }

func (r request) Context() context.Context  { return r.c.Request.Context() }
func (r request) Method() string            { return r.c.Request.Method }
func (r request) Header(name string) string { return r.c.GetHeader(name) }
func (r request) Query(name string) string  { return r.c.Query(name) }
func (r request) Param(name string) string  { return r.c.Param(name) }

// exchange is a request of the suite with its response.
type exchange struct{ request }

func (x exchange) Body() ([]byte, error)        { return x.c.GetRawData() }
func (x exchange) SetHeader(name, value string) { x.c.Header(name, value) }

func (x exchange) Respond(status int, body string) error {
	x.c.String(status, "%s", body)
	return nil
}

func (x exchange) Refuse(err error) error {
	nethttp.WriteProblem(x.c.Writer, err)
	return nil
}

func (x exchange) Stream(status int, fn func(adaptertest.StreamWriter) error) error {
	x.c.Status(status)
	return fn(streamWriter{x.c.Writer})
}

type streamWriter struct{ gin.ResponseWriter }

func (w streamWriter) Flush() error { return http.NewResponseController(w.ResponseWriter).Flush() }

func (x exchange) Hijack(fn func(net.Conn)) error {
	conn, _, err := x.c.Writer.Hijack()
	if err == nil {
		fn(conn)
	}
	return err
}
