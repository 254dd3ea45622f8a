package adaptertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fault"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func httpRefusalTests() []httpTest {
	return []httpTest{
		{"refusals are answered by their reason", nil, refusalsAreAnsweredByReason},
		{"refusals describe the quota", nil, refusalsDescribeTheQuota},
		{"Spread has clients come back one after the other", nil, spreadRetryAfter},
		{"refused requests do not reach the handler", nil, refusedRequestsDoNotReachTheHandler},
		{"injected faults are answered as their rules say", nil, injectedFaultsAreAnswered},
		{"FieldsNever names no rule", nil, fieldsNeverNamesNoRule},
		{"FieldsAlways describes the quota of requests that pass", nil, fieldsAlwaysDescribesQuotas},
		{"Blocked answers refusals", nil, blockedAnswersRefusals},
		{"EntryError answers requests that do not pass otherwise", nil, entryErrorAnswers},
		{"a closed engine is answered with 503", nil, closedEngineIsAnswered},
	}
}

// problem is the body of a refusal.
type problem struct {
	Type             string   `json:"type"`
	Title            string   `json:"title"`
	Status           int      `json:"status"`
	Detail           string   `json:"detail"`
	ViolatedPolicies []string `json:"violated-policies"`
}

func problemOf(t *testing.T, a answer) (p problem) {
	t.Helper()
	require.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	require.NoError(t, json.Unmarshal([]byte(a.body), &p), a.body)
	assert.Equal(t, a.status, p.Status)
	return p
}

func refusalsAreAnsweredByReason(t *testing.T, h *HTTPHarness) {
	const registry = "https://iana.org/assignments/http-problem-types#"
	for _, test := range []struct {
		reason     rule.Reason
		after      time.Duration
		status     int
		kind       string // the type of the problem
		retryAfter string
	}{
		{rule.RateLimited, 1500 * time.Millisecond, 429, registry + "quota-exceeded", "2"},
		{rule.RateLimited, rule.Never, 429, registry + "quota-exceeded", ""},
		{rule.Overloaded, 3 * time.Second, 503, registry + "temporary-reduced-capacity", "3"},
		{rule.Unavailable, 5 * time.Second, 503, "about:blank", "5"},
		{rule.Unavailable, rule.Never, 503, "about:blank", ""},
		{rule.Injected, 5 * time.Second, 503, "about:blank", "5"},
		{rule.Denied, 5 * time.Second, 403, "about:blank", ""},
		{rule.Denied, rule.Never, 403, "about:blank", ""},
	} {
		name := fmt.Sprintf("%v after %v", test.reason, test.after)
		p := &Probe{Reason: test.reason, RefuseAfter: test.after}
		c := h.serveOrders(t, p.NewEngine(t), Options{}, ok)
		for range 2 { // the second answer may be a cached one
			refused := c.get("/orders/7")
			assert.Equal(t, test.status, refused.status, name)
			body := problemOf(t, refused)
			assert.Equal(t, test.kind, body.Type, name)
			assert.Equal(t, test.retryAfter, refused.header.Get("Retry-After"), name)
			assert.Empty(t, refused.header.Get("RateLimit"), "%s: the rule of the probe has no policy that the field could be of", name)
			if test.reason == rule.Denied {
				assert.NotContains(t, body.Detail, "try again", name)
			}
			assert.Empty(t, body.ViolatedPolicies, "%s: it has none to be named", name)
			assert.NotContains(t, refused.body, probeName, name)
		}
	}
}

func refusalsDescribeTheQuota(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, h.limited(0.5))
	c := h.serveOrders(t, engine, Options{Fields: nethttp.Fields{ShowRules: true}}, ok)
	passed := c.get("/orders/7")
	assert.Equal(t, "ok", passed.body)
	assert.NotContains(t, passed.header, "Ratelimit")
	refused := c.get("/orders/7")
	assert.Equal(t, http.StatusTooManyRequests, refused.status)
	assert.Equal(t, "2", refused.header.Get("Retry-After"))
	assert.Equal(t, `"reads";r=0;t=2`, refused.header.Get("RateLimit"))
	assert.Equal(t, `"reads";q=1;w=2`, refused.header.Get("RateLimit-Policy"))
	body := problemOf(t, refused)
	assert.Contains(t, body.Detail, h.orders())
	assert.Contains(t, body.Detail, "reads")

	c = h.serveOrders(t, engine, Options{}, ok)
	hidden := c.get("/orders/7")
	assert.Equal(t, http.StatusTooManyRequests, hidden.status)
	assert.Regexp(t, `^"p-[0-9a-f]{12}";q=1;w=2$`, hidden.header.Get("RateLimit-Policy"))
	body = problemOf(t, hidden)
	require.Len(t, body.ViolatedPolicies, 1)
	assert.Contains(t, hidden.header.Get("RateLimit"), `"`+body.ViolatedPolicies[0]+`";r=0`)
	for _, name := range []string{h.orders(), "reads", "flow"} {
		assert.NotContains(t, hidden.body, name)
	}
}

func spreadRetryAfter(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Name: "reads", Resource: h.orders(), Limit: 0.1, Algorithm: flow.Throttle}}})
	var random atomic.Int64 // in hundredths
	c := h.serveOrders(t, engine, Options{Spread: nethttp.Spread{Random: func() float64 { return float64(random.Load()) / 100 }}}, ok)
	assert.Equal(t, http.StatusOK, c.get("/orders/7").status)
	for _, test := range []struct {
		random int64
		want   string
	}{{0, "10"}, {50, "11"}, {99, "12"}, {0, "10"}} {
		random.Store(test.random)
		refused := c.get("/orders/7")
		assert.Equal(t, http.StatusTooManyRequests, refused.status)
		assert.Equal(t, test.want, refused.header.Get("Retry-After"))
		assert.Contains(t, refused.header.Get("RateLimit"), ";r=0;t=10", "is the same for all")
	}
}

func refusedRequestsDoNotReachTheHandler(t *testing.T, h *HTTPHarness) {
	for name, options := range map[string]Options{
		"default answer": {},
		"answer of its own": {Blocked: func(x Exchange, _ *core.BlockError) error {
			return x.Respond(http.StatusTooManyRequests, "later")
		}},
		"answer of its own that writes nothing": {Blocked: func(Exchange, *core.BlockError) error { return nil }},
	} {
		engine, _ := NewEngine(t, h.limited(0))
		var handled atomic.Int64
		c := h.serveOrders(t, engine, options, func(x Exchange) error {
			handled.Add(1)
			return ok(x)
		})
		assert.NotEqual(t, "ok", c.get("/orders/7").body, name)
		assert.Zero(t, handled.Load(), name)
		counted := totals(engine, h.orders())
		assert.EqualValues(t, 1, counted.Blocked, name)
		assert.Zero(t, counted.Passed, name)
	}
}

// inject returns an engine that refuses all calls of a resource with a fault.
func inject(t *testing.T, resource string, abort fault.Abort) *core.Engine {
	t.Helper()
	engine, virtual := NewEngine(t, rules.Set{})
	require.NoError(t, engine.Load(rules.Set{Fault: []fault.Rule{{
		Name: "broken", Resource: resource, Percent: 100, Abort: abort, Until: virtual.Now().Add(time.Hour).Time(),
	}}}))
	return engine
}

func injectedFaultsAreAnswered(t *testing.T, h *HTTPHarness) {
	for name, test := range map[string]struct {
		abort  fault.Abort
		status int
	}{
		"with its status":         {fault.Abort{HTTP: 500}, 500},
		"with that of a client":   {fault.Abort{HTTP: 404}, 404},
		"without a status":        {fault.Abort{GRPC: "ABORTED"}, 503},
		"without a known meaning": {fault.Abort{HTTP: 599}, 599},
	} {
		engine := inject(t, h.orders(), test.abort)
		c := h.serveOrders(t, engine, Options{}, ok)
		refused := c.get("/orders/7")
		assert.Equal(t, test.status, refused.status, name)
		assert.Empty(t, refused.header.Get("Retry-After"), name)
		assert.Contains(t, problemOf(t, refused).Detail, "injected on purpose", name)
		require.NoError(t, engine.Control(core.Scope{Kind: rules.KindFault}, fault.Off))
		assert.Equal(t, http.StatusOK, c.get("/orders/7").status, name)
	}
}

func fieldsNeverNamesNoRule(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{Flow: []flow.Rule{{Name: "secret", Resource: h.orders(), Limit: 0.5}}})
	c := h.serveOrders(t, engine, Options{Fields: nethttp.Fields{Never: true}}, ok)
	c.get("/orders/7")
	refused := c.get("/orders/7")
	assert.Equal(t, http.StatusTooManyRequests, refused.status)
	assert.Equal(t, "2", refused.header.Get("Retry-After"))
	assert.NotContains(t, refused.header, "Ratelimit")
	assert.NotContains(t, refused.header, "Ratelimit-Policy")
	assert.NotContains(t, refused.body, "secret")
	assert.NotContains(t, problemOf(t, refused).Detail, h.orders())
}

func fieldsAlwaysDescribesQuotas(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, h.limited(3))
	c := h.serveOrders(t, engine, Options{Fields: nethttp.Fields{Always: true, ShowRules: true}}, ok)
	for _, remaining := range []string{"2", "1"} {
		passed := c.get("/orders/7")
		assert.Equal(t, http.StatusOK, passed.status)
		assert.Contains(t, passed.header.Get("RateLimit"), `"reads";r=`+remaining)
		assert.Equal(t, `"reads";q=3;w=1`, passed.header.Get("RateLimit-Policy"))
	}
}

func blockedAnswersRefusals(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, h.limited(0.5))
	c := h.serveOrders(t, engine, Options{Fields: nethttp.Fields{ShowRules: true}, Blocked: func(x Exchange, block *core.BlockError) error {
		x.SetHeader("Mine", "yes")
		return x.Respond(http.StatusServiceUnavailable, x.Header("App")+" "+block.Rule)
	}}, ok)
	assert.Equal(t, http.StatusOK, c.get("/orders/7").status)
	refused := c.get("/orders/7", "App", "shop")
	assert.Equal(t, http.StatusServiceUnavailable, refused.status)
	assert.Equal(t, "shop reads", refused.body)
	assert.Equal(t, "yes", refused.header.Get("Mine"))
	assert.Equal(t, "2", refused.header.Get("Retry-After"), "set before Blocked was called")
	assert.Equal(t, `"reads";r=0;t=2`, refused.header.Get("RateLimit"))
}

func entryErrorAnswers(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	tokens := 1
	c := h.serveOrders(t, engine, Options{
		Tokens: func(Request) int { return tokens },
		EntryError: func(x Exchange, err error) error {
			return x.Respond(http.StatusBadGateway, fmt.Sprintf("%s %t %t", x.Header("App"), errors.Is(err, core.ErrInvalid), errors.Is(err, core.ErrClosed)))
		},
	}, ok)
	assert.Equal(t, "ok", c.get("/orders/7").body)
	tokens = 0
	answer := c.get("/orders/7", "App", "shop")
	assert.Equal(t, http.StatusBadGateway, answer.status)
	assert.Equal(t, "shop true false", answer.body)
	tokens = 1
	engine.Close()
	assert.Equal(t, "shop false true", c.get("/orders/7", "App", "shop").body)
}

func closedEngineIsAnswered(t *testing.T, h *HTTPHarness) {
	engine, _ := NewEngine(t, rules.Set{})
	c := h.serveOrders(t, engine, Options{}, ok)
	engine.Close()
	closed := c.get("/orders/7")
	assert.Equal(t, http.StatusServiceUnavailable, closed.status)
	assert.Contains(t, problemOf(t, closed).Detail, "shutting down")
}
