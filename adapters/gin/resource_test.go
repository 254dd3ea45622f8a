package penstockgin_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"

	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
)

func TestResourceIsTheRouteThatMatched(t *testing.T) {
	for _, test := range []struct{ method, path, want string }{
		{"GET", "/orders/7?q=1", "GET:/orders/:id"},
		{"GET", "/v1/files/a/b.css", "GET:/v1/files/*path"},
		{"POST", "/v1/things", "POST:/v1/things"},
		{"PURGE", "/v1/things", "OTHER:/v1/things"},
		{"MADE-UP", "/v1/things", nethttp.Unmatched},
		{"POST", "/orders/7", nethttp.Unmatched},
		{"GET", "/some/other/path", nethttp.Unmatched},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			r := router(engine, penstockgin.Options{}, ok)
			group := r.Group("/v1")
			group.GET("/files/*path", ok)
			group.POST("/things", ok)
			group.Handle("PURGE", "/things", ok)
			do(t, serve(t, r), test.method, test.path)
			assert.Equal(t, []string{test.want}, called(engine))
		})
	}
}

func TestMethodThatIsNotAllowedIsUnmatched(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	r := router(engine, penstockgin.Options{}, ok)
	r.HandleMethodNotAllowed = true
	assert.Equal(t, http.StatusMethodNotAllowed, do(t, serve(t, r), http.MethodPost, "/orders/7").status)
	assert.Equal(t, []string{nethttp.Unmatched}, called(engine))
}

func TestUnmatchedPathsShareALimit(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("scans", nethttp.Unmatched, 2))
	server := serve(t, router(engine, penstockgin.Options{}, ok))
	var statuses []int
	for _, path := range []string{"/.env", "/wp-login.php", "/admin"} {
		statuses = append(statuses, get(t, server, path).status)
	}
	assert.Equal(t, []int{http.StatusNotFound, http.StatusNotFound, http.StatusTooManyRequests}, statuses)
}

func TestRequestWithoutAResourceIsNotGuarded(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, router(engine, penstockgin.Options{Resource: func(*gin.Context) string { return "" }}, ok))
	assert.Equal(t, "ok", get(t, server, "/orders/7").body)
	assert.Empty(t, called(engine))
}

func TestRandomPathsAndMethodsNeverBecomeNames(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	r := router(engine, penstockgin.Options{}, ok)
	r.Any("/any/:x", ok)
	random := rand.New(rand.NewPCG(1, 2))
	writer := &discardWriter{http.Header{}}
	for range 100_000 {
		word := fmt.Sprintf("%x", random.Uint64())
		methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "M" + word}
		paths := []string{"/" + word, "/orders/" + word, "/any/" + word, "/any/" + word + "/", "//" + word, "/é/../" + word}
		r.ServeHTTP(writer, &http.Request{
			Method: methods[random.IntN(len(methods))], Host: "h", Header: http.Header{},
			URL: &url.URL{Path: paths[random.IntN(len(paths))], RawQuery: word},
		})
	}
	possible := []string{"GET:/orders/:id", nethttp.Unmatched}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"} {
		possible = append(possible, method+":/any/:x")
	}
	assert.ElementsMatch(t, possible, called(engine))
}

func TestCallHasTheOriginThatTheOptionTells(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, flow.Rule{Resource: orders, Limit: 0, Origin: "mobile"})
	server := serve(t, router(engine, penstockgin.Options{
		Origin: func(c *gin.Context) string { return c.Query("from") },
	}, func(c *gin.Context) { _ = c.Error(fmt.Errorf("no order %s", c.Param("id"))) }))
	assert.Equal(t, http.StatusTooManyRequests, get(t, server, "/orders/7?from=mobile").status)
	get(t, server, "/orders/7?from=web")
	assert.EqualValues(t, 1, requireEnded(t, engine, orders, 1).Failed)
}
