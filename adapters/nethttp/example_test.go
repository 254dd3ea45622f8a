package nethttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"time"

	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/outgoing"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// exampleEngine lets two calls of a resource a second pass. Its clock stands
// still, as the output of an example must not depend on time.
func exampleEngine(resource string) *core.Engine {
	engine := core.New(core.Config{Clock: clock.NewVirtual(time.Unix(0, 0)), Logger: slog.New(slog.DiscardHandler)})
	err := engine.Load(rules.Set{Flow: []flow.Rule{{Name: "two-a-second", Resource: resource, Limit: 2}}})
	if err != nil {
		panic(err)
	}
	return engine
}

func ExampleMiddleware() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "order %s\n", r.PathValue("id"))
	})
	engine := exampleEngine("GET:/orders/{id}")
	server := httptest.NewServer(nethttp.Middleware(engine, nethttp.Options{
		Fields: nethttp.Fields{ShowRules: true},
		Spread: nethttp.Spread{Share: -1}, // for the output: by default, Retry-After is 1 or 2
	})(mux))
	defer server.Close()

	for id := range 3 {
		response, err := http.Get(fmt.Sprintf("%s/orders/%d", server.URL, id))
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		fmt.Printf("%d %s", response.StatusCode, body)
		for _, field := range []string{"Retry-After", "RateLimit", "RateLimit-Policy"} {
			if value := response.Header.Get(field); value != "" {
				fmt.Printf("%s: %s\n", field, value)
			}
		}
	}
	// Output:
	// 200 order 0
	// 200 order 1
	// 429 {"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"detail":"The call of \"GET:/orders/{id}\" was refused by flow \"two-a-second\"; try again in 1s.","violated-policies":["two-a-second"]}
	// Retry-After: 1
	// RateLimit: "two-a-second";r=0;t=1
	// RateLimit-Policy: "two-a-second";q=2;w=1
}

// Health checks stay unguarded, everything else is named by its route.
func ExampleOptions() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", ok)
	mux.HandleFunc("GET /orders/{id}", ok)
	route := nethttp.MuxResource(mux)
	options := nethttp.Options{
		Resource: func(r *http.Request) string {
			if r.URL.Path == "/healthz" {
				return ""
			}
			return route(r)
		},
		Origin: func(r *http.Request) string { return r.Header.Get("X-Service") },
		Fields: nethttp.Fields{Always: true, ShowRules: true},
	}
	handler := nethttp.Middleware(exampleEngine("GET:/orders/{id}"), options)(mux)

	for _, path := range []string{"/healthz", "/orders/7"} {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		fmt.Printf("%s: %q\n", path, recorder.Header().Get("RateLimit"))
	}
	// Output:
	// /healthz: ""
	// /orders/7: "\"two-a-second\";r=1;t=1"
}

// Behind a proxy, the client is the one that the proxy names. What the client itself
// has written into X-Forwarded-For stands to the left of that, and is not looked at.
func ExampleOptions_trustedProxies() {
	engine := core.New(core.Config{Clock: clock.NewVirtual(time.Unix(0, 0)), Logger: slog.New(slog.DiscardHandler)})
	defer engine.Close()
	_ = engine.Load(rules.Set{HotParam: []hotparam.Rule{
		{Name: "per-address", Resource: "GET:/search", Param: rule.StringsOf("ip"), Limit: 1},
	}})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /search", ok)
	handler := nethttp.Middleware(engine, nethttp.Options{
		Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	})(mux)

	for _, c := range []struct{ peer, forwardedFor string }{
		{"10.1.2.3:443", "203.0.113.7"},
		{"10.1.2.3:443", "192.0.2.1, 203.0.113.7"}, // 203.0.113.7 again, with a forged entry
		{"10.1.2.3:443", "203.0.113.8"},
		{"203.0.113.8:999", "192.0.2.2"}, // no proxy: the peer is the client
	} {
		request := httptest.NewRequest(http.MethodGet, "/search", http.NoBody)
		request.RemoteAddr = c.peer
		request.Header.Set("X-Forwarded-For", c.forwardedFor)
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		fmt.Println(recorder.Code)
	}
	// Output:
	// 200
	// 429
	// 200
	// 429
}

// Another router's routes become resources the same way.
func ExampleNames() {
	routeOf := func(*http.Request) string { return "/orders/:id" } // what the router says
	var names nethttp.Names
	options := nethttp.Options{
		Resource: func(r *http.Request) string { return names.Name(r.Method, routeOf(r)) },
	}
	fmt.Println(options.Resource(httptest.NewRequest(http.MethodPost, "/orders/7", http.NoBody)))
	// Output: POST:/orders/:id
}

// A mux that something else is around is asked itself.
func ExampleMuxResource() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", ok)
	logging := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("serving", r.URL.Path)
		mux.ServeHTTP(w, r)
	})
	options := nethttp.Options{Resource: nethttp.MuxResource(mux)}
	handler := nethttp.Middleware(exampleEngine("GET:/orders/{id}"), options)(logging)

	for range 3 {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody))
		fmt.Println(recorder.Code)
	}
	// Output:
	// serving /orders/7
	// 200
	// serving /orders/7
	// 200
	// 429
}

// What a router knows of a request names its resource.
func ExampleRouteResource() {
	type routeKey struct{} // as that of a router that keeps the route in the context
	resource := nethttp.RouteResource(func(r *http.Request) string {
		route, _ := r.Context().Value(routeKey{}).(string)
		return route
	})
	request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
	fmt.Println(resource(request))
	fmt.Println(resource(request.WithContext(context.WithValue(request.Context(), routeKey{}, "/orders/{id}"))))
	// Output:
	// unmatched
	// GET:/orders/{id}
}

// Searches cost by the page, too few results are a failure, and what is not let
// through for another reason than a refusal is answered in the program's own way.
func ExampleOptions_tokens() {
	options := nethttp.Options{
		Resource: func(*http.Request) string { return "search" },
		Tokens: func(r *http.Request) int {
			pages, _ := strconv.Atoi(r.URL.Query().Get("pages"))
			return max(1, pages)
		},
		Failure: func(status int, err error) bool {
			return nethttp.IsFailure(status, err) || status == http.StatusPartialContent
		},
		EntryError: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "come back later: "+err.Error(), http.StatusServiceUnavailable)
		},
	}
	engine := exampleEngine("search")
	handler := nethttp.Middleware(engine, options)(http.HandlerFunc(ok))
	search := func(query string) {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/search?"+query, http.NoBody))
		fmt.Println(recorder.Code)
	}
	search("pages=2")
	search("pages=1")
	engine.Close()
	search("")
	// Output:
	// 200
	// 429
	// 503
}

func ExampleTransport() {
	server := httptest.NewServer(http.HandlerFunc(ok))
	defer server.Close()
	client := &http.Client{Transport: &nethttp.Transport{
		Engine:   exampleEngine("billing"),
		Resource: func(*http.Request) string { return "billing" },
	}}
	for range 3 {
		response, err := client.Get(server.URL)
		var block *core.BlockError
		switch {
		case errors.As(err, &block):
			fmt.Println("not sent, retry after", block.RetryAfter)
		case err != nil:
			fmt.Println(err)
		default:
			response.Body.Close()
			fmt.Println(response.Status)
		}
	}
	// Output:
	// 200 OK
	// 200 OK
	// not sent, retry after 1s
}

// A client obeys a server that does not want requests for a while.
func ExampleTransport_throttle() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	throttle, err := outgoing.NewThrottle(outgoing.ThrottleOptions{})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: &nethttp.Transport{Engine: exampleEngine("none"), Throttle: throttle}}
	for range 2 {
		response, err := client.Get(server.URL)
		var refusal *outgoing.Error
		switch {
		case errors.As(err, &refusal):
			fmt.Println("not sent:", refusal.Cause)
		case err != nil:
			fmt.Println(err)
		default:
			response.Body.Close()
			fmt.Println(response.Status)
		}
	}
	// Output:
	// 503 Service Unavailable
	// not sent: outgoing: paused by the target
}

// Services of one's own choose the priority of their requests, and others at most the
// normal one. The handler, and what it calls, know it by the context.
func ExampleOptions_priority() {
	handler := nethttp.Middleware(exampleEngine("none"), nethttp.Options{
		PriorityHeader: priority.Field,
		Clients: clientip.Options{PriorityCallers: []priority.Callers{
			{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Max: rule.PriorityCritical},
			{From: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}, Max: rule.PriorityNormal},
		}},
	})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		p, _ := core.PriorityFromContext(r.Context())
		fmt.Println(r.RemoteAddr, p)
	}))
	for _, from := range []string{"10.1.2.3:4000", "198.51.100.7:4000"} {
		for _, value := range []string{"critical", "low"} {
			request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			request.RemoteAddr = from
			request.Header.Set(priority.Field, value)
			handler.ServeHTTP(httptest.NewRecorder(), request)
		}
	}
	// Output:
	// 10.1.2.3:4000 critical
	// 10.1.2.3:4000 low
	// 198.51.100.7:4000 normal
	// 198.51.100.7:4000 low
}

// ok answers 200.
func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }
