package adaptertest

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock"
	"github.com/penstock-go/penstock/adapters/clientip"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func httpOptionTests() []httpTest {
	return []httpTest{
		{"rules get what the options say", nil, rulesGetWhatTheOptionsSay},
		{"rules of an origin see its calls only", nil, rulesOfAnOrigin},
		{"Tokens are what a call takes", nil, tokensAreTaken},
		{"fewer tokens than one are answered with 500", nil, tooFewTokens},
		{"rules look at attributes of requests", nil, rulesLookAtAttributes},
		{"attributes of the service go first", nil, attributesOfTheServiceGoFirst},
		{"clients of proxies have addresses of their own", nil, clientsOfProxies},
		{"long attributes are shortened", nil, longAttributesAreShortened},
		{"no engine is the default engine", nil, noEngineIsTheDefault},
	}
}

// call serves one request of a guarded route and returns what the rules got to know.
func (h *HTTPHarness) call(t *testing.T, p *Probe, options Options, path string, header ...string) rule.Call {
	t.Helper()
	c := h.serveOrders(t, p.NewEngine(t), options, ok)
	require.Equal(t, http.StatusOK, c.get(path, header...).status)
	p.requireOutcome(t, h.Timeout, Succeeded)
	return p.LastCall()
}

func rulesGetWhatTheOptionsSay(t *testing.T, h *HTTPHarness) {
	call := h.call(t, &Probe{Origin: "mobile"}, Options{
		Origin: func(r Request) string { return r.Header("App") },
		Tokens: func(Request) int { return 7 },
		Attributes: func(r Request) []core.Option {
			return []core.Option{core.String("user", r.Header("User")), core.Int("size", 3), core.Priority(rule.PriorityLow)}
		},
	}, "/orders/7", "App", "mobile", "User", "ann")
	want := rule.Call{Now: call.Now, Tokens: 7, Attribute: rule.String("ann")}
	want.SetCaller(rule.PriorityLow, true)
	assert.Equal(t, fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", call), "a call that comes from outside")

	call = h.call(t, new(Probe), Options{}, "/orders/7")
	want = rule.Call{Now: call.Now, Tokens: 1}
	want.SetCaller(rule.PriorityNormal, true)
	assert.Equal(t, fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", call), "by default")
}

func rulesOfAnOrigin(t *testing.T, h *HTTPHarness) {
	set := h.limited(0)
	set.Flow[0].Origin = "mobile"
	engine, _ := NewEngine(t, set)
	c := h.serveOrders(t, engine, Options{Origin: func(r Request) string { return r.Query("from") }}, ok)
	assert.Equal(t, http.StatusTooManyRequests, c.get("/orders/7?from=mobile").status)
	assert.Equal(t, http.StatusOK, c.get("/orders/7?from=web").status)
	assert.Equal(t, http.StatusOK, c.get("/orders/7").status)
}

func tokensAreTaken(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, h.limited(10))
	c := h.serveOrders(t, engine, Options{Tokens: func(r Request) int { return len(r.Query("cost")) }}, ok)
	var statuses []int
	for _, cost := range []string{"1234567", "1234", "123", "1"} {
		statuses = append(statuses, c.get("/orders/7?cost="+cost).status)
	}
	assert.Equal(t, []int{200, 429, 200, 429}, statuses)
}

func tooFewTokens(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	c := h.serveOrders(t, engine, Options{Tokens: func(Request) int { return -1 }}, ok)
	invalid := c.get("/orders/7")
	assert.Equal(t, http.StatusInternalServerError, invalid.status)
	assert.Contains(t, problemOf(t, invalid).Detail, "Tokens(-1)")
}

func rulesLookAtAttributes(t *testing.T, h *HTTPHarness) {
	const path = "/orders/a-7?q=1+2&q=3&broken=%zz&broken=good"
	for _, test := range []struct {
		key    string
		header []string
		want   rule.Attribute
	}{
		{"method", nil, rule.String("GET")},
		{"path", nil, rule.String("/orders/a-7")},
		{"host", nil, rule.String("127.0.0.1")},
		{"ip", []string{"X-Forwarded-For", "1.1.1.1"}, rule.String("127.0.0.1")},
		{"ipPrefix", nil, rule.String("127.0.0.1")},
		{"header:x-tenant", []string{"X-Tenant", "a", "X-Tenant", "b"}, rule.String("a")},
		{"header:X-TENANT", []string{"X-Tenant", "a"}, rule.String("a")},
		{"header:X-Tenant", nil, rule.Attribute{}},
		{"cookie:sid", []string{"Cookie", "theme=dark; sid=1"}, rule.String("1")},
		{"cookie:sid", []string{"Cookie", "theme=dark"}, rule.Attribute{}},
		{"query:q", nil, rule.String("1 2")},
		{"query:broken", nil, rule.String("good")},
		{"query:other", nil, rule.Attribute{}},
		{"param:id", nil, rule.String("a-7")},
		{"param:other", nil, rule.Attribute{}},
		{"param:", nil, rule.Attribute{}},
		{"user", []string{"User", "ann"}, rule.Attribute{}},
	} {
		if test.key == "query:broken" && h.Lacks[InvalidEscapes] != "" {
			continue
		}
		call := h.call(t, &Probe{Attribute: test.key}, Options{}, path, test.header...)
		assert.Equal(t, test.want.GoString(), call.Attribute.GoString(), "%s of %v", test.key, test.header)
	}
}

func attributesOfTheServiceGoFirst(t *testing.T, h *HTTPHarness) {
	for _, key := range []string{"ip", "path", "header:App"} {
		call := h.call(t, &Probe{Attribute: key}, Options{Attributes: func(r Request) []core.Option {
			return []core.Option{core.String(key, "mine of "+r.Header("App"))}
		}}, "/orders/7", "App", "shop")
		text, _ := call.Attribute.Text()
		assert.Equal(t, "mine of shop", text, key)
	}
}

func clientsOfProxies(t *testing.T, h *HTTPHarness) {
	proxies := Options{Clients: clientip.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
	wide, forwarded := proxies, proxies
	wide.Clients.IPv6Prefix, forwarded.Clients.UseForwarded = 48, true
	header := []string{"X-Forwarded-For", "1.1.1.1", "X-Forwarded-For", "2001:db8:1:2:3:4:5:6", "Forwarded", "for=2.2.2.2"}
	for _, test := range []struct {
		key     string
		options Options
		want    string
	}{
		{"ip", Options{}, "127.0.0.1"},
		{"ip", proxies, "2001:db8:1:2:3:4:5:6"},
		{"ipPrefix", proxies, "2001:db8:1:2::/64"},
		{"ipPrefix", wide, "2001:db8:1::/48"},
		{"ip", forwarded, "2.2.2.2"},
	} {
		text, _ := h.call(t, &Probe{Attribute: test.key}, test.options, "/orders/7", header...).Attribute.Text()
		assert.Equal(t, test.want, text, test.key)
	}
}

func longAttributesAreShortened(t *testing.T, h *HTTPHarness) {
	const longest = 1024 + 1 + 32
	long := strings.Repeat("x", 2000)
	for key, header := range map[string][]string{
		"header:X":  {"X", long},
		"cookie:c":  {"Cookie", "c=" + long},
		"query:q":   nil,
		"param:id":  nil,
		"path":      nil,
		"header:X2": {"X2", strings.Repeat("y", 1025)},
	} {
		path := "/orders/" + long + "?q=" + long
		text, found := h.call(t, &Probe{Attribute: key}, Options{}, path, header...).Attribute.Text()
		assert.True(t, found, key)
		assert.Len(t, text, longest, key)
	}
}

func noEngineIsTheDefault(t *testing.T, h *HTTPHarness) {
	resource := h.resource(http.MethodGet, "/of/the/default/engine")
	before := totals(penstock.Default(), resource).Passed
	c := h.serve(t, Server{Guards: []Guard{{}}, Routes: []Route{{http.MethodGet, "/of/the/default/engine", ok}}})
	c.get("/of/the/default/engine")
	assert.Equal(t, before+1, totals(penstock.Default(), resource).Passed)
}
