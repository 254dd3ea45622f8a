package penstockgin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/breaker"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// serveOnce has the handler of a guarded route answer one request, of a client that has
// left if left is set.
func serveOnce(t *testing.T, engine *core.Engine, left bool, options penstockgin.Options, handler gin.HandlerFunc) *httptest.ResponseRecorder {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	if left {
		leave()
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
		want    string
	}{
		{"answered", false, ok, "ended well"},
		{"status 404", false, func(c *gin.Context) { c.Status(http.StatusNotFound) }, "ended well"},
		{"status 500", false, fails, "failed"},
		{"error", false, func(c *gin.Context) { _ = c.Error(errors.New("lost")) }, "failed"},
		{"panic", false, func(*gin.Context) { panic("boom") }, "failed"},
		{"refusal of a call further down", false, passRefusalOn, "ignored"},
		{"refusal as an error with a status", false, func(c *gin.Context) {
			_ = c.AbortWithError(http.StatusServiceUnavailable, refusal())
		}, "ignored"},
		{"refusal that is answered otherwise", false, func(c *gin.Context) {
			nethttp.MarkRefused(c.Writer)
			c.Status(http.StatusBadGateway)
		}, "ignored"},
		{"client left, status 500", true, fails, "ignored"},
		{"client left, status 200", true, ok, "ignored"},
		{"client left, panic", true, func(*gin.Context) { panic(http.ErrAbortHandler) }, "ignored"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := new(probe)
			serveOnce(t, p.newEngine(t, ""), test.left, penstockgin.Options{}, test.handler)
			assert.Equal(t, []string{test.want}, p.outcomes())
		})
	}
}

func TestRefusalByAnInnerMiddlewareIsIgnoredByTheOuterOne(t *testing.T) {
	for name, blocked := range map[string]func(*gin.Context, *core.BlockError){
		"default answer":    nil,
		"answer of its own": func(c *gin.Context, _ *core.BlockError) { c.Status(http.StatusServiceUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			outer, inner := new(probe), &probe{reason: rule.Overloaded, refuses: time.Second}
			handler := penstockgin.Middleware(inner.newEngine(t, ""), penstockgin.Options{Blocked: blocked})
			response := serveOnce(t, outer.newEngine(t, ""), false, penstockgin.Options{}, handler)
			assert.Equal(t, http.StatusServiceUnavailable, response.Code)
			assert.Equal(t, []string{"ignored"}, outer.outcomes())
		})
	}
}

func TestRefusalInGinIsIgnoredByTheNetHTTPMiddlewareAroundIt(t *testing.T) {
	outer, inner := new(probe), &probe{reason: rule.Overloaded, refuses: time.Second}
	around := nethttp.Middleware(outer.newEngine(t, ""), nethttp.Options{Resource: func(*http.Request) string { return "all" }})
	handler := around(router(inner.newEngine(t, ""), penstockgin.Options{}, ok))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody))
	assert.Equal(t, []string{"ignored"}, outer.outcomes())
}

func TestPooledWriterForgetsTheRefusal(t *testing.T) {
	p := new(probe)
	handler := penstockgin.Middleware(p.newEngine(t, ""), penstockgin.Options{})
	r := gin.New()
	r.Use(handler)
	r.GET("/refused", passRefusalOn)
	r.GET("/fails", fails)
	for range 10 {
		for _, path := range []string{"/refused", "/fails"} {
			r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, http.NoBody))
		}
	}
	for i, outcome := range p.outcomes() {
		assert.Equal(t, []string{"ignored", "failed"}[i%2], outcome)
	}
}

func TestCallsThatClientsLeaveNeitherOpenNorCloseABreaker(t *testing.T) {
	engine, virtual := newEngine(t, core.Config{})
	require.NoError(t, engine.Load(rules.Set{Breaker: []breaker.Rule{{
		Name: "b", Resource: orders, Strategy: breaker.ErrorCount, Threshold: 1, OpenFor: time.Second, Probes: 1,
	}}}))
	state := func() string { return engine.Explain(orders)[0].State }
	inconclusive := func() {
		serveOnce(t, engine, true, penstockgin.Options{}, fails)
		serveOnce(t, engine, true, penstockgin.Options{}, ok)
		serveOnce(t, engine, false, penstockgin.Options{}, passRefusalOn)
	}
	inconclusive()
	require.Equal(t, breaker.Closed, state())
	serveOnce(t, engine, false, penstockgin.Options{}, fails)
	require.Equal(t, breaker.Open, state())
	refused := serveOnce(t, engine, false, penstockgin.Options{}, ok)
	require.Equal(t, http.StatusServiceUnavailable, refused.Code)
	require.Equal(t, "1", refused.Header().Get("Retry-After"))
	virtual.Advance(time.Second)
	inconclusive() // probes
	require.Equal(t, breaker.HalfOpen, state())
	serveOnce(t, engine, false, penstockgin.Options{}, ok)
	assert.Equal(t, breaker.Closed, state())
}

func TestRulesGetWhatTheOptionsSayOfARequest(t *testing.T) {
	p := new(probe)
	engine := p.newEngine(t, "mobile")
	origin := "batch"
	options := penstockgin.Options{
		Origin: func(*gin.Context) string { return origin },
		Tokens: func(*gin.Context) int { return 7 },
		Attributes: func(c *gin.Context) []core.Option {
			return []core.Option{core.String("user", c.Param("id")), core.Int("size", 3), core.Priority(core.PriorityLow)}
		},
	}
	serveOnce(t, engine, false, options, ok)
	assert.Empty(t, p.outcomes(), "the rule is for another origin")
	origin = "mobile"
	serveOnce(t, engine, false, options, ok)
	require.Equal(t, []string{"ended well"}, p.outcomes())
	want := rule.Call{Now: engine.Clock().Now(), Tokens: 7, Attribute: rule.String("7")}
	want.SetCaller(rule.PriorityLow, true)
	assert.Equal(t, fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", p.call()))
}

func TestRefusalIsAnsweredByItsReason(t *testing.T) {
	for _, test := range []struct {
		reason     rule.Reason
		status     int
		problem    string
		retryAfter string
		limited    bool
	}{
		{rule.RateLimited, 429, "#quota-exceeded", "2", true},
		{rule.Overloaded, 503, "#temporary-reduced-capacity", "2", false},
		{rule.Unavailable, 503, "about:blank", "2", false},
		{rule.Denied, 403, "about:blank", "", false},
	} {
		p := &probe{reason: test.reason, refuses: 1500 * time.Millisecond}
		refused := serveOnce(t, p.newEngine(t, ""), false, penstockgin.Options{}, ok)
		assert.Equal(t, test.status, refused.Code)
		assert.Contains(t, refused.Body.String(), test.problem)
		assert.Equal(t, test.retryAfter, refused.Header().Get("Retry-After"), test.reason)
		assert.Equal(t, test.limited, refused.Header().Get("RateLimit") != "", test.reason)
	}
}
