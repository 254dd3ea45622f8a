package penstockgin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func TestFailuresAreStatusesErrorsAndPanics(t *testing.T) {
	lost := errors.New("lost")
	abort := func(*gin.Context) { panic(http.ErrAbortHandler) }
	for _, test := range []struct {
		name    string
		handler gin.HandlerFunc
		status  int
		failed  uint64
	}{
		{"success", ok, 200, 0},
		{"nothing written", func(*gin.Context) {}, 200, 0},
		{"client's mistake", func(c *gin.Context) { c.Status(http.StatusNotFound) }, 404, 0},
		{"internal error", func(c *gin.Context) { c.Status(http.StatusInternalServerError) }, 500, 1},
		{"aborted with a status", func(c *gin.Context) { c.AbortWithStatus(http.StatusBadGateway) }, 502, 1},
		{"error without a status", func(c *gin.Context) { _ = c.Error(lost) }, 200, 1},
		{"error with a failure", func(c *gin.Context) { _ = c.AbortWithError(http.StatusBadGateway, lost) }, 502, 1},
		{"error with a client's mistake", func(c *gin.Context) { _ = c.AbortWithError(http.StatusBadRequest, lost) }, 400, 0},
		{"panic", func(*gin.Context) { panic("boom") }, 500, 1},
		{"panic to abort", abort, bareStatus(t, abort), 1}, // 500; 200 since gin 1.12
	} {
		t.Run(test.name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			server := adaptertest.ServeHandler(t, router(engine, penstockgin.Options{}, test.handler))
			assert.Equal(t, test.status, get(t, server, "/orders/7").status)
			assert.Equal(t, test.failed, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
		})
	}
}

func TestPanicRecoveredByAnInnerHandlerIsAFailureByItsStatus(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	r := gin.New()
	r.Use(penstockgin.Middleware(engine, penstockgin.Options{}), gin.RecoveryWithWriter(nil))
	r.GET("/orders/:id", func(*gin.Context) { panic("boom") })
	assert.Equal(t, http.StatusInternalServerError, get(t, adaptertest.ServeHandler(t, r), "/orders/7").status)
	assert.EqualValues(t, 1, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
}

func TestErrorsOfEarlierHandlersAreNotThoseOfTheCall(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	r := gin.New()
	r.Use(func(c *gin.Context) { _ = c.Error(errors.New("earlier")) }, penstockgin.Middleware(engine, penstockgin.Options{}))
	r.GET("/orders/:id", ok)
	get(t, adaptertest.ServeHandler(t, r), "/orders/7")
	assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Failed)
}

func TestClientThatDisconnectsWhileWaitingIsLoggedAs499(t *testing.T) {
	engine, virtual := newEngine(t, core.Config{},
		flow.Rule{Name: "turns", Resource: orders, Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute})
	statuses := make(chan int, 2)
	r := gin.New()
	r.Use(func(c *gin.Context) {
		c.Next()
		statuses <- c.Writer.Status()
	}, penstockgin.Middleware(engine, penstockgin.Options{}))
	r.GET("/orders/:id", ok)
	server := adaptertest.ServeHandler(t, r)
	get(t, server, "/orders/1")
	assert.Equal(t, http.StatusOK, <-statuses)

	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/orders/2", http.NoBody)
		_, err := server.Client().Do(request) //nolint:bodyclose // there is no response
		gone <- err
	}()
	require.Eventually(t, func() bool { return virtual.Timers() == 1 }, eventTimeout, time.Millisecond)
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	assert.Equal(t, 499, <-statuses)
	assert.Zero(t, adaptertest.RequireEnded(t, engine, orders, 1).Waiting)
}

func TestOriginalWriterIsRestored(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	for name, handler := range map[string]gin.HandlerFunc{
		"returned": ok, "panicked": func(*gin.Context) { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			r := gin.New()
			r.Use(func(c *gin.Context) {
				before := c.Writer
				defer func() {
					_ = recover()
					assert.Same(t, before, c.Writer)
				}()
				c.Next()
			}, penstockgin.Middleware(engine, penstockgin.Options{}))
			r.GET("/orders/:id", handler)
			get(t, adaptertest.ServeHandler(t, r), "/orders/7")
		})
	}
}

func TestControllerReachesDeadlines(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := adaptertest.ServeHandler(t, router(engine, penstockgin.Options{}, func(c *gin.Context) {
		assert.NoError(t, http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(time.Hour)))
	}))
	assert.Equal(t, http.StatusOK, get(t, server, "/orders/7").status)
}

func TestRefusingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the pools of gin and of the middleware forget at random")
	}
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 0))
	handler := router(engine, penstockgin.Options{}, ok)
	request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
	writer := adaptertest.NewDiscardWriter()
	assert.Zero(t, testing.AllocsPerRun(1000, func() { handler.ServeHTTP(writer, request) }))
}

func TestPassingAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the pools of gin and of the middleware forget at random")
	}
	measure := func(handlers ...gin.HandlerFunc) float64 {
		r := gin.New()
		r.Use(handlers...)
		r.GET("/orders/:id", func(*gin.Context) {})
		request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
		writer := adaptertest.NewDiscardWriter()
		return testing.AllocsPerRun(1000, func() { r.ServeHTTP(writer, request) })
	}
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 1e9))
	guard := penstockgin.Middleware(engine, penstockgin.Options{
		Origin: func(c *gin.Context) string { return c.Request.Host },
	})
	assert.LessOrEqual(t, measure(guard), measure())
}
