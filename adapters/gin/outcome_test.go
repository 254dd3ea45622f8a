package penstockgin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// serveOnce has the handler of a guarded route answer one request, of a client that leaves when the
// handler is called if left is set.
func serveOnce(t *testing.T, engine *core.Engine, left bool, options penstockgin.Options, handler gin.HandlerFunc) *httptest.ResponseRecorder {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	if left {
		inner := handler
		handler = func(c *gin.Context) {
			leave()
			inner(c)
		}
	}
	response := httptest.NewRecorder()
	router(engine, options, handler).ServeHTTP(response, httptest.NewRequestWithContext(ctx, http.MethodGet, "/orders/7", http.NoBody))
	return response
}

func refusal() error {
	return fmt.Errorf("query: %w", &core.BlockError{Resource: "db", Kind: "isolation", Rule: "pool", Reason: rule.Overloaded})
}

func passRefusalOn(c *gin.Context) { nethttp.WriteProblem(c.Writer, refusal()) }

func fails(c *gin.Context) { c.Status(http.StatusInternalServerError) }

func TestOutcomeOfARequestForRules(t *testing.T) {
	for _, test := range []struct {
		name    string
		left    bool // the client, before the handler was called
		handler gin.HandlerFunc
		want    adaptertest.Outcome
	}{
		{"refusal as an error with a status", false, func(c *gin.Context) {
			_ = c.AbortWithError(http.StatusServiceUnavailable, refusal())
		}, adaptertest.Ignored},
		{"refusal that is answered otherwise", false, func(c *gin.Context) {
			nethttp.MarkRefused(c.Writer)
			c.Status(http.StatusBadGateway)
		}, adaptertest.Ignored},
		{"client left, panic", true, func(*gin.Context) { panic(http.ErrAbortHandler) }, adaptertest.Ignored},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := new(adaptertest.Probe)
			serveOnce(t, p.NewEngine(t), test.left, penstockgin.Options{}, test.handler)
			assert.Equal(t, []adaptertest.Outcome{test.want}, p.Outcomes())
		})
	}
}

func TestRefusalInGinIsIgnoredByTheNetHTTPMiddlewareAroundIt(t *testing.T) {
	outer, inner := new(adaptertest.Probe), &adaptertest.Probe{Reason: rule.Overloaded, RefuseAfter: time.Second}
	around := nethttp.Middleware(outer.NewEngine(t), nethttp.Options{Resource: func(*http.Request) string { return "all" }})
	handler := around(router(inner.NewEngine(t), penstockgin.Options{}, ok))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody))
	assert.Equal(t, []adaptertest.Outcome{adaptertest.Ignored}, outer.Outcomes())
}

func TestPooledWriterForgetsTheRefusal(t *testing.T) {
	p := new(adaptertest.Probe)
	handler := penstockgin.Middleware(p.NewEngine(t), penstockgin.Options{})
	r := gin.New()
	r.Use(handler)
	r.GET("/refused", passRefusalOn)
	r.GET("/fails", fails)
	for range 10 {
		for _, path := range []string{"/refused", "/fails"} {
			r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, http.NoBody))
		}
	}
	for i, outcome := range p.Outcomes() {
		assert.Equal(t, []adaptertest.Outcome{adaptertest.Ignored, adaptertest.Failed}[i%2], outcome)
	}
}

func TestMiddlewareWithinThatOfNetHTTPIsTheSameCall(t *testing.T) {
	engine, _ := adaptertest.NewEngine(t, rules.Set{})
	inner := router(engine, penstockgin.Options{Resource: func(*gin.Context) string { return "orders" }}, ok)
	outer := nethttp.Middleware(engine, nethttp.Options{Resource: func(*http.Request) string { return "orders" }})(inner)
	outer.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody))
	assert.EqualValues(t, 1, adaptertest.RequireEnded(t, engine, "orders", 1).Passed)
}
