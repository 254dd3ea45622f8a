package penstockecho_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockecho "github.com/penstock-go/penstock/adapters/echo"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func ok(c *echo.Context) error { return c.String(http.StatusOK, "ok") }

// do has an Echo answer a request, and returns the status.
func do(e *echo.Echo, method, path string) int {
	response := httptest.NewRecorder()
	e.ServeHTTP(response, httptest.NewRequest(method, path, http.NoBody))
	return response.Code
}

func newEcho() *echo.Echo {
	return echo.NewWithConfig(echo.Config{Logger: slog.New(slog.DiscardHandler)})
}

func TestResourceIsTheRouteThatMatched(t *testing.T) {
	for _, test := range []struct {
		method, path, want string
		status             int
	}{
		{"GET", "/orders/7?q=1", "GET:/orders/:id", 200},
		{"POST", "/orders/7", nethttp.Unmatched, 405},
		{"OPTIONS", "/orders/7", nethttp.Unmatched, 204},
		{"HEAD", "/orders/7", nethttp.Unmatched, 405},
		{"GET", "/any/7", "GET:/any/:x", 200},
		{"HEAD", "/any/7", "HEAD:/any/:x", 200},
		{"MADE-UP", "/any/7", "OTHER:/any/:x", 200},
		{"PURGE", "/things", "OTHER:/things", 200},
		{"GET", "/things", nethttp.Unmatched, 405},
		{"GET", "/admin/users/7", "GET:/admin/users/:id", 200},
		{"GET", "/admin", nethttp.Unmatched, 404},
		{"GET", "/admin/nothing/at/all", nethttp.Unmatched, 404},
		{"POST", "/admin/users/7", nethttp.Unmatched, 404},
		{"GET", "/lost/7", nethttp.Unmatched, 410},
		{"GET", "/", nethttp.Unmatched, 404},
	} {
		engine, _ := adaptertest.NewEngine(t, rules.Set{})
		guard := penstockecho.Middleware(engine, penstockecho.Options{})
		e := newEcho()
		e.Use(guard)
		e.GET("/orders/:id", ok)
		e.Any("/any/:x", ok)
		e.Add("PURGE", "/things", ok)
		admin := e.Group("/admin")
		admin.Use(guard)
		admin.GET("/users/:id", ok)
		e.RouteNotFound("/lost/:x", func(c *echo.Context) error { return c.NoContent(http.StatusGone) })
		for range 3 { // the second is answered from the cache
			assert.Equal(t, test.status, do(e, test.method, test.path), test)
		}
		assert.Equal(t, []string{test.want}, adaptertest.Called(engine), test)
		assert.EqualValues(t, 3, engine.Resource(test.want).Snapshot().Passed, test)
	}
}

func TestRouteThatIsAddedLaterIsFound(t *testing.T) {
	engine, _ := adaptertest.NewEngine(t, rules.Set{})
	e := newEcho()
	e.Use(penstockecho.Middleware(engine, penstockecho.Options{}))
	e.GET("/orders/:id", ok)
	do(e, http.MethodGet, "/orders/7")
	do(e, http.MethodPost, "/orders/7")
	e.POST("/orders/:id", ok)
	do(e, http.MethodPost, "/orders/7")
	assert.ElementsMatch(t, []string{"GET:/orders/:id", "POST:/orders/:id", nethttp.Unmatched}, adaptertest.Called(engine))
}

func TestOneMiddlewareServesSeveralEchos(t *testing.T) {
	engine, _ := adaptertest.NewEngine(t, rules.Set{})
	guard := penstockecho.Middleware(engine, penstockecho.Options{})
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		e := newEcho()
		e.Use(guard)
		e.Add(method, "/orders/:id", ok)
		do(e, http.MethodGet, "/orders/7")
	}
	assert.ElementsMatch(t, []string{"GET:/orders/:id", nethttp.Unmatched}, adaptertest.Called(engine))
}

func TestMiddlewareBeforeRoutingWarnsOnce(t *testing.T) {
	var log bytes.Buffer
	engine, _ := adaptertest.NewEngine(t, rules.Set{})
	options := penstockecho.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	after := newEcho()
	after.Use(penstockecho.Middleware(engine, options))
	after.GET("/orders/:id", ok)
	do(after, http.MethodGet, "/orders/7")
	do(after, http.MethodGet, "/nothing")
	assert.Empty(t, log.String())

	before := newEcho()
	before.Pre(penstockecho.Middleware(engine, options))
	before.GET("/orders/:id", ok)
	for range 3 {
		assert.Equal(t, http.StatusOK, do(before, http.MethodGet, "/orders/7"))
	}
	assert.Equal(t, 1, strings.Count(log.String(), "level=WARN"), log.String())
	assert.Contains(t, log.String(), "put it in Use, not in Pre")
}

func TestOutcomeOfARequestForRules(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler echo.HandlerFunc
		inner   echo.MiddlewareFunc // within the guard
		want    adaptertest.Outcome
		status  int
	}{
		{"404 as an error", func(*echo.Context) error { return echo.ErrNotFound }, nil, adaptertest.Succeeded, 404},
		{"error that wraps a status", func(*echo.Context) error {
			return fmt.Errorf("find: %w", echo.NewHTTPError(http.StatusConflict, "taken"))
		}, nil, adaptertest.Succeeded, 409},
		{"error after the response", func(c *echo.Context) error {
			_ = c.String(http.StatusOK, "half")
			return errors.New("lost")
		}, nil, adaptertest.Failed, 200},
		{"error after a response that blames the client", func(c *echo.Context) error {
			_ = c.String(http.StatusBadRequest, "bad")
			return errors.New("lost")
		}, nil, adaptertest.Succeeded, 400},
		{"panic, recovered outside", func(*echo.Context) error { panic("boom") }, nil, adaptertest.Failed, 500},
		{"panic, recovered inside", func(*echo.Context) error { panic("boom") }, middleware.Recover(), adaptertest.Failed, 500},
		{"error that is answered inside", func(*echo.Context) error { return errors.New("no row") }, answerWith(404), adaptertest.Succeeded, 404},
		{"refusal with a status", func(*echo.Context) error {
			return echo.NewHTTPError(http.StatusServiceUnavailable, "later").Wrap(&core.BlockError{Reason: rule.Overloaded})
		}, nil, adaptertest.Ignored, 503},
		{"status of the response without a body", func(c *echo.Context) error { return c.NoContent(http.StatusBadGateway) }, nil, adaptertest.Failed, 502},
		{
			"other response of net/http middleware", func(c *echo.Context) error { return c.NoContent(http.StatusBadGateway) },
			echo.WrapMiddleware(func(next http.Handler) http.Handler { return next }), adaptertest.Failed, 502,
		},
	} {
		p := new(adaptertest.Probe)
		e := newEcho()
		e.Use(middleware.Recover(), penstockecho.Middleware(p.NewEngine(t), penstockecho.Options{}))
		if test.inner != nil {
			e.Use(test.inner)
		}
		e.GET("/orders/:id", test.handler)
		assert.Equal(t, test.status, do(e, http.MethodGet, "/orders/7"), test.name)
		assert.Equal(t, []adaptertest.Outcome{test.want}, p.Outcomes(), test.name)
	}
}

// answerWith returns a middleware that answers errors.
func answerWith(status int) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			if next(c) != nil {
				return c.NoContent(status)
			}
			return nil
		}
	}
}

func TestFailureMaySeeErrorsThatEchoAnswersInItsOwnWay(t *testing.T) {
	missing := errors.New("no row")
	p := new(adaptertest.Probe)
	e := newEcho()
	e.HTTPErrorHandler = func(c *echo.Context, _ error) { _ = c.NoContent(http.StatusNotFound) }
	e.Use(penstockecho.Middleware(p.NewEngine(t), penstockecho.Options{Failure: func(status int, err error) bool {
		return penstockecho.IsFailure(status, err) && !errors.Is(err, missing)
	}}))
	e.GET("/orders/:id", func(*echo.Context) error { return fmt.Errorf("find: %w", missing) })
	assert.Equal(t, http.StatusNotFound, do(e, http.MethodGet, "/orders/7"))
	assert.Equal(t, []adaptertest.Outcome{adaptertest.Succeeded}, p.Outcomes())
}

// echo keeps the status of a HEAD request to itself until the handlers of its GET route
// have returned.
func TestFailedHeadRequestOfAGetRouteIsAFailure(t *testing.T) {
	for name, use := range map[string]func(e *echo.Echo, guard echo.MiddlewareFunc){
		"in Use":   func(e *echo.Echo, guard echo.MiddlewareFunc) { e.Use(guard); e.GET("/orders/:id", fail) },
		"at route": func(e *echo.Echo, guard echo.MiddlewareFunc) { e.GET("/orders/:id", fail, guard) },
	} {
		p := new(adaptertest.Probe)
		engine := p.NewEngine(t)
		e := echo.NewWithConfig(echo.Config{Router: echo.NewRouter(echo.RouterConfig{AutoHandleHEAD: true})})
		use(e, penstockecho.Middleware(engine, penstockecho.Options{}))
		assert.Equal(t, http.StatusBadGateway, do(e, http.MethodHead, "/orders/7"), name)
		assert.Equal(t, []adaptertest.Outcome{adaptertest.Failed}, p.Outcomes(), name)
		assert.Equal(t, []string{"GET:/orders/:id"}, adaptertest.Called(engine), name)
	}
}

func fail(c *echo.Context) error { return c.String(http.StatusBadGateway, "lost") }

func TestPooledWriterForgetsTheLastCall(t *testing.T) {
	p := new(adaptertest.Probe)
	e := newEcho()
	e.Use(penstockecho.Middleware(p.NewEngine(t), penstockecho.Options{}))
	e.GET("/refused", func(c *echo.Context) error {
		nethttp.WriteProblem(c.Response(), &core.BlockError{Reason: rule.Overloaded})
		return nil
	})
	e.GET("/fails", fail)
	e.GET("/nothing", func(*echo.Context) error { return nil })
	for range 10 {
		do(e, http.MethodGet, "/refused")
		do(e, http.MethodGet, "/fails")
		do(e, http.MethodGet, "/nothing")
	}
	for i, outcome := range p.Outcomes() {
		assert.Equal(t, []adaptertest.Outcome{adaptertest.Ignored, adaptertest.Failed, adaptertest.Succeeded}[i%3], outcome)
	}
}

func TestHandlersFindTheResponseOfEcho(t *testing.T) {
	engine, _ := adaptertest.NewEngine(t, rules.Set{})
	e := newEcho()
	var before, after *echo.Response
	e.Use(
		func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				before, _ = c.Response().(*echo.Response)
				err := next(c)
				assert.Same(t, before, c.Response(), "the guard takes its writer out")
				return err
			}
		},
		penstockecho.Middleware(engine, penstockecho.Options{}),
	)
	e.GET("/orders/:id", func(c *echo.Context) error {
		var err error
		after, err = echo.UnwrapResponse(c.Response())
		require.NoError(t, err)
		return ok(c)
	})
	assert.Equal(t, http.StatusOK, do(e, http.MethodGet, "/orders/7"))
	assert.Same(t, before, after)
	assert.EqualValues(t, 2, after.Size)
}

func TestEscapedParametersHaveOneValue(t *testing.T) {
	for _, unescape := range []bool{false, true} {
		engine, _ := adaptertest.NewEngine(t, rules.Set{HotParam: []hotparam.Rule{
			{Match: "*", Param: rule.StringsOf("param:id"), Limit: 1e-6, Burst: 1, Missing: rule.MissingBlock},
		}})
		e := echo.NewWithConfig(echo.Config{Router: echo.NewRouter(echo.RouterConfig{UnescapePathParamValues: unescape})})
		e.Use(penstockecho.Middleware(engine, penstockecho.Options{}))
		e.GET("/orders/:id", ok)
		var statuses []int
		for _, path := range []string{"/orders/a%2Fb", "/orders/%61%2Fb", "/orders/%61%252Fb", "/orders/%61%252Fb", "/orders/c"} {
			statuses = append(statuses, do(e, http.MethodGet, path))
		}
		assert.Equal(t, []int{200, 429, 200, 429, 200}, statuses, unescape)
	}
}

func TestLimitIsExactUnderLoad(t *testing.T) {
	engine, _ := adaptertest.NewEngine(t, rules.Set{Flow: []flow.Rule{{Name: "reads", Resource: "GET:/orders/:id", Limit: 100}}})
	e := newEcho()
	e.Use(penstockecho.Middleware(engine, penstockecho.Options{}))
	e.GET("/orders/:id", ok)
	statuses := make(chan int)
	for range 8 {
		go func() {
			for range 50 {
				statuses <- do(e, http.MethodGet, "/orders/7")
			}
		}()
	}
	counted := map[int]int{}
	deadline := time.After(time.Minute)
	for range 400 {
		select {
		case status := <-statuses:
			counted[status]++
		case <-deadline:
			t.Fatal("requests are not answered")
		}
	}
	assert.Equal(t, map[int]int{200: 100, 429: 300}, counted)
}
