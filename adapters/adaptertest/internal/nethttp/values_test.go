package nethttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/adaptertest"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

// limitOf returns an engine that lets each value of a key make three calls.
func limitOf(tb testing.TB, missing rule.Missing, keys ...string) *core.Engine {
	tb.Helper()
	engine, _ := newEngine(tb, core.Config{})
	require.NoError(tb, engine.Load(rules.Set{HotParam: []hotparam.Rule{{
		Match: "*", Param: rule.StringsOf(keys...), Limit: 1e-6, Burst: 3, Missing: missing,
	}}}))
	return engine
}

// passed returns how many of the requests passed.
func passed(handler http.Handler, requests ...*http.Request) (count int) {
	for _, r := range requests {
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code == http.StatusOK {
			count++
		}
	}
	return count
}

// many returns requests through a proxy, with the field that the function returns.
func many(count int, field func(int) string) (list []*http.Request) {
	for i := range count {
		list = append(list, parse("GET", "/orders/7", "X-Forwarded-For: "+field(i)))
	}
	return list
}

func TestClientGetsItsLimitWhateverAddressesItHasOrInvents(t *testing.T) {
	options := nethttp.Options{Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}}, Logger: discardLogger()}
	handler := nethttp.Middleware(limitOf(t, "", "ip"), options)(http.HandlerFunc(ok))
	assert.Equal(t, 3, passed(handler, many(50, func(i int) string { return fmt.Sprintf("1.1.1.%d, 198.51.100.7", i) })...),
		"forged addresses")
	assert.Equal(t, 3, passed(handler, many(50, func(i int) string { return fmt.Sprintf("2001:db8:1:2::%x", i) })...),
		"one network")
	assert.Equal(t, 3, passed(handler, many(50, func(i int) string { return fmt.Sprintf("2001:db8:1:3::, garbage %d", i) })...),
		"the proxy itself, where it says no address")
	assert.Equal(t, 50, passed(handler, many(50, func(i int) string { return fmt.Sprintf("2001:db8:2:%x::1", i) })...), "other networks")
	assert.Equal(t, 50, passed(handler, many(50, func(i int) string { return fmt.Sprintf("198.51.101.%d", i) })...), "other addresses")

	options.Clients.IPv6Prefix = 128
	handler = nethttp.Middleware(limitOf(t, "", "ip"), options)(http.HandlerFunc(ok))
	assert.Equal(t, 50, passed(handler, many(50, func(i int) string { return fmt.Sprintf("2001:db8:1:2::%x", i) })...))
}

func TestCallsWithoutTheAttributeAreTreatedAsTheRuleSays(t *testing.T) {
	none := func(int) string { return "" }
	for missing, want := range map[rule.Missing]int{rule.MissingPass: 9, rule.MissingShare: 3, rule.MissingBlock: 0} {
		handler := nethttp.Middleware(limitOf(t, missing, "header:X-Tenant"), nethttp.Options{Logger: discardLogger()})(http.HandlerFunc(ok))
		assert.Equal(t, want, passed(handler, many(9, none)...), missing)
		handler = nethttp.Middleware(limitOf(t, missing, "ip", "header:X-Tenant"), nethttp.Options{Logger: discardLogger()})(http.HandlerFunc(ok))
		assert.Equal(t, want, passed(handler, many(9, none)...), missing)
	}
}

func TestLimitOfEachValueAllocatesNothingBesideTheRecorder(t *testing.T) {
	request := many(1, func(int) string { return "1.1.1.1, 2001:db8::7" })[0]
	request.Pattern = "GET /orders/{id}"
	request.Header.Set("X-Tenant", "a")
	options := nethttp.Options{Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}}}
	for _, keys := range [][]string{{"ip"}, {"header:X-Tenant"}, {"ip", "header:X-Tenant", "path"}} {
		engine, _ := newEngine(t, core.Config{})
		require.NoError(t, engine.Load(rules.Set{HotParam: []hotparam.Rule{{
			Match: "*", Param: rule.StringsOf(keys...), Limit: 1e9,
		}}}))
		handler := nethttp.Middleware(engine, options)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		writer := adaptertest.NewDiscardWriter()
		handler.ServeHTTP(writer, request)
		assert.LessOrEqual(t, testing.AllocsPerRun(200, func() { handler.ServeHTTP(writer, request) }), 1.0, keys)
	}
}
