package penstockgin_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/clientip"
	penstockgin "github.com/penstock-go/penstock/adapters/gin"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestRulesLookAtAttributesOfRequests(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	forwarded := http.Header{"X-Forwarded-For": {"1.1.1.1", "2001:db8:1:2:3:4:5:6"}, "Forwarded": {"for=2.2.2.2"}}
	for _, test := range []struct {
		key     string
		options penstockgin.Options
		header  http.Header
		want    rule.Attribute
	}{
		{"param:id", penstockgin.Options{}, nil, rule.String("a/b")},
		{"param:rest", penstockgin.Options{}, nil, rule.String("/x/y")},
		{"param:other", penstockgin.Options{}, nil, rule.Attribute{}},
		{"param:", penstockgin.Options{}, nil, rule.Attribute{}},
		{"method", penstockgin.Options{}, nil, rule.String("GET")},
		{"path", penstockgin.Options{}, nil, rule.String("/orders/a/b/x/y")},
		{"host", penstockgin.Options{}, nil, rule.String("127.0.0.1")},
		{"query:q", penstockgin.Options{}, nil, rule.String("1 2")},
		{"header:x-tenant", penstockgin.Options{}, http.Header{"X-Tenant": {"a", "b"}}, rule.String("a")},
		{"cookie:sid", penstockgin.Options{}, http.Header{"Cookie": {"sid=1"}}, rule.String("1")},
		{"cookie:sid", penstockgin.Options{}, http.Header{"Cookie": {"sid=%31"}}, rule.String("1")},
		{"cookie:sid", penstockgin.Options{}, http.Header{"Cookie": {"a=1"}}, rule.Attribute{}},
		{"user", penstockgin.Options{}, nil, rule.Attribute{}},
		{"user", penstockgin.Options{Attributes: func(c *gin.Context) []core.Option {
			return []core.Option{core.String("user", c.Param("id"))}
		}}, nil, rule.String("a/b")},
		{"ip", penstockgin.Options{}, forwarded, rule.String("127.0.0.1")},
		{"ip", penstockgin.Options{Clients: clientip.Options{TrustedProxies: proxies}}, forwarded, rule.String("2001:db8:1:2:3:4:5:6")},
		{"ipPrefix", penstockgin.Options{Clients: clientip.Options{TrustedProxies: proxies}}, forwarded, rule.String("2001:db8:1:2::/64")},
		{"ipPrefix", penstockgin.Options{Clients: clientip.Options{TrustedProxies: proxies, IPv6Prefix: 48}}, forwarded, rule.String("2001:db8:1::/48")},
		{"ip", penstockgin.Options{Clients: clientip.Options{TrustedProxies: proxies, UseForwarded: true}}, forwarded, rule.String("2.2.2.2")},
	} {
		p := &adaptertest.Probe{Attribute: test.key}
		router := gin.New()
		router.UseRawPath = true
		router.Use(penstockgin.Middleware(p.NewEngine(t), test.options))
		router.GET("/orders/:id/*rest", ok)
		server := adaptertest.ServeHandler(t, router)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/orders/a%2Fb/x/y?q=1+2", http.NoBody)
		require.NoError(t, err)
		if test.header != nil {
			request.Header = test.header
		}
		response, err := server.Client().Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, test.want.GoString(), p.LastCall().Attribute.GoString(), test.key)
	}
	text, _ := attributeOf(t, "header:X", strings.Repeat("x", 2000)).Text()
	assert.Len(t, text, 1024+1+32, "long values are shortened")
}

// attributeOf returns the attribute of a request with the header field X.
func attributeOf(t *testing.T, key, x string) rule.Attribute {
	t.Helper()
	p := &adaptertest.Probe{Attribute: key}
	request := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
	request.Header.Set("X", x)
	router(p.NewEngine(t), penstockgin.Options{}, ok).ServeHTTP(httptest.NewRecorder(), request)
	return p.LastCall().Attribute
}

func TestReadingAttributesAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("with -race, pools drop objects at random, which allocates")
	}
	options := penstockgin.Options{Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}
	for _, key := range []string{"user", "ip", "ipPrefix", "header:x-tenant", "cookie:sid", "query:q", "param:id"} {
		p := &adaptertest.AttributeReader{Key: key}
		router := gin.New()
		router.Use(penstockgin.Middleware(p.NewEngine(t), options))
		router.GET("/orders/:id", func(*gin.Context) {})
		request := httptest.NewRequest(http.MethodGet, "/orders/7?q=1", http.NoBody)
		request.Header = http.Header{"X-Tenant": {"a"}, "Cookie": {"a=b; sid=1"}, "X-Forwarded-For": {"1.1.1.1, 2001:db8::7"}}
		writer := adaptertest.NewDiscardWriter()
		router.ServeHTTP(writer, request)
		assert.Equal(t, key != "user", p.Found, key)
		assert.Zero(t, testing.AllocsPerRun(200, func() { router.ServeHTTP(writer, request) }), key)
	}
}

func TestEachValueOfAParameterHasALimit(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	require.NoError(t, engine.Load(rules.Set{HotParam: []hotparam.Rule{
		{Match: "*", Param: rule.StringsOf("param:id", "ip"), Limit: 1e-6, Burst: 2},
	}}))
	server := adaptertest.ServeHandler(t, router(engine, penstockgin.Options{}, ok))
	passed := 0
	for i := range 20 {
		if get(t, server, "/orders/"+strconv.Itoa(i%5)).status == http.StatusOK {
			passed++
		}
	}
	assert.Equal(t, 10, passed)
}
