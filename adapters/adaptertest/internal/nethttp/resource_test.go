package nethttp_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
)

// send writes a request as it stands here, which a client might not, and
// returns the status of the response.
func send(t *testing.T, server *httptest.Server, requestLine, host string) int {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", requestLine, host)
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer response.Body.Close()
	return response.StatusCode
}

func TestResourceIsThePatternThatMatched(t *testing.T) {
	for _, test := range []struct{ pattern, requestLine, host, want string }{
		{"GET /orders/{id}", "GET /orders/7?q=1", "a", "GET:/orders/{id}"},
		{"GET /orders/{id}", "HEAD /orders/7", "a", "GET:/orders/{id}"},
		{"POST \t /orders", "POST /orders", "a", "POST:/orders"},
		{"/orders/{id}", "GET /orders/7", "a", "GET:/orders/{id}"},
		{"/orders/{id}", "HEAD /orders/7", "a", "HEAD:/orders/{id}"},
		{"/orders/{id}", "MADE-UP /orders/7", "a", "OTHER:/orders/{id}"},
		{"PURGE /orders/{id}", "PURGE /orders/7", "a", "OTHER:/orders/{id}"},
		{"/static/", "GET /static/a/b.css", "a", "GET:/static/"},
		{"/{$}", "GET /", "a", "GET:/{$}"},
		{"GET example.com/orders", "GET /orders", "example.com:8080", "GET:example.com/orders"},
		{"example.com/", "GET /orders", "example.com", "GET:example.com/"},
		{"/a/{rest...}", "GET /a/b%20c/d", "a", "GET:/a/{rest...}"},
	} {
		t.Run(test.pattern+" for "+test.requestLine, func(t *testing.T) {
			for name, guarded := range map[string]func(*core.Engine) http.Handler{
				"around the mux": func(engine *core.Engine) http.Handler {
					mux := http.NewServeMux()
					mux.HandleFunc(test.pattern, ok)
					return nethttp.Middleware(engine, nethttp.Options{})(mux)
				},
				"around the handler": func(engine *core.Engine) http.Handler {
					mux := http.NewServeMux()
					mux.Handle(test.pattern, nethttp.Middleware(engine, nethttp.Options{})(http.HandlerFunc(ok)))
					return mux
				},
			} {
				engine, _ := newEngine(t, core.Config{})
				assert.Equal(t, http.StatusOK, send(t, serve(t, guarded(engine)), test.requestLine, test.host), name)
				assert.Equal(t, []string{test.want}, adaptertest.Called(engine), name)
			}
		})
	}
}

func TestAnswersOfTheMuxItselfAreUnmatched(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", ok)
	mux.HandleFunc("/tenants/{tenant}/{$}", ok)
	mux.HandleFunc("/tree/", ok)
	for _, test := range []struct {
		name, requestLine string
		status            int
	}{
		{"not found", "GET /a/b/c", http.StatusNotFound},
		{"method not allowed", "POST /orders/7", http.StatusMethodNotAllowed},
		{"redirect to the subtree", "GET /tree", http.StatusTemporaryRedirect},
		{"redirect to the clean path", "GET //tree/../tree/x", http.StatusTemporaryRedirect},
		{"redirect of a CONNECT, whose pattern is the raw path", "CONNECT /tenants/made-up", http.StatusTemporaryRedirect},
	} {
		t.Run(test.name, func(t *testing.T) {
			engine, _ := newEngine(t, core.Config{})
			server := serve(t, nethttp.Middleware(engine, nethttp.Options{})(mux))
			assert.Equal(t, test.status, send(t, server, test.requestLine, "a"))
			assert.Equal(t, []string{nethttp.Unmatched}, adaptertest.Called(engine))
		})
	}
}

func TestRegisteredRedirectIsARoute(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	mux := http.NewServeMux()
	mux.Handle("GET /old", http.RedirectHandler("/new", http.StatusMovedPermanently))
	server := serve(t, nethttp.Middleware(engine, nethttp.Options{})(mux))
	assert.Equal(t, http.StatusMovedPermanently, get(t, server, "/old").status)
	assert.Equal(t, []string{"GET:/old"}, adaptertest.Called(engine))
}

func TestHandlerWithoutAMuxIsUnmatched(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	server := serve(t, nethttp.Middleware(engine, nethttp.Options{})(http.HandlerFunc(ok)))
	get(t, server, "/some/path")
	assert.Equal(t, []string{nethttp.Unmatched}, adaptertest.Called(engine))
}

func TestMuxResourceUsesAnInnerMux(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", ok)
	options := nethttp.Options{Resource: nethttp.MuxResource(mux)}
	server := serve(t, nethttp.Middleware(engine, options)(http.StripPrefix("", mux)))
	get(t, server, "/orders/7")
	assert.Equal(t, []string{"GET:/orders/{id}"}, adaptertest.Called(engine))
}

func TestRandomPathsAndMethodsNeverBecomeNames(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", ok)
	mux.HandleFunc("/any/{x}/{$}", ok)
	handler := nethttp.Middleware(engine, nethttp.Options{})(mux)
	random := rand.New(rand.NewPCG(1, 2))
	discard := adaptertest.NewDiscardWriter()
	for range 100_000 {
		request := &http.Request{
			Method: randomMethod(random), Host: "h", RequestURI: "/", URL: randomURL(random),
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		}
		handler.ServeHTTP(discard, request)
	}
	possible := []string{"GET:/orders/{id}", nethttp.Unmatched}
	for _, method := range []string{
		"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "OTHER",
	} {
		possible = append(possible, method+":/any/{x}/{$}")
	}
	assert.ElementsMatch(t, possible, adaptertest.Called(engine))
}

func TestNamingARequestAllocatesNothing(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders", ok)
	resource := nethttp.MuxResource(mux)
	request := httptest.NewRequest(http.MethodGet, "/orders", http.NoBody)
	request.Pattern = "GET /orders"
	fromPattern := nethttp.PatternResource()
	require.Equal(t, "GET:/orders", resource(request))
	require.Equal(t, "GET:/orders", fromPattern(request))
	bare := testing.AllocsPerRun(100, func() { mux.Handler(request) })
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { resource(request) }), bare)
	assert.Zero(t, testing.AllocsPerRun(100, func() { fromPattern(request) }))
}

func randomMethod(random *rand.Rand) string {
	methods := []string{
		"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE",
		fmt.Sprintf("M%d", random.Uint64()),
	}
	return methods[random.IntN(len(methods))]
}

func randomURL(random *rand.Rand) *url.URL {
	word := fmt.Sprintf("%x", random.Uint64())
	paths := []string{
		"/" + word, "/orders/" + word, "/orders/" + word + "/", "/any/" + word + "/", "/any/" + word,
		"/" + strings.Repeat(word+"/", 5), "//" + word, "/./orders/../" + word, "/a%20" + word, "/é" + word,
	}
	return &url.URL{Path: paths[random.IntN(len(paths))], RawQuery: word}
}
