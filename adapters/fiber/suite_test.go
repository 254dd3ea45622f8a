package penstockfiber_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockfiber "github.com/penstock-go/penstock/adapters/fiber"
	"github.com/penstock-go/penstock/core"
)

func TestConformance(t *testing.T) { adaptertest.HTTP(t, harness("use")) }

func TestConformanceInAMountedApp(t *testing.T) { adaptertest.HTTP(t, harness("mount")) }

func TestConformanceAtRoutes(t *testing.T) {
	h := harness("route")
	h.Lacks[adaptertest.Unmatched] = "the middleware of the route sees the requests of the route only"
	adaptertest.HTTP(t, h)
}

func BenchmarkConformance(b *testing.B) { adaptertest.BenchmarkHTTP(b, harness("use")) }

// harness describes fiber with the middleware at a place.
func harness(place string) adaptertest.HTTPHarness {
	return adaptertest.HTTPHarness{
		Serve: func(t *testing.T, s adaptertest.Server) string {
			t.Helper()
			return serve(t, appOf(s, place))
		},
		Pattern:     patternOf,
		StatusError: func(status int) error { return fiber.NewError(status) },
		Direct: func(_ testing.TB, s adaptertest.Server) func(*http.Request) func() {
			handler := appOf(s, place).Handler()
			return func(r *http.Request) func() {
				rctx := requestOf(r)
				return func() {
					handler(rctx)
					rctx.ResetUserValues()
					rctx.Response.Reset()
				}
			}
		},
		Lacks: map[adaptertest.Feature]string{
			adaptertest.Disconnects:    "fasthttp does not notice that a client disconnects",
			adaptertest.InvalidEscapes: "handlers see them as they are",
			adaptertest.BodyBuffering:  "fasthttp reads bodies before it calls the handler",
		},
	}
}

// serve starts a server of an App, and returns its URL.
func serve(t *testing.T, app *fiber.App) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	app.Server().MaxIdleWorkerDuration = interval // a goroutine is left that long
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		_ = listener.Close() // some tests have shut the server down
		assert.NoError(t, <-served)
		// Shutdown looks every 100 ms whether connections are left; most end as their client closes them. Once it serves
		// no more, it has one more than it says.
		for looks := 0; app.Server().GetOpenConnectionsCount() >= 0 && looks < 50; looks++ {
			time.Sleep(interval)
		}
		if err := app.Shutdown(); !errors.Is(err, net.ErrClosed) { // the listener
			assert.NoError(t, err)
		}
	})
	return "http://" + listener.Addr().String()
}

// requestOf returns a request as fasthttp has it.
func requestOf(r *http.Request) *fasthttp.RequestCtx {
	request := new(fasthttp.Request)
	request.Header.SetMethod(r.Method)
	request.SetRequestURI(r.URL.RequestURI())
	request.Header.SetHost(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			request.Header.Add(name, value)
		}
	}
	rctx := new(fasthttp.RequestCtx)
	rctx.Init(request, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1234}, nil)
	return rctx
}

// patternOf returns a pattern of the suite as fiber spells it.
func patternOf(pattern string) string { return adaptertest.ColonPattern(pattern, "*") }

func appOf(s adaptertest.Server, place string) *fiber.App {
	app := fiber.New(fiber.Config{ReadBufferSize: 16 << 10}) // for long header fields
	if s.Recovered != nil {
		app.Use(recovery(s.Recovered))
	}
	var guards []any
	for i := range s.Guards {
		guards = append(guards, penstockfiber.Middleware(s.Guards[i].Engine, suiteOptions(&s.Guards[i].Options)))
	}
	routes := app
	if place == "mount" {
		routes = fiber.New()
	}
	if place != "route" {
		for _, guard := range guards {
			routes.Use(guard)
		}
		guards = nil
	}
	for _, route := range s.Routes {
		handlers := append(slices.Clone(guards), func(c fiber.Ctx) error { return route.Handle(exchange{c}) })
		routes.Add([]string{route.Method}, patternOf(route.Pattern), handlers[0], handlers[1:]...)
	}
	if place == "mount" {
		app.Use(routes)
	}
	return app
}

// recovery is what recover of fiber does, and tells of panics.
func recovery(recovered func(any)) fiber.Handler {
	return func(c fiber.Ctx) (err error) {
		defer func() {
			if value := recover(); value != nil {
				recovered(value)
				err = errors.New("panic")
			}
		}()
		return c.Next()
	}
}

// suiteOptions returns options of the suite as those of the middleware.
func suiteOptions(o *adaptertest.Options) penstockfiber.Options {
	options := penstockfiber.Options{
		Resource: adaptertest.Adapt(o.Resource, request), Origin: adaptertest.Adapt(o.Origin, request),
		Tokens: adaptertest.Adapt(o.Tokens, request), Attributes: adaptertest.Adapt(o.Attributes, request),
		Priority: adaptertest.Adapt(o.Priority, request), PriorityHeader: o.PriorityHeader,
		PriorityTrust: adaptertest.AdaptTrust(o.PriorityTrust, request),
		Clients:       o.Clients,
		Failure:       o.Failure, Fields: o.Fields, Spread: o.Spread,
	}
	if blocked := o.Blocked; blocked != nil {
		options.Blocked = func(c fiber.Ctx, block *core.BlockError) error { return blocked(exchange{c}, block) }
	}
	if entryError := o.EntryError; entryError != nil {
		options.EntryError = func(c fiber.Ctx, err error) error { return entryError(exchange{c}, err) }
	}
	return options
}

// exchange is a request of the suite with its response.
type exchange struct{ c fiber.Ctx }

func request(c fiber.Ctx) adaptertest.Request { return exchange{c} }

func (x exchange) Context() context.Context  { return x.c.Context() }
func (x exchange) Method() string            { return x.c.Method() }
func (x exchange) Header(name string) string { return strings.Clone(x.c.Get(name)) }
func (x exchange) Query(name string) string  { return strings.Clone(x.c.Query(name)) }
func (x exchange) Param(name string) string  { return strings.Clone(x.c.Params(name)) }

func (x exchange) Body() ([]byte, error)        { return x.c.Body(), nil }
func (x exchange) SetHeader(name, value string) { x.c.Set(name, value) }
func (x exchange) Refuse(err error) error       { return penstockfiber.WriteProblem(x.c, err) }

func (x exchange) Respond(status int, body string) error { return x.c.Status(status).SendString(body) }

func (x exchange) Stream(status int, fn func(adaptertest.StreamWriter) error) error {
	return x.c.Status(status).SendStreamWriter(func(w *bufio.Writer) { _ = fn(w) })
}

func (x exchange) Hijack(fn func(net.Conn)) error {
	x.c.RequestCtx().HijackSetNoResponse(true)
	x.c.RequestCtx().Hijack(fn)
	return nil
}
