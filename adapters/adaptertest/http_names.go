package adaptertest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rules"
)

// unmatched is the resource of requests that no route matches.
const unmatched = "unmatched"

func httpNameTests() []httpTest {
	return []httpTest{
		{"names come from routes", nil, namesComeFromRoutes},
		{"no path or method becomes a name", nil, noPathBecomesAName},
		{"unserved requests are answered as without a guard", nil, unservedRequestsAreAnsweredAsBefore},
		{"unmatched requests share a limit", []Feature{Unmatched}, unmatchedRequestsShareALimit},
		{"HEAD shares the limit of its route", []Feature{HeadOfGet}, headSharesTheLimit},
		{"Resource names requests", nil, resourceOptionNamesRequests},
		{"requests without a resource are not guarded", nil, requestsWithoutAResource},
	}
}

// namedRoutes are routes of different shapes.
func namedRoutes() []Route {
	return []Route{
		{http.MethodGet, ordersPattern, ok},
		{http.MethodPost, "/orders", ok},
		{http.MethodPut, ordersPattern, ok},
		{http.MethodDelete, "/orders/{id}/items/{item}", ok},
		{http.MethodGet, "/files/{path...}", ok},
		{http.MethodGet, "/about", ok},
	}
}

func namesComeFromRoutes(t *testing.T, h *HTTPHarness) {
	for _, test := range []struct{ method, path, pattern string }{
		{http.MethodGet, "/orders/7?q=1", ordersPattern},
		{http.MethodGet, "/orders/8", ordersPattern},
		{http.MethodPost, "/orders", "/orders"},
		{http.MethodPut, "/orders/7", ordersPattern},
		{http.MethodDelete, "/orders/7/items/9", "/orders/{id}/items/{item}"},
		{http.MethodGet, "/files/a/b.css", "/files/{path...}"},
		{http.MethodGet, "/about", "/about"},
	} {
		engine, _ := NewEngine(t, rules.Set{})
		c := h.serve(t, Server{Guards: []Guard{{Engine: engine}}, Routes: namedRoutes()})
		assert.Equal(t, http.StatusOK, c.do(test.method, test.path).status, test)
		assert.Equal(t, []string{h.resource(test.method, test.pattern)}, Called(engine), test)
	}
}

// possibleNames are the names that requests of the routes can have: clients choose one of
// ten methods, and else nothing.
func (h *HTTPHarness) possibleNames(routes []Route) []string {
	names := []string{unmatched}
	for _, route := range routes {
		for _, method := range []string{
			"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE", "OTHER",
		} {
			names = append(names, h.resource(method, route.Pattern))
		}
	}
	return names
}

// hostile returns a request that clients make which look for what there is.
func hostile(random *rand.Rand) (method, target string) {
	word := fmt.Sprintf("%x", random.Uint64())
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "M" + word}
	targets := []string{
		"/" + word, "/orders/" + word, "/orders/" + word + "/", "/orders/" + word + "/" + word,
		"/files/" + word + "/" + word, "//" + word, "/./orders/../" + word, "/a%20" + word, "/%2e%2e/" + word,
		"/" + strings.Repeat(word+"/", 20), "/orders?" + word, "/orders/" + word + "?" + word,
	}
	return methods[random.IntN(len(methods))], targets[random.IntN(len(targets))]
}

func noPathBecomesAName(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	routes := namedRoutes()
	c := h.serve(t, Server{Guards: []Guard{{Engine: engine}}, Routes: routes})
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // any random paths do
	for range 300 {
		c.send(hostile(random))
	}
	c.send("OPTIONS", "*")
	c.send("GET", "/orders/7")
	called := Called(engine)
	assert.Subset(t, h.possibleNames(routes), called)
	assert.Contains(t, called, h.orders())
}

func unservedRequestsAreAnsweredAsBefore(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	routes := namedRoutes()
	guarded := h.serve(t, Server{Guards: []Guard{{Engine: engine}}, Routes: routes})
	bare := h.serve(t, Server{Routes: routes})
	for _, test := range []struct{ method, path string }{
		{"GET", "/nothing/here"},
		{"POST", "/about"},
		{"PURGE", "/about"},
		{"OPTIONS", "/orders/7"},
		{"HEAD", "/orders/7"},
		{"HEAD", "/nothing"},
		{"GET", "/about/"},
		{"GET", "//about"},
		{"GET", "/orders/a%2Fb"},
	} {
		assert.Equal(t, bare.send(test.method, test.path), guarded.send(test.method, test.path), test)
	}
	assert.Subset(t, h.possibleNames(routes), Called(engine))
	assert.Equal(t, bare.do("POST", "/about").header["Allow"], guarded.do("POST", "/about").header["Allow"])
}

func unmatchedRequestsShareALimit(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Name: "scans", Resource: unmatched, Limit: 2}}})
	c := h.serveOrders(t, engine, Options{}, ok)
	var statuses []int
	for _, path := range []string{"/.env", "/wp-login.php", "/admin"} {
		statuses = append(statuses, c.get(path).status)
	}
	assert.Equal(t, []int{http.StatusNotFound, http.StatusNotFound, http.StatusTooManyRequests}, statuses)
	assert.Equal(t, http.StatusOK, c.get("/orders/7").status)
}

func headSharesTheLimit(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, h.limited(2))
	c := h.serveOrders(t, engine, Options{}, ok)
	statuses := []int{c.get("/orders/7").status, c.do(http.MethodHead, "/orders/7").status, c.do(http.MethodHead, "/orders/7").status}
	assert.Equal(t, []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests}, statuses)
}

func resourceOptionNamesRequests(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	c := h.serveOrders(t, engine, Options{Resource: func(r Request) string {
		return "by " + r.Header("App") + " " + r.Query("q")
	}}, ok)
	c.get("/orders/7?q=shoes", "App", "shop")
	assert.Equal(t, []string{"by shop shoes"}, Called(engine))
}

func requestsWithoutAResource(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Match: "*", Limit: 0}}})
	c := h.serveOrders(t, engine, Options{Resource: func(r Request) string {
		return r.Header("Resource")
	}}, ok)
	assert.Equal(t, "ok", c.get("/orders/7").body)
	assert.Empty(t, slices.DeleteFunc(Called(engine), func(name string) bool { return name == "guarded" }))
	assert.Equal(t, http.StatusTooManyRequests, c.get("/orders/7", "Resource", "guarded").status)
}
