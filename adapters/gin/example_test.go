package penstockgin_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	penstockgin "github.com/penstock-go/penstock/adapters/gin"
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
	router := gin.New()
	router.Use(gin.Recovery(), penstockgin.Middleware(exampleEngine("GET:/orders/:id"), penstockgin.Options{}))
	router.GET("/orders/:id", func(c *gin.Context) { c.String(http.StatusOK, "order %s", c.Param("id")) })

	for id := range 3 {
		recorder := httptest.NewRecorder()
		router.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/orders/%d", id), http.NoBody))
		fmt.Printf("%d %q\n", recorder.Code, recorder.Header().Get("RateLimit"))
	}
	// Output:
	// 200 ""
	// 200 ""
	// 429 "\"p-dae92c4f8974\";r=0;t=1"
}

// Health checks stay unguarded, everything else is named by its route.
func ExampleOptions() {
	route := penstockgin.RouteResource()
	options := penstockgin.Options{
		Resource: func(c *gin.Context) string {
			if c.FullPath() == "/healthz" {
				return ""
			}
			return route(c)
		},
		Blocked: func(c *gin.Context, block *core.BlockError) {
			c.JSON(http.StatusTooManyRequests, gin.H{"limit": block.Rule, "retryAfter": block.RetryAfter.String()})
		},
	}
	router := gin.New()
	router.Use(penstockgin.Middleware(exampleEngine("GET:/orders/:id"), options))
	router.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "healthy") })
	router.GET("/orders/:id", func(c *gin.Context) { c.String(http.StatusOK, "order %s", c.Param("id")) })

	for _, path := range []string{"/orders/1", "/orders/2", "/orders/3", "/healthz"} {
		recorder := httptest.NewRecorder()
		router.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		fmt.Println(recorder.Code, recorder.Body)
	}
	// Output:
	// 200 order 1
	// 200 order 2
	// 429 {"limit":"two-a-second","retryAfter":"1s"}
	// 200 healthy
}

// Searches cost by the page, and partial results are failures.
func ExampleOptions_tokens() {
	options := penstockgin.Options{
		Tokens: func(c *gin.Context) int {
			pages, _ := strconv.Atoi(c.Query("pages"))
			return max(1, pages)
		},
		Failure: func(status int, err error) bool {
			return penstockgin.IsFailure(status, err) || status == http.StatusPartialContent
		},
		EntryError: func(c *gin.Context, err error) {
			c.String(http.StatusServiceUnavailable, "come back later: %v", err)
		},
	}
	router := gin.New()
	router.Use(penstockgin.Middleware(exampleEngine("GET:/search"), options))
	router.GET("/search", func(c *gin.Context) { c.Status(http.StatusOK) })

	for _, query := range []string{"pages=2", "pages=1"} {
		recorder := httptest.NewRecorder()
		router.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/search?"+query, http.NoBody))
		fmt.Println(recorder.Code)
	}
	// Output:
	// 200
	// 429
}
