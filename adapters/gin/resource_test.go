package penstockgin_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
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
			do(t, adaptertest.ServeHandler(t, r), test.method, test.path)
			assert.Equal(t, []string{test.want}, adaptertest.Called(engine))
		})
	}
}

func TestMethodThatIsNotAllowedIsUnmatched(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	r := router(engine, penstockgin.Options{}, ok)
	r.HandleMethodNotAllowed = true
	assert.Equal(t, http.StatusMethodNotAllowed, do(t, adaptertest.ServeHandler(t, r), http.MethodPost, "/orders/7").status)
	assert.Equal(t, []string{nethttp.Unmatched}, adaptertest.Called(engine))
}

func TestRandomPathsAndMethodsNeverBecomeNames(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	r := router(engine, penstockgin.Options{}, ok)
	r.Any("/any/:x", ok)
	random := rand.New(rand.NewPCG(1, 2))
	writer := adaptertest.NewDiscardWriter()
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
	assert.ElementsMatch(t, possible, adaptertest.Called(engine))
}
