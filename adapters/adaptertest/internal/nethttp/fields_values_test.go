package nethttp_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/penstock-go/penstock/adapters/nethttp"
	"github.com/penstock-go/penstock/clock"
	"github.com/penstock-go/penstock/core"
	"github.com/penstock-go/penstock/fleet"
	"github.com/penstock-go/penstock/fleet/memory"
	"github.com/penstock-go/penstock/flow"
	"github.com/penstock-go/penstock/hotparam"
	"github.com/penstock-go/penstock/rule"
	"github.com/penstock-go/penstock/rules"
)

func TestFieldsTellWhatIsLeftOfTheValueOfTheCaller(t *testing.T) {
	engine, virtual := newEngine(t, core.Config{}, flow.Rule{Name: "all", Resource: orders, Limit: 100, Window: time.Minute})
	require.NoError(t, engine.LoadAs("values", rules.Set{HotParam: []hotparam.Rule{
		{Name: "per-user", Resource: orders, Param: rule.StringsOf("header:User"), Limit: 3, Window: time.Hour},
	}}))
	server := serve(t, guardOrders(engine, nethttp.Options{Fields: nethttp.Fields{Always: true, ShowRules: true}}, ok))
	call := func(user string) (http.Header, int) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/orders/7", http.NoBody)
		require.NoError(t, err)
		if user != "" {
			request.Header.Set("User", user)
		}
		response, err := server.Client().Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.Header, response.StatusCode
	}
	field := func(user string) string {
		header, _ := call(user)
		return header.Get("RateLimit")
	}
	first, _ := call("ann")
	assert.Regexp(t, `^"per-user";q=3;w=3600;pk=:[A-Za-z0-9+/]{12}:, "all";q=100;w=60$`, first.Get("RateLimit-Policy"))
	assert.Regexp(t, `^"per-user";r=2;t=1200;pk=:[A-Za-z0-9+/]{12}:$`, first.Get("RateLimit"))
	virtual.Advance(10 * time.Minute)
	assert.Contains(t, field("ann"), `"per-user";r=1;t=600;pk=`)
	other, _ := call("bob")
	assert.Contains(t, other.Get("RateLimit"), `"per-user";r=2;t=1200;pk=`)
	assert.NotEqual(t, first.Get("RateLimit-Policy"), other.Get("RateLimit-Policy"), "another partition")
	call("ann")
	refused, status := call("ann")
	assert.Equal(t, http.StatusTooManyRequests, status)
	assert.Contains(t, refused.Get("RateLimit"), `"per-user";r=0;t=600;pk=`)
	assert.Equal(t, first.Get("RateLimit-Policy"), refused.Get("RateLimit-Policy"))
	assert.Contains(t, field(""), `"all";r=96;`, "a call without a user has no limit of its own")
}

func TestRefusalOfAManyTokenCallTellsWhatIsLeft(t *testing.T) {
	engine, _ := newEngine(t, core.Config{}, rateLimit("all", orders, 100))
	server := serve(t, guardOrders(engine, nethttp.Options{Tokens: func(r *http.Request) int {
		tokens, _ := strconv.Atoi(r.URL.Query().Get("tokens"))
		return tokens
	}}, ok))
	assert.Equal(t, http.StatusOK, get(t, server, "/orders/7?tokens=60").status)
	assert.Equal(t, int64(40), parseList(t, get(t, server, "/orders/7?tokens=60").header, "RateLimit")[0].parameters["r"])
	assert.Equal(t, http.StatusOK, get(t, server, "/orders/7?tokens=40").status)
	assert.Equal(t, int64(0), parseList(t, get(t, server, "/orders/7?tokens=1").header, "RateLimit")[0].parameters["r"])
}

func TestViolatedPoliciesAreSpelledAsInTheFields(t *testing.T) {
	for _, name := range []string{"größe", "50%", `say "hi" \o/`, "plain"} {
		engine, _ := newEngine(t, core.Config{}, rateLimit(name, orders, 0))
		refused := get(t, serve(t, guardOrders(engine, nethttp.Options{Fields: nethttp.Fields{ShowRules: true}}, ok)), "/orders/7")
		policy := parseList(t, refused.header, "RateLimit-Policy")[0].name
		assert.Equal(t, []string{policy}, problemOf(t, refused).ViolatedPolicies)
	}
}

func TestRefusalByARuleWithoutAPolicyHasNoRateLimitOfThatName(t *testing.T) {
	engine, _ := newEngine(t, core.Config{})
	require.NoError(t, engine.Load(rules.Set{HotParam: []hotparam.Rule{
		{Name: "at-once", Resource: orders, Param: rule.StringsOf("query:user"), Concurrency: 1},
		{Name: "often", Resource: orders, Param: rule.StringsOf("header:User"), Limit: 1, Window: time.Minute},
	}}))
	held, err := engine.Entry(t.Context(), orders, core.String("query:user", "ann"))
	require.NoError(t, err)
	server := serve(t, guardOrders(engine, nethttp.Options{Fields: nethttp.Fields{Always: true, ShowRules: true}}, ok))

	refused := get(t, server, "/orders/7?user=ann")
	require.Equal(t, http.StatusTooManyRequests, refused.status)
	assert.Empty(t, refused.header.Get("RateLimit"), "at-once has no policy")
	held.Exit()
	assert.Equal(t, http.StatusOK, get(t, server, "/orders/7?user=ann").status)
}

// The server of the fleet decides on each call of such rules, and does not say what is left of a sliding window.
func TestFieldsHaveThePolicyOfALimitOfWhichNobodyKnowsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := core.New(core.Config{
			Logger: slog.New(slog.DiscardHandler),
			Fleet:  fleet.Config{Backend: memory.New(clock.System()), Instance: "one"},
		})
		defer engine.Close()
		ask := rule.Fleet{Mode: fleet.ModeAsk}
		require.NoError(t, engine.Load(rules.Set{
			Flow: []flow.Rule{{Name: "all", Resource: orders, Limit: 9, Window: time.Hour, Scope: rule.ScopeFleet, Fleet: ask}},
			HotParam: []hotparam.Rule{{
				Name: "per-user", Resource: orders, Param: rule.StringsOf("header:User"), Limit: 2, Window: time.Hour, Scope: rule.ScopeFleet, Fleet: ask,
			}},
		}))
		handler := guardOrders(engine, nethttp.Options{Fields: nethttp.Fields{Always: true, ShowRules: true}}, ok)
		call := func() *httptest.ResponseRecorder {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/orders/7", http.NoBody)
			request.Header.Set("User", "ann")
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, request)
			return response
		}
		const policies = `^"per-user";q=2;w=3600;pk=:[A-Za-z0-9+/]{12}:, "all";q=9;w=3600$`
		for range 2 {
			passed := call()
			assert.Equal(t, http.StatusOK, passed.Code)
			assert.Regexp(t, policies, passed.Header().Get("RateLimit-Policy"))
			assert.Empty(t, passed.Header().Get("RateLimit"))
		}
		refused := call()
		assert.Equal(t, http.StatusTooManyRequests, refused.Code)
		assert.Regexp(t, policies, refused.Header().Get("RateLimit-Policy"))
		assert.Regexp(t, `^"per-user";r=0;t=\d+;pk=:[A-Za-z0-9+/]{12}:$`, refused.Header().Get("RateLimit"))

		require.NoError(t, engine.LoadAs("local", rules.Set{Flow: []flow.Rule{{Name: "local", Resource: "GET:/", Limit: 1000}, {
			Name: "here", Resource: orders, Limit: 5, Window: time.Minute,
		}}}))
		_, d, err := engine.Decide(t.Context(), orders)
		require.NoError(t, err)
		require.NotNil(t, d.Limit())
		assert.Equal(t, "here", d.Limit().Name, "less may be left of the other, which nobody knows")
	})
}
