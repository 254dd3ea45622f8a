package penstockecho_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	penstockecho "github.com/penstock-go/penstock/adapters/echo"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// exampleEngine lets two calls of a resource a second pass. Its clock stands
// still, as the output of an example must not depend on time.
func exampleEngine(resource string) *core.Engine {
	engine := core.New(core.Config{
		Clock:  clock.NewVirtual(time.Unix(0, 0)),
		Logger: slog.New(slog.DiscardHandler),
	})
	err := engine.Load(rules.Set{Flow: []flow.Rule{{Name: "two-a-second", Resource: resource, Limit: 2}}})
	if err != nil {
		panic(err)
	}
	return engine
}

func ExampleMiddleware() {
	e := echo.New()
	e.Use(middleware.Recover(), penstockecho.Middleware(exampleEngine("GET:/orders/:id"), penstockecho.Options{}))
	e.GET("/orders/:id", func(c *echo.Context) error { return c.String(http.StatusOK, "order "+c.Param("id")) })

	for id := range 3 {
		recorder := httptest.NewRecorder()
		e.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/orders/%d", id), http.NoBody))
		fmt.Printf("%d %q\n", recorder.Code, recorder.Header().Get("RateLimit"))
	}
	// Output:
	// 200 ""
	// 200 ""
	// 429 "\"p-dae92c4f8974\";r=0;t=1"
}

// Health checks stay unguarded, everything else is named by its route. Refusals are
// answered by the HTTPErrorHandler.
func ExampleOptions() {
	route := penstockecho.RouteResource()
	e := echo.New()
	e.Use(penstockecho.Middleware(exampleEngine("GET:/orders/:id"), penstockecho.Options{
		Resource: func(c *echo.Context) string {
			if c.Path() == "/healthz" {
				return ""
			}
			return route(c)
		},
		Blocked: func(_ *echo.Context, block *core.BlockError) error {
			return echo.NewHTTPError(http.StatusTooManyRequests, "limited by "+block.Rule)
		},
	}))
	e.GET("/healthz", func(c *echo.Context) error { return c.String(http.StatusOK, "healthy") })
	e.GET("/orders/:id", func(c *echo.Context) error { return c.String(http.StatusOK, "order "+c.Param("id")) })

	for _, path := range []string{"/orders/1", "/orders/2", "/orders/3", "/healthz"} {
		recorder := httptest.NewRecorder()
		e.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		fmt.Println(recorder.Code, recorder.Body)
	}
	// Output:
	// 200 order 1
	// 200 order 2
	// 429 {"message":"limited by two-a-second"}
	//
	// 200 healthy
}
