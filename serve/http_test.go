package serve_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	auth "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/serve"
)

// asked is a request that a proxy asks about.
type asked struct {
	method, uri, client string
	header              map[string]string
	resource            string // that the proxy names
}

// decided is the answer to it.
type decided struct {
	status int
	header http.Header
	body   string
}

// asks returns how each protocol asks about a request, by a proxy with the address 10.0.0.1.
func asks(t *testing.T, engine *core.Engine, options serve.HTTPOptions) map[string]func(asked) decided {
	t.Helper()
	options.Clients.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	forward, err := serve.NewForwardAuth(engine, serve.ForwardAuthOptions{HTTPOptions: options, ResourceHeader: "Penstock-Resource"})
	require.NoError(t, err)
	authz, err := serve.NewExtAuthz(engine, options)
	require.NoError(t, err)
	client := auth.NewAuthorizationClient(dial(t, func(s *grpc.Server) { auth.RegisterAuthorizationServer(s, authz) }))
	return map[string]func(asked) decided{
		"forward auth": func(a asked) decided {
			r := httptest.NewRequest(http.MethodGet, "/auth", nil)
			r.RemoteAddr = "10.0.0.1:1234"
			for name, value := range a.header {
				r.Header.Set(name, value)
			}
			for name, value := range map[string]string{
				"X-Forwarded-Method": a.method, "X-Forwarded-Uri": a.uri, "X-Forwarded-For": a.client, "Penstock-Resource": a.resource,
			} {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			forward.ServeHTTP(w, r)
			return decided{w.Code, w.Header(), w.Body.String()}
		},
		"ext_authz": func(a asked) decided {
			response, err := client.Check(t.Context(), check(a))
			require.NoError(t, err)
			d := decided{status: http.StatusOK, header: http.Header{}}
			fields := response.GetOkResponse().GetResponseHeadersToAdd()
			if denied := response.GetDeniedResponse(); denied != nil {
				assert.Equal(t, codes.PermissionDenied, codes.Code(response.GetStatus().GetCode()))
				d.status, d.body = int(denied.GetStatus().GetCode()), denied.GetBody()
				fields = denied.GetHeaders()
			}
			for _, field := range fields {
				d.header.Add(field.GetHeader().GetKey(), field.GetHeader().GetValue())
			}
			return d
		},
	}
}

func check(a asked) *auth.CheckRequest {
	header := map[string]string{"x-forwarded-for": a.client, ":path": a.uri}
	maps.Copy(header, a.header)
	request := &auth.CheckRequest{Attributes: &auth.AttributeContext{
		Source: &auth.AttributeContext_Peer{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{
			SocketAddress: &corev3.SocketAddress{Address: "10.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 1234}},
		}}},
		Request: &auth.AttributeContext_Request{Http: &auth.AttributeContext_HttpRequest{
			Method: a.method, Path: a.uri, Host: "shop.example", Headers: header,
		}},
	}}
	if a.resource != "" {
		request.Attributes.ContextExtensions = map[string]string{serve.ResourceExtension: a.resource}
	}
	return request
}

func TestHTTPRequestsAreCallsOfTheirRoute(t *testing.T) {
	for protocol := range asks(t, core.New(core.Config{}), serve.HTTPOptions{}) {
		t.Run(protocol, func(t *testing.T) {
			engine, now := newEngine(t, `
flow:
  - {name: two, resource: "GET:/orders/{id}", limit: 2}
  - {resource: unmatched, limit: 0}
  - {resource: named, limit: 0}
hotParam:
  - {name: per-tenant, resource: "POST:/orders", param: "header:x-tenant", limit: 1}
access:
  - {name: nets, resource: "GET:/admin", deny: [192.0.2.0/24]}
`)
			ask := asks(t, engine, serve.HTTPOptions{Routes: []string{"GET /orders/{id}", "POST /orders", "GET /admin", "GET /free"}, Spread: nethttp.Spread{Share: -1}})[protocol]
			orders := asked{method: "GET", uri: "/orders/7?x=1", client: "198.51.100.1"}
			assert.Equal(t, 200, ask(orders).status)
			orders.uri = "//orders/./8" // leaves no route
			assert.Equal(t, 200, ask(orders).status)
			refused := ask(orders)
			assert.Equal(t, 429, refused.status)
			assert.Equal(t, "1", refused.header.Get("Retry-After"))
			assert.Regexp(t, `^"p-[0-9a-f]{12}";r=0`, refused.header.Get("RateLimit"))
			assert.Contains(t, refused.body, "quota-exceeded")
			now.Advance(2 * time.Second)
			assert.Equal(t, 200, ask(orders).status)

			tenant := asked{method: "POST", uri: "/orders", client: "198.51.100.1", header: map[string]string{"x-tenant": "a"}}
			assert.Equal(t, 200, ask(tenant).status)
			assert.Equal(t, 429, ask(tenant).status)
			tenant.header = map[string]string{"x-tenant": "b"}
			assert.Equal(t, 200, ask(tenant).status)

			assert.Equal(t, 403, ask(asked{method: "GET", uri: "/admin", client: "203.0.113.9, 192.0.2.1"}).status)
			assert.Equal(t, 200, ask(asked{method: "GET", uri: "/admin", client: "192.0.2.1, 203.0.113.9"}).status,
				"what the client wrote was believed")
			for _, uri := range []string{"/x/%2e%2e/admin", "/%2E/admin", "/x/.%2e/admin?a=/free"} {
				assert.Equal(t, 403, ask(asked{method: "GET", uri: uri, client: "203.0.113.9, 192.0.2.1"}).status, uri)
			}
			assert.Equal(t, 429, ask(asked{method: "GET", uri: "/x%2f../admin", client: "192.0.2.1"}).status, "it is a segment of that name")
			assert.Equal(t, 200, ask(asked{method: "GET", uri: "/free", client: "192.0.2.1"}).status)
			assert.Equal(t, 429, ask(asked{method: "GET", uri: "/elsewhere", client: "192.0.2.1"}).status)
			assert.Equal(t, 429, ask(asked{method: "BREW", uri: "/orders/7", client: "192.0.2.1"}).status)
			assert.Equal(t, 429, ask(asked{method: "GET", uri: "/free", client: "192.0.2.1", resource: "named"}).status)
		})
	}
}

func TestCallsOverHTTPWaitAsTheirRulesSay(t *testing.T) {
	engine := core.New(core.Config{})
	defer engine.Close()
	load(t, engine, "flow: [{resource: 'GET:/a', limit: 100, algorithm: throttle, maxWait: 1s}]")
	for protocol, ask := range asks(t, engine, serve.HTTPOptions{Routes: []string{"GET /a"}}) {
		begin := time.Now()
		for range 4 {
			assert.Equal(t, 200, ask(asked{method: "GET", uri: "/a"}).status, protocol)
		}
		assert.GreaterOrEqual(t, time.Since(begin), 20*time.Millisecond, protocol)
	}
}

func TestForwardAuthAnswersTrustedProxiesOnly(t *testing.T) {
	engine, _ := newEngine(t, "flow: []")
	forward, err := serve.NewForwardAuth(engine, serve.ForwardAuthOptions{})
	require.NoError(t, err)
	for peer, want := range map[string]int{"127.0.0.1:1": 200, "[::1]:1": 200, "192.0.2.1:1": 403, "": 403} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-Uri", "/")
		w := httptest.NewRecorder()
		forward.ServeHTTP(w, r)
		assert.Equal(t, want, w.Code, peer)
	}
}

func TestForwardAuthBelievesNoneOfTwoFieldsOfAName(t *testing.T) {
	engine, _ := newEngine(t, "flow: [{resource: unmatched, limit: 100}]")
	forward, err := serve.NewForwardAuth(engine, serve.ForwardAuthOptions{
		HTTPOptions: serve.HTTPOptions{OriginHeader: "X-Origin"}, ResourceHeader: "Penstock-Resource",
	})
	require.NoError(t, err)
	ask := func(field string, values ...string) int {
		r := httptest.NewRequest(http.MethodGet, "/auth", nil)
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("X-Forwarded-Uri", "/free")
		r.Header[http.CanonicalHeaderKey(field)] = values
		w := httptest.NewRecorder()
		forward.ServeHTTP(w, r)
		return w.Code
	}
	for _, field := range []string{"X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host", "Penstock-Resource", "X-Origin"} {
		if field != "X-Forwarded-Method" {
			assert.Equal(t, 200, ask(field, "/free"), field)
		}
		assert.Equal(t, 400, ask(field, "/free", "/admin"), field)
	}
	assert.Equal(t, 200, ask("X-Forwarded-For", "192.0.2.1", "192.0.2.2"), "proxies add to it")
	for _, method := range []string{"GE T", "G\nET", "GET,POST", "G\xffT"} {
		assert.Equal(t, 400, ask("X-Forwarded-Method", method), method)
	}
}

func TestForwardAuthWantsToKnowWhichRequestIsMeant(t *testing.T) {
	engine, _ := newEngine(t, "flow: [{resource: unmatched, limit: 0}]")
	forward, err := serve.NewForwardAuth(engine, serve.ForwardAuthOptions{RefuseStatus: 403, ResourceHeader: "Penstock-Resource"})
	require.NoError(t, err)
	for name, test := range map[string]struct {
		header map[string]string
		status int
		real   string
	}{
		"nothing":    {nil, 403, "400"},
		"no path":    {map[string]string{"X-Forwarded-Uri": "orders"}, 403, "400"},
		"a fragment": {map[string]string{"X-Forwarded-Uri": "/orders#x"}, 403, "400"},
		"a refusal":  {map[string]string{"X-Forwarded-Uri": "/orders"}, 403, "429"},
		"a resource": {map[string]string{"Penstock-Resource": "orders"}, 200, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/auth", nil)
		r.RemoteAddr = "127.0.0.1:1"
		for field, value := range test.header {
			r.Header.Set(field, value)
		}
		w := httptest.NewRecorder()
		forward.ServeHTTP(w, r)
		assert.Equal(t, test.status, w.Code, name)
		assert.Equal(t, test.real, w.Header().Get(serve.StatusField), name)
	}
	engine.Close()
	r := httptest.NewRequest(http.MethodGet, "/auth", nil)
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-Forwarded-Uri", "/orders")
	w := httptest.NewRecorder()
	forward.ServeHTTP(w, r)
	assert.Equal(t, "503", w.Header().Get(serve.StatusField))
}

func TestExtAuthzSaysWhatRefusedAndWhatItCannotDecide(t *testing.T) {
	engine, _ := newEngine(t, "flow: [{name: r, resource: a, limit: 0}, {name: s, resource: b, limit: 0, shadow: true}]")
	authz, err := serve.NewExtAuthz(engine, serve.HTTPOptions{})
	require.NoError(t, err)
	refused, err := authz.Check(t.Context(), check(asked{method: "GET", uri: "/", resource: "a"}))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"reason": "rateLimited", "resource": "a", "kind": "flow", "rule": "r"}, refused.GetDynamicMetadata().AsMap())
	passed, err := authz.Check(t.Context(), check(asked{method: "GET", uri: "/", resource: "b"}))
	require.NoError(t, err)
	assert.NotNil(t, passed.GetOkResponse())
	assert.Equal(t, "s", passed.GetDynamicMetadata().AsMap()["shadows"].([]any)[0].(map[string]any)["rule"])
	for name, request := range map[string]*auth.CheckRequest{
		"nothing": {}, "no path": check(asked{method: "GET", uri: "orders"}), "a fragment": check(asked{method: "GET", uri: "/orders#x"}),
	} {
		_, err := authz.Check(t.Context(), request)
		assert.Equal(t, codes.InvalidArgument, status.Code(err), name)
	}
	engine.Close()
	_, err = authz.Check(t.Context(), check(asked{method: "GET", uri: "/"}))
	assert.Equal(t, codes.Unavailable, status.Code(err))
}

func TestRoutesThatMakeNoSenseAreErrors(t *testing.T) {
	engine, _ := newEngine(t, "flow: []")
	for _, routes := range [][]string{{"GET"}, {"GET /{a"}, {"GET /a", "GET /a"}, {""}} {
		_, err := serve.NewExtAuthz(engine, serve.HTTPOptions{Routes: routes})
		require.ErrorContains(t, err, "serve: the route", routes)
		_, err = serve.NewForwardAuth(engine, serve.ForwardAuthOptions{HTTPOptions: serve.HTTPOptions{Routes: routes}})
		require.Error(t, err, routes)
	}
}

// A proxy asks the handler about every request before it passes it on.
func ExampleNewForwardAuth() {
	engine := core.New(core.Config{})
	defer engine.Close()
	handler, err := serve.NewForwardAuth(engine, serve.ForwardAuthOptions{
		HTTPOptions: serve.HTTPOptions{Routes: []string{"GET /orders/{id}"}},
	})
	if err != nil {
		panic(err)
	}
	request, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "/auth", http.NoBody)
	request.RemoteAddr = "127.0.0.1:40000"
	request.Header.Set("X-Forwarded-Uri", "/orders/7")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	fmt.Println(answer.Code)
	// Output: 200
}

func TestPrioritiesAreBelievedOfSomeClientsOnly(t *testing.T) {
	probe := new(adaptertest.Probe)
	from := []priority.Callers{{From: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Max: rule.PriorityHigh}}
	for name, ask := range asks(t, probe.NewEngine(t), serve.HTTPOptions{PriorityHeader: "P", Clients: clientip.Options{PriorityCallers: from}}) {
		for _, test := range []struct {
			client, says string
			want         rule.Priority
		}{
			{"192.0.2.7", "critical", rule.PriorityHigh},
			{"192.0.2.7", "low", rule.PriorityLow},
			{"192.0.2.7", "urgent; \u202e", rule.PriorityNormal},
			{"198.51.100.1", "critical", rule.PriorityNormal},
			{"192.0.2.7, 198.51.100.1", "critical", rule.PriorityNormal}, // what the client has written comes first
			{"", "critical", rule.PriorityNormal},
		} {
			got := ask(asked{method: "GET", uri: "/", client: test.client, header: map[string]string{"P": test.says}})
			assert.Equal(t, http.StatusOK, got.status, name)
			assert.Equal(t, test.want, probe.LastCall().Priority(), "%s: %v", name, test)
		}
	}
}
