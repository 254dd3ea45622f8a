package penstockgin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func TestLimitHoldsExactlyUnderConcurrency(t *testing.T) {
	engine, virtual := newEngine(t, core.Config{}, rateLimit("reads", orders, 50))
	var handled atomic.Int64
	server := serve(t, router(engine, penstockgin.Options{}, func(c *gin.Context) {
		handled.Add(1)
		ok(c)
	}))
	for second := range int64(3) {
		var passed, refused atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 25 {
					switch get(t, server, "/orders/7").status {
					case http.StatusOK:
						passed.Add(1)
					case http.StatusTooManyRequests:
						refused.Add(1)
					}
				}
			})
		}
		wg.Wait()
		assert.EqualValues(t, 50, passed.Load())
		assert.EqualValues(t, 150, refused.Load())
		assert.Equal(t, 50*(second+1), handled.Load())
		virtual.Advance(time.Second)
	}
	ended := requireEnded(t, engine, orders, 150)
	assert.EqualValues(t, 450, ended.Blocked)
	assert.Zero(t, ended.Failed)
}

func TestRefusalDescribesTheQuotaAndStopsTheChain(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 0.5))
	var handled atomic.Int64
	server := serve(t, router(engine, penstockgin.Options{}, func(c *gin.Context) {
		handled.Add(1)
		ok(c)
	}))
	assert.Equal(t, "ok", get(t, server, "/orders/7").body)
	refused := get(t, server, "/orders/7")
	assert.EqualValues(t, 1, handled.Load())
	assert.Equal(t, http.StatusTooManyRequests, refused.status)
	assert.Equal(t, "2", refused.header.Get("Retry-After"))
	assert.Equal(t, `"reads";r=0;t=2`, refused.header.Get("RateLimit"))
	assert.Equal(t, `"reads";q=1;w=2`, refused.header.Get("RateLimit-Policy"))
	assert.Equal(t, "application/problem+json", refused.header.Get("Content-Type"))
	var problem map[string]any
	require.NoError(t, json.Unmarshal([]byte(refused.body), &problem))
	assert.Equal(t, "https://iana.org/assignments/http-problem-types#quota-exceeded", problem["type"])
	assert.Equal(t, []any{"reads"}, problem["violated-policies"])
}

func TestBlockedWritesTheResponseToARefusal(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 0))
	server := serve(t, router(engine, penstockgin.Options{
		Fields: nethttp.FieldsNever,
		Blocked: func(c *gin.Context, block *core.BlockError) {
			c.JSON(http.StatusServiceUnavailable, gin.H{"order": c.Param("id"), "rule": block.Rule})
		},
	}, ok))
	refused := get(t, server, "/orders/7")
	assert.Equal(t, http.StatusServiceUnavailable, refused.status)
	assert.JSONEq(t, `{"order":"7","rule":"reads"}`, refused.body)
	assert.NotContains(t, refused.header, "Ratelimit")
}

func TestFieldsAlwaysAreOnResponsesOfCallsThatPassed(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 2))
	server := serve(t, router(engine, penstockgin.Options{Fields: nethttp.FieldsAlways}, ok))
	passed := get(t, server, "/orders/7")
	assert.Equal(t, http.StatusOK, passed.status)
	assert.Contains(t, passed.header.Get("RateLimit"), `"reads";r=1`)
	assert.Equal(t, `"reads";q=2;w=1`, passed.header.Get("RateLimit-Policy"))
}

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
			server := serve(t, router(engine, penstockgin.Options{}, test.handler))
			assert.Equal(t, test.status, get(t, server, "/orders/7").status)
			assert.Equal(t, test.failed, requireEnded(t, engine, orders, 1).Failed)
		})
	}
}

func TestPanicRecoveredByAnInnerHandlerIsAFailureByItsStatus(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	r := gin.New()
	r.Use(penstockgin.Middleware(engine, penstockgin.Options{}), gin.RecoveryWithWriter(nil))
	r.GET("/orders/:id", func(*gin.Context) { panic("boom") })
	assert.Equal(t, http.StatusInternalServerError, get(t, serve(t, r), "/orders/7").status)
	assert.EqualValues(t, 1, requireEnded(t, engine, orders, 1).Failed)
}

func TestErrorsOfEarlierHandlersAreNotThoseOfTheCall(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	r := gin.New()
	r.Use(func(c *gin.Context) { _ = c.Error(errors.New("earlier")) }, penstockgin.Middleware(engine, penstockgin.Options{}))
	r.GET("/orders/:id", ok)
	get(t, serve(t, r), "/orders/7")
	assert.Zero(t, requireEnded(t, engine, orders, 1).Failed)
}

func TestNilEngineIsTheDefaultEngine(t *testing.T) {
	r := gin.New()
	r.Use(penstockgin.Middleware(nil, penstockgin.Options{}))
	r.GET("/of/the/default/engine", ok)
	resource := penstock.Default().Resource("GET:/of/the/default/engine")
	before := resource.Snapshot().Passed
	get(t, serve(t, r), "/of/the/default/engine")
	assert.Equal(t, before+1, resource.Snapshot().Passed)
}

func TestClosedEngineAnswersUnavailable(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, router(engine, penstockgin.Options{}, ok))
	engine.Close()
	response := get(t, server, "/orders/7")
	assert.Equal(t, http.StatusServiceUnavailable, response.status)
	assert.Equal(t, "application/problem+json", response.header.Get("Content-Type"))
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
	server := serve(t, r)
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
	assert.Zero(t, requireEnded(t, engine, orders, 1).Waiting)
}

func TestEntryErrorWritesTheResponseToACallThatIsNotMade(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, router(engine, penstockgin.Options{
		EntryError: func(c *gin.Context, err error) { c.String(http.StatusBadGateway, "%s: %v", c.Param("id"), err) },
	}, ok))
	engine.Close()
	response := get(t, server, "/orders/7")
	assert.Equal(t, http.StatusBadGateway, response.status)
	assert.Equal(t, "7: "+core.ErrClosed.Error(), response.body)
}

func TestTokensOptionSetsTheTokensOfACall(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 10))
	server := serve(t, router(engine, penstockgin.Options{
		Tokens: func(c *gin.Context) int { return len(c.Request.URL.RawQuery) },
	}, ok))
	var statuses []int
	for _, query := range []string{"1234567", "1234", "123", "1", ""} {
		statuses = append(statuses, get(t, server, "/orders/7?"+query).status)
	}
	assert.Equal(t, []int{200, 429, 200, 429, 500}, statuses)
}

func TestFieldsNeverNameNoRuleOrResource(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("secret", orders, 0))
	refused := get(t, serve(t, router(engine, penstockgin.Options{Fields: nethttp.FieldsNever}, ok)), "/orders/7")
	assert.Equal(t, http.StatusTooManyRequests, refused.status)
	assert.NotContains(t, refused.body, "secret")
	assert.Contains(t, refused.body, "The call was refused")
	assert.NotContains(t, refused.header, "Ratelimit")
}

func TestRequestThroughTwoMiddlewaresIsOneCall(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 2))
	other, _ := newEngine(t, core.Config{})
	r := gin.New()
	r.Use(penstockgin.Middleware(engine, penstockgin.Options{}), penstockgin.Middleware(other, penstockgin.Options{}))
	r.GET("/orders/:id", penstockgin.Middleware(engine, penstockgin.Options{}), ok)
	server := serve(t, r)
	var statuses []int
	for range 3 {
		statuses = append(statuses, get(t, server, "/orders/7").status)
	}
	assert.Equal(t, []int{200, 200, 429}, statuses)
	assert.EqualValues(t, 2, requireEnded(t, engine, orders, 2).Passed)
	assert.EqualValues(t, 2, requireEnded(t, other, orders, 2).Passed, "another engine")
}

func TestClientWithABodyThatDisconnectsLeavesTheQueue(t *testing.T) {
	const resource = "POST:/orders"
	engine, virtual := newEngine(t, core.Config{},
		flow.Rule{Name: "turns", Resource: resource, Limit: 1, Algorithm: flow.Throttle, MaxWait: time.Minute})
	r := gin.New()
	r.Use(penstockgin.Middleware(engine, penstockgin.Options{BufferBody: 1 << 10}))
	r.POST("/orders", ok)
	server := serve(t, r)
	post := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/orders", strings.NewReader("an order"))
		require.NoError(t, err)
		response, err := server.Client().Do(request)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	require.NoError(t, post(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- post(ctx) }()
	require.Eventually(t, func() bool { return virtual.Timers() == 1 }, eventTimeout, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.Eventually(t, func() bool { return engine.Resource(resource).Snapshot().Waiting == 0 }, eventTimeout, time.Millisecond)
	assert.EqualValues(t, 1, requireEnded(t, engine, resource, 1).Passed)
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
			get(t, serve(t, r), "/orders/7")
		})
	}
}

func TestControllerReachesDeadlines(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, router(engine, penstockgin.Options{}, func(c *gin.Context) {
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
	writer := &discardWriter{http.Header{}}
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
		writer := &discardWriter{http.Header{}}
		return testing.AllocsPerRun(1000, func() { r.ServeHTTP(writer, request) })
	}
	engine, _ := newEngine(t, core.Config{}, rateLimit("reads", orders, 1e9))
	guard := penstockgin.Middleware(engine, penstockgin.Options{
		Origin: func(c *gin.Context) string { return c.Request.Host },
	})
	assert.LessOrEqual(t, measure(guard), measure())
}

// discardWriter is a ResponseWriter that keeps nothing.
type discardWriter struct{ header http.Header }

func (w *discardWriter) Header() http.Header          { return w.header }
func (*discardWriter) Write(data []byte) (int, error) { return len(data), nil }
func (*discardWriter) WriteHeader(int)                {}
