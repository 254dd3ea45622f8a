package penstockgin_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/core"
)

func TestConformance(t *testing.T) { adaptertest.HTTP(t, harness()) }

func BenchmarkConformance(b *testing.B) { adaptertest.BenchmarkHTTP(b, harness()) }

func harness() adaptertest.HTTPHarness {
	return adaptertest.HTTPHarness{
		Handler: func(s adaptertest.Server) http.Handler { return routerOf(s) },
		Pattern: patternOf,
		Lacks: map[adaptertest.Feature]string{
			adaptertest.StatusErrors: "handlers set the status beside the error",
			adaptertest.HeadOfGet:    "gin routes HEAD requests of a GET route only if HEAD is registered too",
		},
	}
}

// patternOf returns a pattern of the suite as gin spells it.
func patternOf(pattern string) string { return adaptertest.ColonPattern(pattern, "*path") }

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
		r.Handle(route.Method, patternOf(route.Pattern), func(c *gin.Context) {
			if err := route.Handle(exchangeOf(c)); err != nil {
				_ = c.Error(err)
			}
		})
	}
	return r
}

// suiteOptions returns options of the suite as those of the middleware.
func suiteOptions(o *adaptertest.Options) penstockgin.Options {
	options := penstockgin.Options{
		Resource: adaptertest.Adapt(o.Resource, request), Origin: adaptertest.Adapt(o.Origin, request),
		Tokens: adaptertest.Adapt(o.Tokens, request), Attributes: adaptertest.Adapt(o.Attributes, request),
		Priority: adaptertest.Adapt(o.Priority, request), PriorityHeader: o.PriorityHeader,
		PriorityTrust: adaptertest.AdaptTrust(o.PriorityTrust, request),
		Clients:       o.Clients,
		Failure:       o.Failure, Fields: o.Fields, Spread: o.Spread, BufferBody: o.BufferBody,
	}
	if blocked := o.Blocked; blocked != nil {
		options.Blocked = func(c *gin.Context, block *core.BlockError) { _ = blocked(exchangeOf(c), block) }
	}
	if entryError := o.EntryError; entryError != nil {
		options.EntryError = func(c *gin.Context, err error) { _ = entryError(exchangeOf(c), err) }
	}
	return options
}

// exchange is a request of the suite with its response.
type exchange struct {
	adaptertest.HandlerExchange
	c *gin.Context
}

func exchangeOf(c *gin.Context) exchange {
	return exchange{adaptertest.HandlerExchange{W: c.Writer, R: c.Request}, c}
}

func request(c *gin.Context) adaptertest.Request { return exchangeOf(c) }

func (x exchange) Param(name string) string { return x.c.Param(name) }

func (x exchange) Respond(status int, body string) error {
	x.c.String(status, "%s", body)
	return nil
}
