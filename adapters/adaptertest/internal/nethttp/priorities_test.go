package nethttp_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/adapters/priority"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
)

// inside trusts callers of 10.0.0.0/8 with every priority, and all others with none above
// normal.
func inside() nethttp.Options {
	return nethttp.Options{
		PriorityHeader: priority.Field,
		Clients: clientip.Options{PriorityCallers: []priority.Callers{
			{From: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Max: rule.PriorityCritical},
			{From: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}, Max: rule.PriorityNormal},
		}},
	}
}

// prioritized serves a request and returns the priority that rules see, and that of the
// context of the handler.
func prioritized(t *testing.T, options nethttp.Options, r *http.Request) (seen, inContext rule.Priority, known bool) {
	t.Helper()
	p := new(adaptertest.Probe)
	handler := guardOrders(p.NewEngine(t), options, func(_ http.ResponseWriter, r *http.Request) {
		inContext, known = core.PriorityFromContext(r.Context())
	})
	handler.ServeHTTP(httptest.NewRecorder(), r)
	return p.LastCall().Priority(), inContext, known
}

func requestFrom(address string, values ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/orders/7", http.NoBody)
	r.RemoteAddr = address
	for _, value := range values {
		r.Header.Add("penstock-priority", value)
	}
	return r
}

func TestPriorityOfARequestIsWhatItsCallerMayChoose(t *testing.T) {
	byRoute := inside()
	byRoute.Priority = func(*http.Request) rule.Priority { return rule.PriorityLow }
	for name, test := range map[string]struct {
		options nethttp.Options
		request *http.Request
		want    rule.Priority
		known   bool
	}{
		"outside, lower":               {inside(), requestFrom("192.0.2.1:80", "low"), rule.PriorityLow, true},
		"not of the callers, by route": {byRoute, requestFrom("[2001:db8::1]:80", "critical"), rule.PriorityLow, true},
		"no address":                   {inside(), requestFrom("", "critical"), rule.PriorityNormal, false},
	} {
		seen, inContext, known := prioritized(t, test.options, test.request)
		assert.Equal(t, test.want, seen, name)
		assert.Equal(t, test.want, inContext, name)
		assert.Equal(t, test.known, known, name)
	}
}

func TestCallerBehindAProxyIsTheClientOfTheProxy(t *testing.T) {
	options := inside()
	options.Clients.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}
	request := requestFrom("10.9.0.1:80", "critical")
	request.Header.Set("X-Forwarded-For", "192.0.2.1")
	seen, _, _ := prioritized(t, options, request)
	assert.Equal(t, rule.PriorityNormal, seen, "a client of the proxy from outside")
	request.Header.Set("X-Forwarded-For", "192.0.2.1, 10.1.1.1")
	seen, _, _ = prioritized(t, options, request)
	assert.Equal(t, rule.PriorityCritical, seen, "a client of the proxy from inside")
}

func TestPriorityTrustGoesBeforeAddresses(t *testing.T) {
	options := inside()
	options.PriorityTrust = func(r *http.Request) (rule.Priority, bool) {
		trusted := r.TLS != nil && r.TLS.PeerCertificates[0].Subject.CommonName == "checkout"
		return rule.PriorityHigh, trusted
	}
	request := requestFrom("192.0.2.1:80", "critical")
	seen, _, _ := prioritized(t, options, request)
	assert.Equal(t, rule.PriorityNormal, seen, "by its address")
	request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: "checkout"}}}}
	seen, _, _ = prioritized(t, options, request)
	assert.Equal(t, rule.PriorityHigh, seen, "by its certificate")
}

func TestPatternIsVisibleOutsideOfAMiddlewareThatSetsAPriority(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	handler := guardOrders(engine, inside(), ok)
	request := requestFrom("10.1.1.1:80", "low")
	handler.ServeHTTP(httptest.NewRecorder(), request)
	assert.Equal(t, "GET /orders/{id}", request.Pattern)
}

// TestPriorityIsPassedOnThroughServices sends a request through a service to another.
func TestPriorityIsPassedOnThroughServices(t *testing.T) {
	loopback := nethttp.Options{
		PriorityHeader: priority.Field,
		Clients: clientip.Options{PriorityCallers: []priority.Callers{
			{From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, Max: rule.PriorityCritical},
		}},
	}
	last := new(adaptertest.Probe)
	behind := serve(t, guardOrders(last.NewEngine(t), loopback, ok))
	between := new(adaptertest.Probe)
	client := &http.Client{Transport: &nethttp.Transport{
		Base: behind.Client().Transport, Engine: between.NewEngine(t), PriorityHeader: priority.Field,
	}}
	front, _ := newEngine(t, core.Config{})
	server := serve(t, guardOrders(front, loopback, func(_ http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, behind.URL+"/orders/7", http.NoBody)
		if !assert.NoError(t, err) {
			return
		}
		request.Header.Set(priority.Field, "critical") // what the program sets is replaced
		response, err := client.Do(request)
		if assert.NoError(t, err) {
			assert.NoError(t, response.Body.Close())
		}
		assert.Equal(t, []string{"critical"}, request.Header[priority.Field], "the request is left alone")
	}))
	for value, want := range map[string]rule.Priority{
		"low": rule.PriorityLow, "critical": rule.PriorityCritical, "": rule.PriorityNormal, "urgent": rule.PriorityNormal,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/orders/7", http.NoBody)
		require.NoError(t, err)
		request.Header.Set(priority.Field, value)
		response, err := server.Client().Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, want, between.LastCall().Priority(), "%q: rules of the client", value)
		assert.Equal(t, want, last.LastCall().Priority(), "%q: rules of the service behind", value)
	}
}

// TestReverseProxyDoesNotPassOnWhatAStrangerWrites sends a forged field to a proxy whom
// the service behind trusts.
func TestReverseProxyDoesNotPassOnWhatAStrangerWrites(t *testing.T) {
	var arrived []string
	behind := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived = r.Header[priority.Field] }))
	target, err := url.Parse(behind.URL)
	require.NoError(t, err)
	engine, _ := newEngine(t, core.Config{})
	reverse := httputil.NewSingleHostReverseProxy(target)
	reverse.Transport = &nethttp.Transport{Base: behind.Client().Transport, Engine: engine, PriorityHeader: "penstock-priority"}
	proxy := serve(t, nethttp.Middleware(engine, nethttp.Options{PriorityHeader: priority.Field})(reverse))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL, http.NoBody)
	require.NoError(t, err)
	request.Header.Set(priority.Field, "critical")
	response, err := proxy.Client().Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.Empty(t, arrived)
}
