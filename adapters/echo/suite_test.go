package penstockecho_test

import (
	"errors"
	"log/slog"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"
	"go.uber.org/goleak"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockecho "github.com/penstock-go/penstock/adapters/echo"
	"github.com/penstock-go/penstock/core"
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
		Handler:     func(s adaptertest.Server) http.Handler { return echoOf(s, routes) },
		Pattern:     patternOf,
		StatusError: func(status int) error { return echo.NewHTTPError(status, http.StatusText(status)) },
		Lacks:       map[adaptertest.Feature]string{},
	}
}

// patternOf returns a pattern of the suite as echo spells it.
func patternOf(pattern string) string { return adaptertest.ColonPattern(pattern, "*") }

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
			return route.Handle(exchangeOf(c))
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
		Resource: adaptertest.Adapt(o.Resource, request), Origin: adaptertest.Adapt(o.Origin, request),
		Tokens: adaptertest.Adapt(o.Tokens, request), Attributes: adaptertest.Adapt(o.Attributes, request),
		Priority: adaptertest.Adapt(o.Priority, request), PriorityHeader: o.PriorityHeader,
		PriorityTrust: adaptertest.AdaptTrust(o.PriorityTrust, request),
		Clients:       o.Clients,
		Failure:       o.Failure, Fields: o.Fields, Spread: o.Spread, BufferBody: o.BufferBody,
	}
	if blocked := o.Blocked; blocked != nil {
		options.Blocked = func(c *echo.Context, block *core.BlockError) error { return blocked(exchangeOf(c), block) }
	}
	if entryError := o.EntryError; entryError != nil {
		options.EntryError = func(c *echo.Context, err error) error { return entryError(exchangeOf(c), err) }
	}
	return options
}

// exchange is a request of the suite with its response.
type exchange struct {
	adaptertest.HandlerExchange
	c *echo.Context
}

func exchangeOf(c *echo.Context) exchange {
	return exchange{adaptertest.HandlerExchange{W: c.Response(), R: c.Request()}, c}
}

func request(c *echo.Context) adaptertest.Request { return exchangeOf(c) }

func (x exchange) Param(name string) string { return x.c.Param(name) }

func (x exchange) Respond(status int, body string) error {
	if body == "" {
		return x.c.NoContent(status)
	}
	return x.c.String(status, body)
}
