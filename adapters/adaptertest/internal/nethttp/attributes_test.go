package nethttp_test

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/attribute"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// attributeOf returns what a rule that looks at the key gets to know of a request.
func attributeOf(t *testing.T, key string, options nethttp.Options, next http.Handler, r *http.Request) rule.Attribute {
	t.Helper()
	p := &adaptertest.Probe{Attribute: key}
	nethttp.Middleware(p.NewEngine(t), options)(next).ServeHTTP(httptest.NewRecorder(), r)
	return p.LastCall().Attribute
}

// parse returns a request as a server reads it.
func parse(method, target string, header ...string) *http.Request {
	r := httptest.NewRequest(method, target, http.NoBody)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return r
}

func TestRulesLookAtAttributesOfRequests(t *testing.T) {
	nothing := rule.Attribute{}
	long := strings.Repeat("x", 5000)
	for _, test := range []struct {
		key     string
		request *http.Request
		want    rule.Attribute
	}{
		{"method", parse("PUT", "/"), rule.String("PUT")},
		{"method", &http.Request{URL: &url.URL{}}, rule.String("GET")},
		{"path", parse("GET", "/a%20b/c?d=e"), rule.String("/a b/c")},
		{"host", parse("GET", "http://Shop.Example.:8080/"), rule.String("shop.example")},
		{"host", parse("GET", "http://[::1]:8080/"), rule.String("::1")},
		{"host", &http.Request{URL: &url.URL{}}, rule.String("")},
		{"ip", parse("GET", "/"), rule.String("192.0.2.1")},
		{"ipPrefix", parse("GET", "/"), rule.String("192.0.2.1")},

		{"header:X-Tenant", parse("GET", "/", "X-Tenant: a", "X-Tenant: b"), rule.String("a")},
		{"header:x-tenant", parse("GET", "/", "X-Tenant: a"), rule.String("a")},
		{"header:X-TENANT", parse("GET", "/", "X-Tenant: a"), rule.String("a")},
		{"header:x-" + long[:100], parse("GET", "/", "X-"+long[:100]+": a"), rule.String("a")},
		{"header:X-Tenant", parse("GET", "/", "X-Tenant: "), rule.String("")},
		{"header:X-Tenant", parse("GET", "/"), nothing},
		{"header:host", parse("GET", "http://Shop:80/"), rule.String("Shop:80")},
		{"header:", parse("GET", "/"), nothing},
		{"header", parse("GET", "/"), nothing},

		{"cookie:sid", parse("GET", "/", "Cookie: a=b; sid=1; sid=2", "Cookie: sid=3"), rule.String("1")},
		{"cookie:sid", parse("GET", "/", `Cookie: sid="1 2"`), rule.String("1 2")},
		{"cookie:sid", parse("GET", "/", "Cookie: sid=\\; sid=2"), rule.String("2")},
		{"cookie:sid", parse("GET", "/", "Cookie: sid="), rule.String("")},
		{"cookie:sid", parse("GET", "/", "Cookie: SID=1"), nothing},

		{"query:id", parse("GET", "/?id=1&id=2"), rule.String("1")},
		{"query:id", parse("GET", "/?%69%64=a%20b+c"), rule.String("a b c")},
		{"query:id", parse("GET", "/?id=%zz&id=2"), rule.String("2")},
		{"query:id", parse("GET", "/?id"), rule.String("")},
		{"query:id", parse("GET", "/?idx=1&xid=2"), nothing},

		{"param:id", parse("GET", "/"), nothing},
		{"user", parse("GET", "/"), nothing},
		{"", parse("GET", "/"), nothing},
		{"nonsense:x", parse("GET", "/"), nothing},
	} {
		got := attributeOf(t, test.key, nethttp.Options{Logger: discardLogger()}, http.HandlerFunc(ok), test.request)
		assert.Equal(t, test.want.GoString(), got.GoString(), "%s of %v", test.key, test.request.URL)
	}
	text, _ := attributeOf(t, "header:X", nethttp.Options{}, http.HandlerFunc(ok), parse("GET", "/", "X: "+long)).Text()
	assert.Len(t, text, 1024+1+32, "long values are shortened")
}

func TestRequestsWithoutURLHaveNoAttributes(t *testing.T) {
	source := nethttp.NewAttributes(clientip.Options{})
	for _, key := range []string{"ip", "host", "path", "header:X", "query:x", "cookie:x", "param:x"} {
		for _, r := range []*http.Request{nil, {}} {
			assert.Equal(t, rule.Attribute{}.GoString(), source.Attribute(r, key).GoString())
		}
	}
}

func TestOptionsGoBeforeAttributesOfTheRequest(t *testing.T) {
	options := nethttp.Options{Attributes: func(*http.Request) []core.Option {
		return []core.Option{core.Int("header:X-Tenant", 7)}
	}}
	got := attributeOf(t, "header:X-Tenant", options, http.HandlerFunc(ok), parse("GET", "/", "X-Tenant: a"))
	assert.Equal(t, rule.Int(7).GoString(), got.GoString())
}

func TestParamIsAWildcardOfTheRoute(t *testing.T) {
	handler := http.HandlerFunc(ok)
	for _, test := range []struct {
		pattern, target, key string
		want                 rule.Attribute
	}{
		{"GET /orders/{id}", "/orders/7", "param:id", rule.String("7")},
		{"/orders/{id}/items/{item}", "/orders/7/items/8", "param:item", rule.String("8")},
		{"example.com/orders/{id}", "http://example.com/orders/7", "param:id", rule.String("7")},
		{"/orders/{id}", "/orders/a%2Fb%20c", "param:id", rule.String("a/b c")},
		{"/files/{path...}", "/files/a/b", "param:path", rule.String("a/b")},
		{"/files/{path...}", "/files/", "param:path", rule.String("")},
		{"/{tenant}/{$}", "/a/", "param:tenant", rule.String("a")},
		{"/orders/{id}", "/orders/7", "param:other", rule.Attribute{}},
		{"/orders/{id}", "/orders/7", "param:", rule.Attribute{}},
		{"/orders/", "/orders/7", "param:id", rule.Attribute{}},
		{"/{$}", "/", "param:$", rule.Attribute{}},
	} {
		mux := http.NewServeMux()
		mux.Handle(test.pattern, handler)
		got := attributeOf(t, test.key, nethttp.Options{}, mux, parse("GET", test.target))
		assert.Equal(t, test.want.GoString(), got.GoString(), "around the mux: %+v", test)

		p := &adaptertest.Probe{Attribute: test.key}
		mux = http.NewServeMux()
		mux.Handle(test.pattern, nethttp.Middleware(p.NewEngine(t), nethttp.Options{Logger: discardLogger()})(handler))
		mux.ServeHTTP(httptest.NewRecorder(), parse("GET", test.target))
		assert.Equal(t, test.want.GoString(), p.LastCall().Attribute.GoString(), "inside of the mux: %+v", test)
	}
}

func TestParamOfAnInnerMuxGoesBeforeThatOfAnOuterOne(t *testing.T) {
	p := &adaptertest.Probe{Attribute: "param:id"}
	inner, outer := http.NewServeMux(), http.NewServeMux()
	inner.HandleFunc("/{name}/{id}", ok)
	outer.Handle("/{id}/", nethttp.Middleware(p.NewEngine(t), nethttp.Options{})(inner))
	outer.ServeHTTP(httptest.NewRecorder(), parse("GET", "/orders/7"))
	assert.Equal(t, rule.String("7").GoString(), p.LastCall().Attribute.GoString())
}

// Rules on values that are never found would limit nothing, silently.
func TestMiddlewareThatCannotTellPathValuesWarnsOnce(t *testing.T) {
	var log strings.Builder
	options := nethttp.Options{
		Resource: func(*http.Request) string { return "all" }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	p := &adaptertest.Probe{Attribute: "param:id"}
	mux := http.NewServeMux()
	mux.HandleFunc("/orders/{id}", ok)
	wrapped := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(w, r) })
	guarded := nethttp.Middleware(p.NewEngine(t), options)(wrapped)
	for range 3 {
		guarded.ServeHTTP(httptest.NewRecorder(), parse("GET", "/orders/7"))
	}
	assert.Equal(t, rule.Attribute{}.GoString(), p.LastCall().Attribute.GoString())
	assert.Equal(t, 1, strings.Count(log.String(), "cannot tell the path values"), log.String())
}

// A local process can bind its end of a Unix socket to a path that looks like an address.
func TestPeerOnUnixSocketIsLocalWhateverItsPathIs(t *testing.T) {
	t.Chdir(t.TempDir())
	p := &adaptertest.Probe{Attribute: "ip"}
	options := nethttp.Options{Resource: func(*http.Request) string { return "all" }}
	listener, err := net.Listen("unix", "server")
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(nethttp.Middleware(p.NewEngine(t), options)(http.HandlerFunc(ok)))
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	defer server.Close()

	conn, err := net.DialUnix("unix", &net.UnixAddr{Name: "203.0.113.9:80", Net: "unix"}, &net.UnixAddr{Name: "server", Net: "unix"})
	require.NoError(t, err)
	raw(t, conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	assert.Equal(t, rule.String("127.0.0.1").GoString(), p.LastCall().Attribute.GoString())
}

func TestAttributesCostNothingBesideTheRecorder(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(http.ResponseWriter, *http.Request) {})
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	request := parse("GET", "/orders/7?tenant=a&x=%20", "X-Tenant: a", "Cookie: a=b; sid=1",
		"X-Forwarded-For: 1.1.1.1, 2001:db8::7, 192.0.2.7")
	request.Pattern = "GET /orders/{id}"
	request.SetPathValue("id", "7")
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, key := range []string{
		"user", "ip", "ipPrefix", "method", "host", "path", "header:x-tenant", "header:X-Missing", "cookie:sid", "query:tenant", "query:none",
		"param:id", "param:none",
	} {
		p := &adaptertest.AttributeReader{Key: key}
		guarded := nethttp.Middleware(p.NewEngine(t), nethttp.Options{Clients: clientip.Options{TrustedProxies: proxies}})(nothing)
		writer := adaptertest.NewDiscardWriter()
		guarded.ServeHTTP(writer, request)
		assert.Equal(t, key != "user" && key != "header:X-Missing" && key != "query:none" && key != "param:none", p.Found, key)
		assert.LessOrEqual(t, testing.AllocsPerRun(200, func() { guarded.ServeHTTP(writer, request) }), 1.0, key)
	}
}

// FuzzNamedValues compares the values of cookies and parameters with those that
// handlers see.
func FuzzNamedValues(f *testing.F) {
	f.Add("a=b; sid=1", "id=1&id=2", "sid")
	f.Add(`sid="1"; sid=2`, "%69d=a%20b+c&i;d=1", "id")
	f.Add("=;;sid = \"", "id=%zz&=&id", "id")
	source := nethttp.NewAttributes(clientip.Options{})
	f.Fuzz(func(t *testing.T, cookies, query, name string) {
		if name == "" {
			return
		}
		r := &http.Request{URL: &url.URL{RawQuery: query}, Header: http.Header{"Cookie": strings.Split(cookies, "\n")}}
		want := rule.Attribute{}
		if values, ok := r.URL.Query()[name]; ok {
			want = attribute.Text(values[0])
		}
		assert.Equal(t, want.GoString(), source.Attribute(r, "query:"+name).GoString())
		want = rule.Attribute{}
		if cookie, err := r.Cookie(name); err == nil {
			want = attribute.Text(cookie.Value)
		} else if strings.ContainsAny(name, "=; \t\r\n\"(),/:<>?@[]{}\\") || !isASCII(name) {
			return // no name of a cookie
		}
		assert.Equal(t, want.GoString(), source.Attribute(r, "cookie:"+name).GoString())
	})
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
}

// FuzzParam compares wildcards with those that the mux finds.
func FuzzParam(f *testing.F) {
	f.Add("/orders/{id}", "/orders/7")
	f.Add("/{id...}", "/a/b//")
	f.Add("GET example.com/a/{id}/{$}", "/a/%2F/")
	f.Add("//{id}", "/orders/7")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if strings.Contains(pattern, "//") {
			return // an empty segment is a wildcard without a name to the mux, and {id} has the value of that one
		}
		parsed, err := url.ParseRequestURI(path)
		if err != nil || parsed.Host != "" {
			return
		}
		mux := http.NewServeMux()
		served, value := false, ""
		handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { served, value = true, r.PathValue("id") })
		if !registers(mux, pattern, handler) {
			return
		}
		r := &http.Request{Method: http.MethodGet, URL: parsed, Host: "example.com", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
		p := &adaptertest.AttributeReader{Key: "param:id"}
		nethttp.Middleware(p.NewEngine(t), nethttp.Options{Logger: discardLogger()})(mux).ServeHTTP(httptest.NewRecorder(), r)
		if served {
			want, _ := attribute.Text(value).Text()
			assert.Equal(t, want, p.Text)
			assert.Equal(t, strings.Contains(pattern, "{id}") || strings.Contains(pattern, "{id...}"), p.Found)
		}
	})
}

// registers returns whether the pattern is one.
func registers(mux *http.ServeMux, pattern string, handler http.Handler) (valid bool) {
	defer func() { valid = recover() == nil }()
	mux.Handle(pattern, handler)
	return true
}

func TestParamOptionTellsWildcardsOfOtherRouters(t *testing.T) {
	var log bytes.Buffer
	vars := map[string]string{"id": "7", "empty": ""}
	options := nethttp.Options{
		Resource: func(*http.Request) string { return orders },
		Param: func(_ *http.Request, name string) (string, bool) {
			value, ok := vars[name]
			return value, ok
		},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}
	for key, want := range map[string]rule.Attribute{
		"param:id": rule.String("7"), "param:empty": rule.String(""), "param:other": {}, "param:outer": rule.String("x"),
	} {
		p := &adaptertest.Probe{Attribute: key}
		request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
		request.SetPathValue("outer", "x")
		nethttp.Middleware(p.NewEngine(t), options)(http.HandlerFunc(ok)).ServeHTTP(httptest.NewRecorder(), request)
		assert.Equal(t, want.GoString(), p.LastCall().Attribute.GoString(), key)
	}
	assert.Empty(t, log.String())
}
